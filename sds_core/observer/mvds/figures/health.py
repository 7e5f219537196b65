"""The verdict, and what makes the figures doubtful: docs/figures.md, 14."""

from __future__ import annotations

from sds_core.observer.figures import (
    Figure,
    Unit,
    counter,
    gauge,
    left_out_counter,
    verdict_gauge,
)
from sds_core.observer.mvds.limits import LeftOut

ENTRIES = (
    verdict_gauge(
        "mvds_group_verdict", "1 for the verdict that the group has, 0 for the others."
    ),
    Figure(
        "verdict",
        "Health of the group, without regard to its taps.",
        Unit.WORD,
        report=("verdict",),
    ),
    Figure(
        "verdict_reason",
        "First reason that held for the verdict.",
        Unit.WORD,
        report=("reason",),
    ),
    Figure(
        "verdict_since_ms",
        "Event time at which the group's verdict began, if that is known.",
        Unit.TIME,
        series=(gauge("mvds_verdict_since_timestamp_seconds").of(),),
    ),
    Figure(
        "remembered_evicted",
        "Entries pushed out of a view's memory by its limit; in the group unknown.",
        series=(counter("mvds_remembered_evicted_total").of(),),
    ),
    left_out_counter(
        "mvds_left_out_total",
        "What limits left out, in the group unknown; large groups or hostile traffic "
        "reach them.",
        LeftOut,
    ),
)
