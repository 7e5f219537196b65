"""Missing dependencies: docs/figures.md, 6."""

from __future__ import annotations

from sds_core.observer.figures import (
    Figure,
    Line,
    Percentile,
    Unit,
    counter,
    gauge,
    histogram,
    under,
)

_CLOSED = counter(
    "sds_dependency_gaps_closed_total",
    "Missing dependencies that ended, by outcome.",
    "outcome",
)

ENTRIES = under(
    "Missing dependencies",
    Figure(
        "gaps_opened",
        "Missing dependencies that stood longer than the settle time.",
        report=("gaps.opened",),
        series=(counter("sds_dependency_gaps_opened_total").of(),),
        heading="Opened",
    ),
    Figure(
        "gaps_late",
        "Missing dependencies that came although nobody had asked for them.",
        report=("gaps.late",),
        series=(_CLOSED.of("late"),),
        heading="Late",
        line=Line("gaps", "late"),
    ),
    Figure(
        "gaps_repaired",
        "Missing dependencies that came within the repair window of a request.",
        report=("gaps.repaired",),
        series=(_CLOSED.of("repaired"),),
        heading="Repaired",
        line=Line("gaps", "repaired"),
    ),
    Figure(
        "gaps_recovered_late",
        "Missing dependencies that came after the repair window of the last request.",
        report=("gaps.recovered_late",),
        series=(_CLOSED.of("recovered_late"),),
        heading="Recovered late",
        line=Line("gaps", "recovered late"),
    ),
    Figure(
        "gaps_lost",
        "Messages that reached nobody but their sender: others refer to them, and "
        "nobody showed to have them by the deadline.",
        report=("gaps.lost",),
        series=(_CLOSED.of("lost"),),
        heading="Lost to everybody",
        grave=True,
        retracted="gaps_retracted",
        column=9,
        line=Line("gaps", "lost"),
    ),
    Figure(
        "gaps_tap_gap",
        "Missing dependencies that never came to a tap, but the network had them.",
        report=("gaps.tap_gap",),
        series=(_CLOSED.of("tap_gap"),),
        heading="Tap gap",
        line=Line("gaps", "tap gap"),
    ),
    Figure(
        "gaps_retracted",
        "Missing dependencies that came after they had been counted as lost.",
        report=("gaps.retracted",),
        series=(counter("sds_dependency_losses_retracted_total").of(),),
        heading="Came later",
    ),
    Figure(
        "gaps_open",
        "Messages that others refer to and that no tap has shown yet.",
        report=("gaps.open",),
        series=(gauge("sds_dependencies_missing").of(),),
        heading="Open now",
        column=8,
    ),
    Figure(
        "gap_duration",
        "Time from the first naming of a missing dependency to its first copy.",
        Unit.DURATIONS,
        report=("gap_ms",),
        series=(histogram("sds_dependency_gap_seconds").of(),),
        heading="Filled",
        percentiles=(Percentile(95),),
    ),
)
