"""Totals of one SDS channel.

Each blob of the query's state begins with totals. The state is part of the checkpoint,
so totals are as durable as the checkpoint. The job publishes totals as absolute values,
so it does no harm if a sink writes the same value twice. ``docs/figures.md`` defines
each figure. The modules in ``figures/`` beside this file define the names under which
the figure is published.

Add new fields only at the end and with a default, so that older blobs can still be
decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec

from sds_core.observer.histogram import Histogram
from sds_core.observer.minutes import Minute
from sds_core.observer.sds.evidence import Evidence
from sds_core.observer.sds.limits import LeftOut
from sds_core.observer.sds.suspects import Suspects
from sds_core.observer.settings import ObserverSettings
from sds_core.observer.summing import counted_part, greatest, least
from sds_core.observer.verdict import Verdict
from sds_core.wire import estimated_ids, false_positive_rate


class BloomGauge(msgspec.Struct, array_like=True, frozen=True):
    """The fill of one bloom filter (``docs/figures.md``, 9).

    Attributes:
        one_percent_ms: Time at which the false-positive rate passes 1 %, Unix ms,
            extrapolated from the filter's growth. The time may be in the past. None if
            the filter does not grow.
    """

    bits_set: int
    m_bits: int
    k: int
    one_percent_ms: int | None = None

    @property
    def false_positive_ratio(self) -> float:
        """The false-positive rate (X/m)^k, in [0, 1]."""
        return false_positive_rate(self.bits_set, self.m_bits, self.k)

    @property
    def ids(self) -> float:
        """Estimated number of ids in the filter; infinite if all bits are 1."""
        return estimated_ids(self.bits_set, self.m_bits, self.k)


def fullest(gauges: Sequence[BloomGauge]) -> BloomGauge:
    """Return the gauge with the highest false-positive rate; the first if several."""
    return max(gauges, key=lambda gauge: gauge.false_positive_ratio)


def _of_fullest(name: str) -> property:
    def read(totals: ChannelTotals) -> float | None:
        worst = totals.bloom_worst
        return None if worst is None else getattr(worst, name)

    return property(read)


def _of_kind(kind: str) -> property:
    """Make a property: the number of frames of a kind in both dialects together."""

    def read(totals: ChannelTotals) -> int:
        frames = totals.frames.items()
        return sum(count for key, count in frames if key.partition(".")[0] == kind)

    return property(read)


class ChannelTotals(msgspec.Struct, array_like=True):
    """Everything that the job publishes for one channel.

    Counters count from the checkpoint's first batch on. Gauges are values at
    `clock_ms`. Times are event times in Unix milliseconds, or None. `observers`
    contains the ids of the taps that mirrored the channel within the retention window.
    `sds_core.observer.summing` explains how the totals of several channels are added
    up. Section numbers in comments refer to docs/figures.md.
    """

    first_event_ms: Annotated[int | None, least] = None
    last_event_ms: Annotated[int | None, greatest] = None
    clock_ms: Annotated[int, greatest] = 0

    # Frames and copies (section 2). The keys of `frames` are "<kind>.<dialect>".
    frames: dict[str, int] = {}
    replicas: int = 0
    rebroadcasts_repair: int = 0
    rebroadcasts_retry: int = 0
    messages: int = 0
    message_id_collisions: int = 0

    # Acknowledgement (section 4).
    acknowledged_definite: int = 0
    acknowledged_probable: int = 0
    acknowledged_in_time: int = 0
    unacknowledged: int = 0
    unwitnessed: int = 0
    in_flight: int = 0
    oldest_in_flight_ms: Annotated[int | None, least] = None
    definite_latency: Histogram = msgspec.field(default_factory=Histogram)
    probable_latency: Histogram = msgspec.field(default_factory=Histogram)

    # Missing dependencies (section 6).
    gaps_opened: int = 0
    gaps_late: int = 0
    gaps_repaired: int = 0
    gaps_recovered_late: int = 0
    gaps_lost: int = 0
    gaps_tap_gap: int = 0
    gaps_retracted: int = 0
    gaps_open: int = 0
    gap_duration: Histogram = msgspec.field(default_factory=Histogram)

    # Repair (section 7).
    repair_requests: int = 0
    repair_requests_for_received: int = 0
    repair_answered: int = 0
    repair_expired: int = 0
    repair_redundant: int = 0
    repair_response: Histogram = msgspec.field(default_factory=Histogram)

    # Health (section 8) and the number of distinct senders (section 9).
    participants: int = 0
    verdict: Verdict = Verdict.WARMING_UP
    verdict_reason: str = "warming_up"
    remembered_evicted: int = 0
    observers: list[str] = []

    # Delivery per participant (section 5).
    deliveries_first_pass: int = 0
    deliveries_recovered: int = 0
    deliveries_lost: int = 0
    deliveries_retracted: int = 0
    delivery_recovery: Histogram = msgspec.field(default_factory=Histogram)

    # Capacity (section 9).
    bytes_content: int = 0
    bytes_history: int = 0
    bytes_bloom: int = 0
    bytes_repair: int = 0
    bytes_other: int = 0
    repair_bytes_response: int = 0
    participants_lately: int = 0
    epoch_messages_max: Annotated[int, greatest] = 0
    bloom_worst: Annotated[BloomGauge | None, fullest] = None

    # Repair timing (section 7): number of requests and of responses whose time was
    # checked, and number of those that failed the check.
    requests_timed: int = 0
    requests_early: int = 0
    responses_timed: int = 0
    responses_unexplained: int = 0

    verdict_since_ms: int | None = None

    # Number of entries that were dropped because of limits (section 2). The keys are
    # values of `LeftOut`.
    left_out: dict[str, int] = {}

    # Evidence of a bad verdict (section 8). `ChannelMinute` omits this field.
    evidence: Evidence | None = None

    # Encoded `participant_figures.ParticipantTable` (section 5). `ChannelMinute` omits
    # this field.
    participant_table: bytes = b""

    # Rate-limit budget (section 9): the largest share of its budget that any
    # participant used in the current epoch, and in the last complete epoch.
    budget_used_now: Annotated[float, greatest] = 0.0
    budget_used_last: Annotated[float, greatest] = 0.0

    # Segmented messages (section 13).
    segmented: int = 0
    segmented_complete: int = 0
    segmented_incomplete: int = 0
    segmented_open: int = 0
    segments_data: int = 0
    segments_parity: int = 0
    segments_disagreeing: int = 0

    # What the failures behind a bad verdict have in common (section 12).
    # `ChannelMinute` omits this field.
    suspects: Suspects | None = None

    @property
    def frames_all(self) -> int:
        """Frames of all kinds and dialects."""
        return sum(self.frames.values())

    frames_content = _of_kind("content")
    frames_sync = _of_kind("sync")
    frames_ephemeral = _of_kind("ephemeral")

    @property
    def repair_responses(self) -> int:
        """Responses that answered a request, plus redundant responses."""
        return self.repair_answered + self.repair_redundant

    @property
    def requests_on_time(self) -> int:
        """Number of requests whose time was checked, and that were not too early."""
        return self.requests_timed - self.requests_early

    @property
    def responses_explained(self) -> int:
        """Number of checked responses whose time a participant's T_resp explains."""
        return self.responses_timed - self.responses_unexplained

    bloom_false_positive_ratio = _of_fullest("false_positive_ratio")
    bloom_ids = _of_fullest("ids")
    bloom_bits_set = _of_fullest("bits_set")
    bloom_bits = _of_fullest("m_bits")
    bloom_hashes = _of_fullest("k")
    bloom_one_percent_ms = _of_fullest("one_percent_ms")

    @property
    def frames_new(self) -> int:
        """Number of all frames, minus sync frames, minus rebroadcasts.

        A repeated sync frame counts both as a sync frame and as a rebroadcast, so it is
        subtracted twice.
        """
        again = self.rebroadcasts_repair + self.rebroadcasts_retry
        frames: int = self.frames_content + self.frames_ephemeral
        return frames - again

    def verdict_without(
        self, excused: Callable[[int, int], bool], settings: ObserverSettings
    ) -> tuple[Verdict, str]:
        """Return the verdict and its reason if excused evidence does not count."""
        if self.evidence is None:
            return self.verdict, self.verdict_reason
        return self.evidence.verdict_without(excused, settings)

    def leave_out(self, what: LeftOut, count: int = 1) -> None:
        """Record that a limit dropped `count` entries of a kind; `count` may be 0."""
        if count:
            self.left_out[what] = self.left_out.get(what, 0) + count


class ChannelMinute(Minute[ChannelTotals], array_like=True, tag="ChannelMinute"):
    """The figures of a channel at the end of one minute.

    The outbox stores minutes and incidents, and distinguishes them by the tag. The tag
    is persisted.
    """


_GAUGES = (
    "in_flight",
    "gaps_open",
    "participants",
    "participants_lately",
    "segmented_open",
)


def remains_of(totals: ChannelTotals) -> ChannelTotals:
    """Return the counts of a forgotten channel that sums over all channels retain.

    Open events count as if they were evicted (docs/figures.md, 2): messages in flight
    count as unwitnessed, open gaps as tap gaps, and messages with missing segments as
    incomplete.
    """
    return msgspec.structs.replace(
        counted_part(totals, _GAUGES),
        first_event_ms=totals.first_event_ms,
        last_event_ms=totals.last_event_ms,
        unwitnessed=totals.unwitnessed + totals.in_flight,
        gaps_tap_gap=totals.gaps_tap_gap + totals.gaps_open,
        segmented_incomplete=totals.segmented_incomplete + totals.segmented_open,
    )
