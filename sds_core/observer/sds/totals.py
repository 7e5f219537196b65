"""Absolute figures of one channel.

Totals live in the query's state, first in each blob, so they are exactly as
durable as its checkpoint, and leave the job whole: a sink that sets them twice
has the same numbers. What each figure means is section by section in
``docs/figures.md``.

Fields are only ever added, at the end and with a default: an older blob then
decodes into a newer struct.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from sds_core.observer.histogram import Histogram
from sds_core.observer.verdict import Verdict
from sds_core.wire import estimated_ids, false_positive_rate


class BloomGauge(msgspec.Struct, array_like=True, frozen=True):
    """One bloom filter by its fill (observer model, section 9).

    Attributes:
        bits_set: How many bits are 1.
        m_bits: Size in bits.
        k: Number of hash functions.
        one_percent_ms: When its false-positive rate passes 1 % if it goes on
            growing as it did, or passed it; None if it does not grow.
    """

    bits_set: int
    m_bits: int
    k: int
    one_percent_ms: int | None = None

    @property
    def false_positive_ratio(self) -> float:
        """(X/m)^k, in [0, 1]."""
        return false_positive_rate(self.bits_set, self.m_bits, self.k)

    @property
    def ids(self) -> float:
        """How many ids it holds by its fill; infinite when every bit is set."""
        return estimated_ids(self.bits_set, self.m_bits, self.k)


class ChannelTotals(msgspec.Struct, array_like=True):
    """Everything that leaves the job for one channel.

    Counters since the checkpoint's first batch, then the state now. Times are
    event times in Unix milliseconds; None where there is none. `observers` are the
    taps that showed the channel within the horizon.
    """

    first_event_ms: int | None = None
    last_event_ms: int | None = None
    clock_ms: int = 0

    # Frames and copies (section 2); `frames` is keyed "<kind>.<dialect>".
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
    oldest_in_flight_ms: int | None = None
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

    # Health (section 8) and participants (section 9: distinct senders).
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
    epoch_messages_max: int = 0
    bloom_worst: BloomGauge | None = None

    # Repair timing (section 7): what could be checked, and what did not fit.
    requests_timed: int = 0
    requests_early: int = 0
    responses_timed: int = 0
    responses_unexplained: int = 0

    verdict_since_ms: int | None = None

    @property
    def repair_responses(self) -> int:
        """Responses, answering and redundant."""
        return self.repair_answered + self.repair_redundant

    def frames_of(self, kind: str) -> int:
        """Frames of one kind over both dialects."""
        return sum(
            count for key, count in self.frames.items() if key.partition(".")[0] == kind
        )


_MAXIMA = ("clock_ms", "epoch_messages_max")
_FIELDS = msgspec.structs.fields(ChannelTotals)
_COUNTERS = tuple(f.name for f in _FIELDS if f.type is int and f.name not in _MAXIMA)
_HISTOGRAMS = tuple(f.name for f in _FIELDS if f.type is Histogram)


def sum_totals(channels: Iterable[ChannelTotals]) -> ChannelTotals:
    """Totals over channels: sums, participants too, and merged histograms.

    The verdict of the sum is left at its default: there is no verdict over
    channels.
    """
    total = ChannelTotals()
    firsts, lasts, oldest = [], [], []
    blooms: list[BloomGauge] = []
    for channel in channels:
        for name in _COUNTERS:
            setattr(total, name, getattr(total, name) + getattr(channel, name))
        for name in _MAXIMA:
            setattr(total, name, max(getattr(total, name), getattr(channel, name)))
        for name in _HISTOGRAMS:
            getattr(total, name).add(getattr(channel, name))
        for key, count in channel.frames.items():
            total.frames[key] = total.frames.get(key, 0) + count
        firsts.append(channel.first_event_ms)
        lasts.append(channel.last_event_ms)
        oldest.append(channel.oldest_in_flight_ms)
        if channel.bloom_worst is not None:
            blooms.append(channel.bloom_worst)
    total.first_event_ms = min((t for t in firsts if t is not None), default=None)
    total.last_event_ms = max((t for t in lasts if t is not None), default=None)
    total.bloom_worst = max(
        blooms, key=lambda one: one.false_positive_ratio, default=None
    )
    total.oldest_in_flight_ms = min((t for t in oldest if t is not None), default=None)
    return total
