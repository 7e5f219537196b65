"""The verdict, and what makes the figures doubtful: docs/figures.md, 2 and 8."""

from __future__ import annotations

from collections.abc import Iterable

from sds_core.metrics import MetricKind, Sample
from sds_core.observer.figure_table import Entry
from sds_core.observer.figures import Family, Figure, Unit, counter, gauge
from sds_core.observer.sds.figures import groups
from sds_core.observer.sds.limits import LeftOut
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.verdict import Verdict


def _verdicts(totals: ChannelTotals) -> Iterable[Sample]:
    return [((verdict.value,), int(totals.verdict is verdict)) for verdict in Verdict]


_VERDICT = Family(
    "sds_channel_verdict",
    MetricKind.GAUGE,
    "1 for the verdict that the channel has, 0 for the others.",
    ("verdict",),
    samples=_verdicts,
    summable=False,
)


def _left_out(totals: ChannelTotals) -> Iterable[Sample]:
    return [((one.value,), totals.left_out.get(one, 0)) for one in LeftOut]


_LEFT_OUT = Family(
    "sds_left_out_total",
    MetricKind.COUNTER,
    "What limits left out; only hostile traffic reaches them.",
    ("reason",),
    samples=_left_out,
)


ENTRIES: tuple[Entry, ...] = (
    _VERDICT,
    Figure(
        "verdict",
        Unit.WORD,
        "Health of the channel, without regard to its taps.",
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
        "Event time at which the channel's verdict began.",
        series=(gauge("sds_verdict_since_timestamp_seconds").of(),),
    ),
    Figure(
        "message_id_collisions",
        Unit.COUNT,
        "Frames with a known message id but another sender or Lamport timestamp.",
        report=("message_id_collisions",),
        series=(counter("sds_message_id_collisions_total").of(),),
        group=groups.TRAFFIC,
        heading="Id collisions",
        grave=True,
    ),
    Figure(
        "remembered_evicted",
        Unit.COUNT,
        "Entries pushed out of a channel's memory by its limit before their time.",
        series=(counter("sds_remembered_evicted_total").of(),),
    ),
    _LEFT_OUT,
)
