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
        "Dependencies that were missing for longer than the settle time.",
        report=("gaps.opened",),
        series=(counter("sds_dependency_gaps_opened_total").of(),),
        heading="Opened",
    ),
    Figure(
        "gaps_late",
        "Missing dependencies that arrived without a repair request.",
        report=("gaps.late",),
        series=(_CLOSED.of("late"),),
        heading="Late",
        line=Line("gaps", "late"),
    ),
    Figure(
        "gaps_repaired",
        "Missing dependencies that arrived within the repair window of a request.",
        report=("gaps.repaired",),
        series=(_CLOSED.of("repaired"),),
        heading="Repaired",
        line=Line("gaps", "repaired"),
    ),
    Figure(
        "gaps_recovered_late",
        "Missing dependencies that arrived after the repair window of the last "
        "request.",
        report=("gaps.recovered_late",),
        series=(_CLOSED.of("recovered_late"),),
        heading="Recovered late",
        line=Line("gaps", "recovered late"),
    ),
    Figure(
        "gaps_lost",
        "Messages that reached only their sender: others name them, but no participant "
        "showed them by the deadline.",
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
        "Missing dependencies that no tap mirrored, although the network had them.",
        report=("gaps.tap_gap",),
        series=(_CLOSED.of("tap_gap"),),
        heading="Tap gap",
        line=Line("gaps", "tap gap"),
    ),
    Figure(
        "gaps_retracted",
        "Missing dependencies that arrived after they had been counted as lost.",
        report=("gaps.retracted",),
        series=(counter("sds_dependency_losses_retracted_total").of(),),
        heading="Came later",
    ),
    Figure(
        "gaps_open",
        "Messages that causal histories name and no tap has mirrored yet.",
        report=("gaps.open",),
        series=(gauge("sds_dependencies_missing").of(),),
        heading="Open now",
        column=8,
    ),
    Figure(
        "gap_duration",
        "Time from the first frame that names a missing dependency to the first copy "
        "of this dependency.",
        Unit.DURATIONS,
        report=("gap_ms",),
        series=(histogram("sds_dependency_gap_seconds").of(),),
        heading="Filled",
        percentiles=(Percentile(95),),
    ),
)
