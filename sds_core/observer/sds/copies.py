"""Recognises duplicates and replicas: further copies (docs/figures.md, 2)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from itertools import islice

import msgspec

from sds_core.observer.columns import pack_ints, pack_steps, unpack_ints, unpack_steps
from sds_core.observer.memory import Memory, Remembered, oldest
from sds_core.observer.record import NO_HASH, NO_SEQ
from sds_core.observer.sds.seen_frames import SeenFrame
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.settings import ObserverSettings


class Copy(enum.Enum):
    """How a frame relates to earlier frames."""

    BROADCAST = enum.auto()
    REPLICA = enum.auto()
    DUPLICATE = enum.auto()


class Broadcast(msgspec.Struct):
    """The latest broadcast of one byte string.

    Attributes:
        time_ms: Record time of its first copy, Unix ms.
        clock_ms: The channel's clock at the first copy, Unix ms.
        has_hash: Whether any copy carried a Waku hash.
    """

    time_ms: int
    clock_ms: int
    has_hash: bool


class PackedBroadcasts(msgspec.Struct, array_like=True):
    """Broadcasts in order of age, as packed columns of shape (n,).

    Attributes:
        contents: Fingerprints of the byte strings, packed by `pack_ints`.
        times: Record times, Unix ms, packed by `pack_steps`.
        delays: Time from there to the clock, ms, packed by `pack_ints`.
        with_hash: 1 if any copy carried a Waku hash, packed by `pack_ints`.
    """

    contents: bytes = b""
    times: bytes = b""
    delays: bytes = b""
    with_hash: bytes = b""

    @classmethod
    def of(cls, broadcasts: Mapping[int, Broadcast]) -> PackedBroadcasts:
        """Pack broadcasts, given by content fingerprint."""
        every = broadcasts.values()
        return cls(
            pack_ints(list(broadcasts), signed=True),
            pack_steps([one.time_ms for one in every]),
            pack_ints([one.clock_ms - one.time_ms for one in every]),
            pack_ints([int(one.has_hash) for one in every]),
        )

    def unpacked(self) -> dict[int, Broadcast]:
        """The broadcasts by content fingerprint."""
        columns = zip(
            unpack_ints(self.contents, signed=True),
            unpack_steps(self.times),
            unpack_ints(self.delays),
            unpack_ints(self.with_hash),
            strict=True,
        )
        return {
            content: Broadcast(time_ms, time_ms + delay_ms, bool(with_hash))
            for content, time_ms, delay_ms, with_hash in columns
        }


class CopiesState(msgspec.Struct, array_like=True):
    """Packed form of `Copies`.

    Attributes:
        numbers: Sequence numbers seen, by tap.
        hashes: Fingerprints of Waku hashes seen.
        broadcasts: Broadcasts by content.
        observers: Channel's clock at the latest frame of each tap, Unix ms.
    """

    numbers: dict[str, Remembered] = {}
    hashes: Remembered = msgspec.field(default_factory=Remembered)
    broadcasts: PackedBroadcasts = msgspec.field(default_factory=PackedBroadcasts)
    observers: dict[str, int] = {}


class Copies:
    """Distinguishes broadcasts from their copies within the horizon."""

    def __init__(
        self,
        settings: ObserverSettings,
        totals: ChannelTotals,
        state: CopiesState,
    ) -> None:
        self._settings = settings
        self._totals = totals
        self._numbers = {
            observer: Memory(settings.remembered, packed)
            for observer, packed in state.numbers.items()
        }
        self._hashes = Memory(settings.remembered, state.hashes)
        self._broadcasts = state.broadcasts.unpacked()
        self._observers = state.observers

    def classify(self, frame: SeenFrame, clock_ms: int) -> Copy:
        """Classify the frame, and remember it."""
        if frame.observer:
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
        """Forget entries from before this clock, Unix ms."""
        for observer in list(self._numbers):
            numbers = self._numbers[observer]
            numbers.forget_before(clock_ms)
            if not len(numbers):
                del self._numbers[observer]
        for observer in [o for o, seen in self._observers.items() if seen < clock_ms]:
            del self._observers[observer]
        self._hashes.forget_before(clock_ms)
        for content in oldest(self._broadcasts, lambda one: one.clock_ms < clock_ms):
            del self._broadcasts[content]

    @property
    def oldest_ms(self) -> int | None:
        """Clock of the oldest entry, Unix ms; None if there is no entry."""
        oldest = [numbers.oldest_ms for numbers in self._numbers.values()]
        oldest += self._observers.values()
        oldest.append(self._hashes.oldest_ms)
        oldest += [one.clock_ms for one in islice(self._broadcasts.values(), 1)]
        return min((ms for ms in oldest if ms is not None), default=None)

    def observers(self) -> list[str]:
        """Ids of the taps that saw the channel within the horizon, sorted."""
        return sorted(self._observers)

    def state(self) -> CopiesState:
        """The packed form."""
        return CopiesState(
            {observer: numbers.packed() for observer, numbers in self._numbers.items()},
            self._hashes.packed(),
            PackedBroadcasts.of(self._broadcasts),
            self._observers,
        )

    def _is_duplicate(self, frame: SeenFrame, clock_ms: int) -> bool:
        """Whether the tap has sent this sequence number before; remembers it."""
        if frame.seq == NO_SEQ or not frame.observer:
            return False
        numbers = self._numbers.get(frame.observer)
        if numbers is None:
            numbers = self._numbers[frame.observer] = Memory(self._settings.remembered)
        if frame.seq in numbers:
            return True
        self._totals.remembered_evicted += numbers.add(frame.seq, clock_ms)
        return False

    def _is_replica(self, frame: SeenFrame) -> bool:
        """Whether the frame is a further copy of a broadcast that was seen."""
        if frame.waku_hash != NO_HASH and frame.waku_hash in self._hashes:
            return True
        earlier = self._broadcasts.get(frame.content)
        if earlier is None or (earlier.has_hash and frame.waku_hash != NO_HASH):
            return False
        apart = abs(frame.time_ms - earlier.time_ms)
        if apart > self._settings.replica_window_ms:
            return False
        earlier.has_hash = earlier.has_hash or frame.waku_hash != NO_HASH
        return True

    def _remember_hash(self, frame: SeenFrame, clock_ms: int) -> None:
        if frame.waku_hash != NO_HASH:
            evicted = self._hashes.add(frame.waku_hash, clock_ms)
            self._totals.remembered_evicted += evicted

    def _remember_broadcast(self, frame: SeenFrame, clock_ms: int) -> None:
        if frame.content in self._broadcasts:
            # Removed first, so that the dictionary stays in order of age.
            del self._broadcasts[frame.content]
        self._broadcasts[frame.content] = Broadcast(
            frame.time_ms, clock_ms, frame.waku_hash != NO_HASH
        )
        if len(self._broadcasts) > self._settings.remembered:
            del self._broadcasts[next(iter(self._broadcasts))]
            self._totals.remembered_evicted += 1
