"""What a channel costs, and how full it is (observer model, section 9)."""

from __future__ import annotations

import msgspec

from sds_core.observer.digest import SeenFrame
from sds_core.observer.filters import Filters
from sds_core.observer.participants import UNKNOWN, Participants
from sds_core.observer.settings import ObserverSettings
from sds_core.observer.totals import ChannelTotals


class EpochState(msgspec.Struct, array_like=True):
    """Messages of one rate-limit epoch.

    Attributes:
        number: Of the epoch: Unix ms // its length.
        sent: First copies in it by participant index.
        last_max: Most of one participant in the epoch before it.
    """

    number: int = 0
    sent: dict[int, int] = {}
    last_max: int = 0


class Capacity:
    """Counts bytes and gauges what is going on now."""

    def __init__(
        self,
        settings: ObserverSettings,
        totals: ChannelTotals,
        participants: Participants,
        filters: Filters,
        epoch: EpochState,
    ) -> None:
        self._settings = settings
        self._totals = totals
        self._participants = participants
        self._filters = filters
        self._epoch = epoch

    def frame(self, frame: SeenFrame) -> None:
        """Count the bytes of a frame that is no copy."""
        totals, sizes = self._totals, frame.sizes
        totals.bytes_content += sizes.content
        totals.bytes_history += sizes.history
        totals.bytes_bloom += sizes.bloom
        totals.bytes_repair += sizes.repair
        totals.bytes_other += sizes.other

    def response(self, frame: SeenFrame) -> None:
        """Count the bytes of a response to a repair request."""
        self._totals.repair_bytes_response += sum(frame.sizes)

    def first_copy_by(self, by: int, clock_ms: int) -> None:
        """A participant published something of its own."""
        self._begin_epoch(clock_ms)
        if by != UNKNOWN:
            self._epoch.sent[by] = self._epoch.sent.get(by, 0) + 1

    def summarise(self, clock_ms: int) -> None:
        """Set the gauges as of the clock."""
        self._begin_epoch(clock_ms)
        totals, since_ms = self._totals, clock_ms - self._settings.lately_ms
        totals.participants_lately = self._participants.lately(since_ms)
        totals.epoch_messages_max = self._epoch.last_max
        totals.bloom_worst = self._filters.worst(clock_ms)

    def next_change_ms(self, clock_ms: int) -> int | None:
        """When a gauge may next change although nothing arrives, as a deadline."""
        lately_ms = self._settings.lately_ms
        changes = [self._filters.next_change_ms(clock_ms)]
        silence_ms = self._participants.next_silence_ms(clock_ms - lately_ms)
        if silence_ms is not None:
            changes.append(silence_ms + lately_ms)
        if self._epoch.sent or self._epoch.last_max:
            changes.append((self._epoch.number + 1) * self._settings.epoch_ms - 1)
        return min((ms for ms in changes if ms is not None), default=None)

    def _begin_epoch(self, clock_ms: int) -> None:
        epoch, number = self._epoch, clock_ms // self._settings.epoch_ms
        if number == epoch.number:
            return
        just_ended = number == epoch.number + 1
        epoch.last_max = max(epoch.sent.values(), default=0) if just_ended else 0
        epoch.number = number
        epoch.sent = {}
