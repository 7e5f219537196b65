"""Totals of MVDS groups, and of views, which have parts of the groups' totals.

``docs/figures.md``, 14, defines each figure; ``figures.py`` beside this file defines
where it is published. Add fields only at the end, with a default, so that a new release
can decode the blobs of older releases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec

from sds_core.observer.histogram import Histogram
from sds_core.observer.mvds.window import Window, joined
from sds_core.observer.settings import ObserverSettings
from sds_core.observer.summing import greatest, least, sum_totals
from sds_core.observer.verdict import Verdict
from sds_core.observer.view_totals import Excused

UNKNOWN_GROUP = "unknown"
"""Name of the group that counts everything whose group is unknown."""


class GroupTotals(msgspec.Struct, array_like=True):
    """All totals that the job publishes for a group, or one view's part of them.

    Counters count from the first batch of the checkpoint; gauges are values at
    `clock_ms`. Times are event times in Unix milliseconds, or None.
    `sds_core.observer.summing` explains how fields are summed.
    """

    first_event_ms: Annotated[int | None, least] = None
    last_event_ms: Annotated[int | None, greatest] = None
    clock_ms: Annotated[int, greatest] = 0

    payloads: int = 0
    payloads_empty: int = 0
    replicas: int = 0
    messages: int = 0
    records_ack: int = 0
    records_offer: int = 0
    records_request: int = 0
    records_message: int = 0
    bytes_ack: int = 0
    bytes_offer: int = 0
    bytes_request: int = 0
    bytes_message: int = 0
    bytes_other: int = 0
    retransmissions_ack: int = 0
    retransmissions_offer: int = 0
    retransmissions_request: int = 0
    retransmissions_message: int = 0

    deliveries: int = 0
    delivery: Histogram = msgspec.field(default_factory=Histogram)
    ack_latency: Histogram = msgspec.field(default_factory=Histogram)
    sends_messages: int = 0
    sends_deliveries: int = 0
    addressed: int = 0
    acknowledged_in_time: int = 0
    unacknowledged: int = 0
    unwitnessed: int = 0
    in_flight: int = 0
    resolved: int = 0

    duplicates: int = 0
    needless_offers: int = 0
    unrequested_offers: int = 0
    unanswered_requests: int = 0

    remembered_evicted: int = 0
    left_out: dict[str, int] = {}

    verdict: Verdict = Verdict.WARMING_UP
    verdict_reason: str = "warming_up"
    verdict_since_ms: int | None = None
    observers: list[str] = []
    # The evidence for the verdict: a momentary value, not a counter.
    window: Annotated[Window, joined] = msgspec.field(default_factory=Window)

    @property
    def payloads_filled(self) -> int:
        """Number of payloads that are not empty."""
        return self.payloads - self.payloads_empty

    @property
    def offers_of_use(self) -> int:
        """Number of OFFERs that are not needless."""
        return self.records_offer - self.needless_offers

    @property
    def messages_of_use(self) -> int:
        """Number of MESSAGEs that are not duplicates."""
        return self.records_message - self.duplicates

    def verdict_without(
        self, excused: Excused, settings: ObserverSettings
    ) -> tuple[Verdict, str]:
        """Verdict and reason without excused evidence; see `ViewTotals`."""
        del settings
        return self.window.judge_without(self.clock_ms, excused)


class ShardTotals(msgspec.Struct, array_like=True):
    """The totals of one view: its part of the totals of each group.

    Attributes:
        clock_ms: Watermark up to which the figures are valid, Unix ms.
        groups: The view's `GroupTotals` of each group, by name. Each `GroupTotals` is
            encoded separately with MessagePack, so that a batch encodes only the groups
            that it used.
    """

    clock_ms: int = 0
    groups: dict[str, msgspec.Raw] = {}


_GROUP_DECODER = msgspec.msgpack.Decoder(GroupTotals)


def unpack_group(raw: msgspec.Raw) -> GroupTotals:
    """Decode the totals of a group."""
    return _GROUP_DECODER.decode(raw)


def as_of(totals: GroupTotals, clock_ms: int) -> GroupTotals:
    """Return a group's totals with the window and verdict at `clock_ms`, Unix ms."""
    window = totals.window.at(clock_ms)
    verdict, reason = window.judge(clock_ms)
    since_ms = None
    if verdict is Verdict.WARMING_UP:
        since_ms = window.began_ms
    elif verdict is Verdict.QUIET and window.message_ms is not None:
        since_ms = window.message_ms + window.rule.window_ms
    return msgspec.structs.replace(
        totals,
        clock_ms=clock_ms,
        verdict=verdict,
        verdict_reason=reason,
        verdict_since_ms=since_ms,
        observers=sorted(window.taps),
        window=window,
    )


def groups_of(totals: ShardTotals) -> Mapping[str, GroupTotals]:
    """Divide a view's totals into the totals of each group, by group name."""
    return {
        name: as_of(unpack_group(raw), totals.clock_ms)
        for name, raw in totals.groups.items()
    }


def join(parts: Sequence[GroupTotals]) -> GroupTotals:
    """Join the parts of a group from one or more views into the group's totals."""
    added = sum_totals(GroupTotals, parts)
    return as_of(added, added.clock_ms)
