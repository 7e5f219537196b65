"""Measures a channel's bytes, filters and activity (docs/figures.md, 9)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec

from sds_core.native import native
from sds_core.observer.rule_settings import RuleSettings
from sds_core.observer.sds.filters import Filters, FilterTrace
from sds_core.observer.sds.participants import UNKNOWN, Participants
from sds_core.observer.sds.seen_frames import SeenFrame
from sds_core.observer.sds.totals import BloomGauge, ChannelTotals
from sds_core.wire import estimated_ids, false_positive_rate

_LEAST_GROWTH_MS = 60_000
"""Minimum time over which a filter's growth is estimated.

Ids arrive in bursts, so an estimate over a shorter time would be wrong.
"""

_ONE_PERCENT = 0.01

_FAR_MS = 365 * 86_400_000
"""If a filter needs more time than this to reach the limit of the false-positive rate,
the filter counts as not growing."""


class EpochState(msgspec.Struct, array_like=True):
    """How many messages each participant sent in one epoch of the rate limit.

    Attributes:
        number: Number of the epoch: Unix ms // `ObserverSettings.epoch_ms`.
        sent: Number of first copies and retries that each participant sent in the
            epoch. The key is the participant index.
        last_max: Maximum number of messages that one participant sent in the previous
            epoch.
    """

    number: int = 0
    sent: dict[int, int] = {}
    last_max: int = 0

    @property
    def most(self) -> int:
        """Maximum number of messages that one participant sent in the epoch."""
        return max(self.sent.values(), default=0)


@native
@dataclass(slots=True)
class Capacity:
    """Counts bytes, and sets the gauges of filters, participants and message rates."""

    _settings: RuleSettings
    _totals: ChannelTotals
    _participants: Participants
    _filters: Filters
    _epoch: EpochState

    def frame(self, frame: SeenFrame) -> None:
        """Count the bytes of a frame that is neither a replica nor a duplicate."""
        totals, sizes = self._totals, frame.sizes
        totals.bytes_content += sizes.content
        totals.bytes_history += sizes.history
        totals.bytes_bloom += sizes.bloom
        totals.bytes_repair += sizes.repair
        totals.bytes_other += sizes.other

    def response(self, frame: SeenFrame) -> None:
        """Count the bytes of a response to a repair request."""
        self._totals.repair_bytes_response += sum(frame.sizes)

    def sent_by(self, by: int, clock_ms: int) -> None:
        """Count a first copy or retry that a participant sent in the current epoch."""
        self._begin_epoch(clock_ms)
        if by != UNKNOWN:
            self._epoch.sent[by] = self._epoch.sent.get(by, 0) + 1

    def summarise(self, clock_ms: int) -> None:
        """Set the gauges to their current values."""
        self._begin_epoch(clock_ms)
        totals, since_ms = self._totals, clock_ms - self._settings.lately_ms
        totals.participants_lately = self._participants.lately(since_ms)
        totals.epoch_messages_max = self._epoch.last_max
        most_now, budget = self._epoch.most, self._settings.epoch_messages
        totals.budget_used_now = most_now / budget
        totals.budget_used_last = self._epoch.last_max / budget
        totals.bloom_worst = self._worst_filter(clock_ms)

    def filter_of(self, by: int) -> BloomGauge | None:
        """The newest filter of a participant; None if no filter of it is tracked."""
        trace = self._filters.traces.get(by)
        return None if trace is None else self._gauge(trace)

    def epoch_messages(self, by: int) -> int:
        """Number of first copies and retries of a participant in the current epoch."""
        return self._epoch.sent.get(by, 0)

    def next_change_ms(self, clock_ms: int) -> int | None:
        """When a gauge may next change without a frame, Unix ms; None if never."""
        lately_ms = self._settings.lately_ms
        ends = [t.time_ms + lately_ms for t in self._filters.traces.values()]
        changes = [end for end in ends if end >= clock_ms]
        silence_ms = self._participants.next_silence_ms(clock_ms - lately_ms)
        if silence_ms is not None:
            changes.append(silence_ms + lately_ms)
        if self._epoch.sent or self._epoch.last_max:
            changes.append((self._epoch.number + 1) * self._settings.epoch_ms - 1)
        return min(changes, default=None)

    def _worst_filter(self, clock_ms: int) -> BloomGauge | None:
        since_ms = clock_ms - self._settings.lately_ms
        worst = max(
            (t for t in self._filters.traces.values() if t.time_ms >= since_ms),
            key=lambda t: (false_positive_rate(t.bits_set, t.m_bits, t.k), t.m_bits),
            default=None,
        )
        return None if worst is None else self._gauge(worst)

    def _gauge(self, trace: FilterTrace) -> BloomGauge:
        return BloomGauge(
            trace.bits_set, trace.m_bits, trace.k, self._one_percent_ms(trace)
        )

    def _one_percent_ms(self, trace: FilterTrace) -> int | None:
        """See `BloomGauge`.

        The false-positive rate is 1 % if X/m, the share of set bits, is 0.01^(1/k). The
        filter then holds -(m/k) ln(1 - X/m) ids.
        """
        if trace.grown_from is None:
            return None
        from_ms, from_ids = trace.grown_from
        ids = estimated_ids(trace.bits_set, trace.m_bits, trace.k)
        lasted_ms, grown = trace.time_ms - from_ms, ids - from_ids
        if lasted_ms < _LEAST_GROWTH_MS or grown <= 0:
            return None
        bits = _ONE_PERCENT ** (1 / trace.k) * trace.m_bits
        limit = estimated_ids(int(bits), trace.m_bits, trace.k)
        # If every bit is set, the estimated number of ids is infinite, so the limit is
        # already exceeded.
        left_ms = (limit - ids) / grown * lasted_ms if math.isfinite(ids) else 0
        return trace.time_ms + round(left_ms) if left_ms < _FAR_MS else None

    def _begin_epoch(self, clock_ms: int) -> None:
        epoch, number = self._epoch, clock_ms // self._settings.epoch_ms
        if number == epoch.number:
            return
        just_ended = number == epoch.number + 1
        epoch.last_max = epoch.most if just_ended else 0
        epoch.number = number
        epoch.sent = {}
