"""The verdict, and what makes the figures doubtful: docs/figures.md, 14."""

from __future__ import annotations

from collections.abc import Iterable

from sds_core.metrics import MetricKind, Sample
from sds_core.observer.figure_table import Entry
from sds_core.observer.figures import Family, Figure, Unit, counter, gauge
from sds_core.observer.mvds.limits import LeftOut
from sds_core.observer.mvds.totals import GroupTotals
from sds_core.observer.verdict import Verdict


def _verdicts(totals: GroupTotals) -> Iterable[Sample]:
    return [((verdict.value,), int(totals.verdict is verdict)) for verdict in Verdict]


_VERDICT = Family(
    "mvds_group_verdict",
    MetricKind.GAUGE,
    "1 for the verdict that the group has, 0 for the others.",
    ("verdict",),
    samples=_verdicts,
    summable=False,
)


def _left_out(totals: GroupTotals) -> Iterable[Sample]:
    return [((one.value,), totals.left_out.get(one, 0)) for one in LeftOut]


_LEFT_OUT = Family(
    "mvds_left_out_total",
    MetricKind.COUNTER,
    "What limits left out, in the group unknown; large groups or hostile traffic reach "
    "them.",
    ("reason",),
    samples=_left_out,
)

ENTRIES: tuple[Entry, ...] = (
    _VERDICT,
    Figure(
        "verdict",
        Unit.WORD,
        "Health of the group, without regard to its taps.",
        report=("verdict",),
    ),
    Figure(
        "verdict_reason",
        Unit.WORD,
        "First reason that held for the verdict.",
        report=("reason",),
    ),
    Figure(
        "verdict_since_ms",
        Unit.TIME,
        "Event time at which the group's verdict began, if that is known.",
        series=(gauge("mvds_verdict_since_timestamp_seconds").of(),),
    ),
    Figure(
        "remembered_evicted",
        Unit.COUNT,
        "Entries pushed out of a view's memory by its limit; in the group unknown.",
        series=(counter("mvds_remembered_evicted_total").of(),),
    ),
    _LEFT_OUT,
)
