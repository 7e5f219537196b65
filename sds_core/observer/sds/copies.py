"""Recognises duplicates and replicas of frames (docs/figures.md, 2)."""

from __future__ import annotations

import enum

import msgspec

from sds_core.native import native, view
from sds_core.observer.columns import DAMAGED, pack_row, pack_row_steps, unpacked_row
from sds_core.observer.memory import Memory, Remembered
from sds_core.observer.record import NO_HASH, NO_SEQ
from sds_core.observer.rule_settings import RuleSettings
from sds_core.observer.sds.limits import MOST_TAPS, LeftOut
from sds_core.observer.sds.seen_frames import SeenFrame
from sds_core.observer.sds.totals import ChannelTotals


class Copy(enum.Enum):
    """How a frame relates to earlier frames."""

    BROADCAST = enum.auto()
    REPLICA = enum.auto()
    DUPLICATE = enum.auto()


class PackedBroadcasts(msgspec.Struct, array_like=True):
    """The latest broadcast of each distinct frame, oldest first, in encoded columns.

    Attributes:
        contents: Fingerprints of the frames, encoded by `pack_ints`, shape (n,).
        times: Record times of the first copies, Unix ms, encoded by `pack_steps`, shape
            (n,).
        delays: The channel's clock at the first copy, minus the copy's record time, ms,
            encoded by `pack_ints`, shape (n,).
        with_hash: 1 if any copy had a Waku hash, else 0; encoded by `pack_ints`, shape
            (n,).
    """

    contents: bytes = b""
    times: bytes = b""
    delays: bytes = b""
    with_hash: bytes = b""

    @classmethod
    def of(cls, broadcasts: Memory) -> PackedBroadcasts:
        """Encode the broadcasts that a memory holds."""
        contents, clocks, times, with_hash = broadcasts.columns()
        return cls(
            pack_row(view(contents), True),
            pack_row_steps(view(times)),
            pack_row(view(clocks - times), False),
            pack_row(view(with_hash), False),
        )

    def unpacked(self, limit: int) -> Memory:
        """Decode the broadcasts into a memory of at most `limit` broadcasts."""
        times = unpacked_row(self.times, True, True)
        delays = unpacked_row(self.delays, False, False)
        if len(delays) != len(times):
            raise ValueError(DAMAGED)
        clocks = times + delays
        with_hash = unpacked_row(self.with_hash, False, False)
        contents = unpacked_row(self.contents, True, False)
        return Memory(limit, contents, clocks, (times, with_hash))


class CopiesState(msgspec.Struct, array_like=True):
    """Encoded form of `Copies`.

    Attributes:
        numbers: Sequence numbers that were seen from each tap, by tap id.
        hashes: Fingerprints of the Waku hashes that were seen.
        observers: The channel's clock at the latest frame from each tap, Unix ms, by
            tap id.
    """

    numbers: dict[str, Remembered] = {}
    hashes: Remembered = msgspec.field(default_factory=Remembered)
    broadcasts: PackedBroadcasts = msgspec.field(default_factory=PackedBroadcasts)
    observers: dict[str, int] = {}


@native
class Copies:
    """Distinguishes new broadcasts from further copies of earlier broadcasts.

    Only broadcasts in the retention window are remembered.
    """

    _settings: RuleSettings
    _totals: ChannelTotals
    _numbers: dict[str, Memory]
    _hashes: Memory
    _broadcasts: Memory
    _observers: dict[str, int]

    def __init__(
        self,
        settings: RuleSettings,
        totals: ChannelTotals,
        state: CopiesState,
    ) -> None:
        self._settings = settings
        self._totals = totals
        self._numbers = {
            observer: Memory.of(settings.remembered, packed)
            for observer, packed in state.numbers.items()
        }
        self._hashes = Memory.of(settings.remembered, state.hashes)
        self._broadcasts = state.broadcasts.unpacked(settings.remembered)
        self._observers = state.observers

    def classify(self, frame: SeenFrame, clock_ms: int) -> Copy:
        """Classify and remember a frame.

        If `MOST_TAPS` taps are known, any further tap counts as unknown.
        """
        if self._knows_tap(frame.observer):
            self._observers[frame.observer] = clock_ms
            if self._is_duplicate(frame, clock_ms):
                return Copy.DUPLICATE
        if self._is_replica(frame):
            self._remember_hash(frame, clock_ms)
            return Copy.REPLICA
        self._remember_hash(frame, clock_ms)
        self._remember_broadcast(frame, clock_ms)
        return Copy.BROADCAST

    def forget_before(self, clock_ms: int) -> None:
        """Drop entries that were last seen before this time of the clock, Unix ms."""
        for observer in list(self._numbers):
            numbers = self._numbers[observer]
            numbers.forget_before(clock_ms)
            if not len(numbers):
                del self._numbers[observer]
        for observer in [o for o, seen in self._observers.items() if seen < clock_ms]:
            del self._observers[observer]
        self._hashes.forget_before(clock_ms)
        self._broadcasts.forget_before(clock_ms)

    @property
    def oldest_ms(self) -> int | None:
        """Clock when the oldest entry was last seen, Unix ms; None if no entries."""
        oldest = [numbers.oldest_ms for numbers in self._numbers.values()]
        oldest += self._observers.values()
        oldest += (self._hashes.oldest_ms, self._broadcasts.oldest_ms)
        return min([ms for ms in oldest if ms is not None], default=None)

    def observers(self) -> list[str]:
        """Sorted ids of the taps that mirrored the channel in the retention window."""
        return sorted(self._observers)

    def state(self) -> CopiesState:
        """The encoded form."""
        return CopiesState(
            {observer: numbers.packed() for observer, numbers in self._numbers.items()},
            self._hashes.packed(),
            PackedBroadcasts.of(self._broadcasts),
            self._observers,
        )

    def _knows_tap(self, observer: str) -> bool:
        if not observer:
            return False
        if observer in self._observers or len(self._observers) < MOST_TAPS:
            return True
        self._totals.leave_out(LeftOut.TAP)
        return False

    def _is_duplicate(self, frame: SeenFrame, clock_ms: int) -> bool:
        if frame.seq == NO_SEQ:
            return False
        numbers: Memory | None = self._numbers.get(frame.observer)
        if numbers is None:
            numbers = self._numbers[frame.observer] = Memory.of(
                self._settings.remembered
            )
        if frame.seq in numbers:
            return True
        evicted = numbers.add(frame.seq, (clock_ms,))
        if evicted:
            self._totals.remembered_evicted += evicted
        return False

    def _is_replica(self, frame: SeenFrame) -> bool:
        if frame.waku_hash != NO_HASH and frame.waku_hash in self._hashes:
            return True
        earlier = self._broadcasts.facts(frame.content)
        if earlier is None:
            return False
        time_ms, had_hash = earlier
        if had_hash and frame.waku_hash != NO_HASH:
            return False
        if abs(frame.time_ms - time_ms) > self._settings.replica_window_ms:
            return False
        if frame.waku_hash != NO_HASH:
            self._broadcasts.change(frame.content, time_ms, True)
        return True

    def _remember_hash(self, frame: SeenFrame, clock_ms: int) -> None:
        if frame.waku_hash != NO_HASH:
            evicted = self._hashes.add(frame.waku_hash, (clock_ms,))
            if evicted:
                self._totals.remembered_evicted += evicted

    def _remember_broadcast(self, frame: SeenFrame, clock_ms: int) -> None:
        has_hash = frame.waku_hash != NO_HASH
        evicted = self._broadcasts.add(
            frame.content, (clock_ms, frame.time_ms, int(has_hash))
        )
        if evicted:
            self._totals.remembered_evicted += evicted
