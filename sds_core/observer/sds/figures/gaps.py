"""Missing dependencies: docs/figures.md, 6."""

from __future__ import annotations

from typing import Any

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
    "Missing dependencies that arrived or reached their deadline, by outcome.",
    "outcome",
)


def _closed(outcome: str, text: str, heading: str = "", **more: Any) -> Figure:
    """Declare the figure that counts missing dependencies with this outcome."""
    words = outcome.replace("_", " ")
    return Figure(
        f"gaps_{outcome}",
        text,
        report=(f"gaps.{outcome}",),
        series=(_CLOSED.of(outcome),),
        heading=heading or words.capitalize(),
        line=Line("gaps", words),
        **more,
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
    _closed("late", "Missing dependencies that arrived without a repair request."),
    _closed(
        "repaired",
        "Missing dependencies that arrived within the repair window of a request.",
    ),
    _closed(
        "recovered_late",
        "Missing dependencies that arrived after the repair window of the last "
        "request.",
    ),
    _closed(
        "lost",
        "Messages that reached only their sender: others name them, but no participant "
        "showed them by the deadline.",
        "Lost to everybody",
        grave=True,
        retracted="gaps_retracted",
        column=9,
    ),
    _closed(
        "tap_gap",
        "Missing dependencies that no tap mirrored, although the network had them.",
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
        "Messages that causal histories name, but that no tap has seen yet.",
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
