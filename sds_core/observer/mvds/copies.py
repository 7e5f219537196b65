"""Recognises duplicate records, and payloads that several taps captured."""

from __future__ import annotations

import enum
from collections import OrderedDict, deque

import msgspec

from sds_core.native import native
from sds_core.observer.fingerprint import fingerprint
from sds_core.observer.memory import Memory, Remembered
from sds_core.observer.mvds.digest import SeenPayload
from sds_core.observer.mvds.limits import MOST_SHOWN
from sds_core.observer.record import NO_SEQ
from sds_core.observer.rule_settings import RuleSettings

_LATE_MS = 8_000
"""How much longer than `replica_window_ms` a payload is remembered for comparison, ms.

The view's clock may advance by more than the times of two copies differ. A short time
is enough, because the copies of a payload are near each other in their partition.
"""


class Copy(enum.Enum):
    """Whether a payload is new, a replica from another tap, or a duplicate record."""

    FIRST = enum.auto()
    REPLICA = enum.auto()
    DUPLICATE = enum.auto()


class Shown(msgspec.Struct, array_like=True):
    """A remembered payload, and the taps that captured it.

    Attributes:
        content, sender, receiver: Fingerprints of the encoded payload and of the ids of
            its two peers.
        time_ms: Event time of the payload's first copy, Unix ms.
    """

    content: int
    sender: int
    receiver: int
    time_ms: int
    clock_ms: int
    taps: list[str]


class CopiesState(msgspec.Struct, array_like=True):
    """Encoded form of `Copies`."""

    numbers: Remembered = msgspec.field(default_factory=Remembered)
    shown: list[Shown] = []


@native
class Copies:
    """Distinguishes the first copy of a payload from its replicas and duplicates.

    Attributes:
        evicted: Number of entries that the limit `remembered` evicted since the model
            last set this number to 0.
    """

    evicted: int
    _settings: RuleSettings
    _numbers: Memory
    # `_ages` has all remembered payloads. `_shown` has the newest `MOST_SHOWN` payloads
    # for each key of content, sender and receiver. In each deque, the oldest payload is
    # first.
    _shown: OrderedDict[tuple[int, int, int], deque[Shown]]
    _ages: deque[Shown]

    def __init__(self, settings: RuleSettings, state: CopiesState) -> None:
        self._settings = settings
        self._numbers = Memory.of(settings.remembered, state.numbers)
        self._shown = OrderedDict()
        self._ages = deque()
        self.evicted = 0
        for one in state.shown:
            self._remember(one)

    def classify(self, payload: SeenPayload, clock_ms: int) -> Copy:
        """Classify a payload, and remember it."""
        if self._is_duplicate(payload, clock_ms):
            return Copy.DUPLICATE
        self._forget_shown(clock_ms)
        key = payload.content, payload.sender, payload.receiver
        for shown in self._shown.get(key, ()):
            if (
                payload.observer not in shown.taps
                and abs(payload.time_ms - shown.time_ms)
                <= self._settings.replica_window_ms
            ):
                shown.taps.append(payload.observer)
                return Copy.REPLICA
        self._remember(Shown(*key, payload.time_ms, clock_ms, [payload.observer]))
        if len(self._ages) > self._settings.remembered:
            self._forget_oldest()
            self.evicted += 1
        return Copy.FIRST

    def forget_old(self, clock_ms: int) -> None:
        """Drop payloads and sequence numbers too old at `clock_ms`, Unix ms."""
        self._numbers.forget_before(clock_ms - self._settings.horizon_ms)
        self._forget_shown(clock_ms)

    def state(self) -> CopiesState:
        """The encoded form."""
        return CopiesState(self._numbers.packed(), list(self._ages))

    def _is_duplicate(self, payload: SeenPayload, clock_ms: int) -> bool:
        if payload.seq == NO_SEQ or not payload.observer:
            return False
        number: int = fingerprint(f"{payload.seq} {payload.observer}")
        if number in self._numbers:
            return True
        self.evicted += self._numbers.add(number, (clock_ms,))
        return False

    def _remember(self, shown: Shown) -> None:
        key = shown.content, shown.sender, shown.receiver
        # `classify` compares a payload with this whole deque. The length is limited,
        # because otherwise each repetition of a payload by one tap would cost more.
        self._shown.setdefault(key, deque(maxlen=MOST_SHOWN)).append(shown)
        self._ages.append(shown)

    def _forget_shown(self, clock_ms: int) -> None:
        oldest_ms: int = clock_ms - self._settings.replica_window_ms - _LATE_MS
        while self._ages and self._ages[0].clock_ms < oldest_ms:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        shown = self._ages.popleft()
        key = shown.content, shown.sender, shown.receiver
        same = self._shown[key]
        if same[0] is shown:
            same.popleft()
        if not same:
            del self._shown[key]
