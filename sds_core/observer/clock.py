"""Compares this machine's clock with the clocks of Kafka and of taps.

Records with times more than a minute ahead of this clock become dead letters. If this
clock is slow, live records become dead letters (docs/clock.md).
"""

from __future__ import annotations

import enum
import heapq
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median_low
from types import MappingProxyType
from typing import NamedTuple

NOTABLE_MS = 5_000
"""Maximum difference that is not reported: the time between two heartbeats."""

WRONG_MS = 30_000
"""Difference above which an alert fires: half the limit for dead letters."""

_CALM = 0.8
"""Below this fraction of its limit, a difference counts as normal again."""

_RECORDS = 3
"""Number of a tap's new records that must show a lead, because one record may have any
time."""

_WINDOW_S = 60.0
"""For this number of seconds, a record represents its tap's clock.

In one minute, a tap sends twelve heartbeats. The fastest heartbeat has hardly any
delay.
"""

_MOST_TAPS = 1_000
"""Maximum number of taps that are tracked, because senders can invent them."""

_LONGEST_NAME = 1_000
"""Maximum length of a tracked tap's name, characters; senders choose the names."""


class ClockLevel(enum.IntEnum):
    """Severity of the difference between this machine's clock and other clocks."""

    AGREES = 0
    NOTABLE = 1
    """More than `NOTABLE_MS`."""
    WRONG = 2
    """More than `WRONG_MS`."""


@dataclass(frozen=True, slots=True)
class ClockFigures:
    """This machine's clock, compared with other clocks.

    Attributes:
        behind_ms: Kafka's clock minus this machine's clock, milliseconds; None if Kafka
            does not report its time.
        records_ahead_ms: Times of new records minus this clock, milliseconds; negative
            if the records are behind. The figure is the median of the taps; for an even
            number of taps, the lower middle value. None if no tap has enough new
            records.
        taps: Tap -> how far its clock is ahead of Kafka's, milliseconds; negative if
            slow. If Kafka does not report its time, this machine's clock takes the
            place of Kafka's. Taps without enough new records are omitted.
    """

    behind_ms: int | None = None
    records_ahead_ms: int | None = None
    taps: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def skewed_taps(self) -> Mapping[str, int]:
        """The taps whose clocks are wrong by more than `WRONG_MS`."""
        return {tap: ms for tap, ms in self.taps.items() if abs(ms) > WRONG_MS}

    @property
    def difference_ms(self) -> int:
        """How far this clock seems to be behind, milliseconds; negative if ahead.

        Kafka's clock counts. If Kafka's clock is unknown, the lead of new records over
        this clock counts. An old time proves nothing, because a record may be written
        late.
        """
        if self.behind_ms is not None:
            return self.behind_ms
        return max(0, self.records_ahead_ms or 0)

    def level(self, before: ClockLevel = ClockLevel.AGREES) -> ClockLevel:
        """Return how severe the difference of this machine's clock is.

        To avoid flapping, the level decreases only if the difference is clearly below
        the limit.
        """
        difference_ms = abs(self.difference_ms)
        for level, limit_ms in (
            (ClockLevel.WRONG, WRONG_MS),
            (ClockLevel.NOTABLE, NOTABLE_MS),
        ):
            if difference_ms > (limit_ms * _CALM if before >= level else limit_ms):
                return level
        return ClockLevel.AGREES

    @property
    def sentence(self) -> str:
        """The difference in words, without a full stop."""
        seconds = f"{abs(self.difference_ms) / 1000:,.1f} s"
        if self.behind_ms is None:
            return (
                f"new records are stamped {seconds} ahead of this machine's clock: "
                "it is slow, or the clock of a tap is fast"
            )
        side = "behind" if self.behind_ms >= 0 else "ahead of"
        return f"this machine's clock is {seconds} {side} Kafka's"


class NewRecord(NamedTuple):
    """A record that arrived while the end of the topic was watched.

    Attributes:
        observer: Tap id; empty if the record names none.
        time_ms: Record time, Unix ms.
        arrived_ms: Latest possible time at which the record arrived in the topic, by
            this machine's clock, Unix ms.
    """

    observer: str
    time_ms: int
    arrived_ms: int


class TapClocks:
    """Measures how far the clocks of taps are ahead of this machine's.

    A tap stamps a record before the record arrives. A record's lead is the difference
    of the clocks minus the record's delay. The records with the shortest delay show
    best how far the clocks differ. A delay only makes a lead smaller. For each tap,
    the result is the third largest lead of the last minute, because up to two records
    may have arbitrary times.
    """

    def __init__(self) -> None:
        self._leads: dict[str, deque[tuple[float, int]]] = {}

    def observe(self, records: Iterable[NewRecord], now_s: float) -> None:
        """Process new records, in any order; `now_s` is the monotonic clock."""
        found: dict[str, list[int]] = {}
        for one in records:
            if len(one.observer) > _LONGEST_NAME:
                continue
            found.setdefault(one.observer, []).append(one.time_ms - one.arrived_ms)
        for observer, leads_ms in found.items():
            if observer in self._leads or len(self._leads) < _MOST_TAPS:
                kept = self._leads.setdefault(observer, deque())
                kept.extend((now_s, ms) for ms in heapq.nlargest(_RECORDS, leads_ms))
        for observer, kept in list(self._leads.items()):
            while kept and now_s - kept[0][0] > _WINDOW_S:
                kept.popleft()
            if not kept:
                del self._leads[observer]

    @property
    def ahead_ms(self) -> dict[str, int]:
        """Tap -> how far its clock is ahead of this clock, ms, if known."""
        return {
            observer: heapq.nlargest(_RECORDS, (ms for _, ms in kept))[-1]
            for observer, kept in self._leads.items()
            if len(kept) >= _RECORDS
        }

    def figures(self, behind_ms: int | None) -> ClockFigures:
        """Return all comparisons; for `behind_ms` see `ClockFigures`."""
        ahead_ms = self.ahead_ms
        return ClockFigures(
            behind_ms,
            median_low(ahead_ms.values()) if ahead_ms else None,
            MappingProxyType(
                {
                    observer: ms - (behind_ms or 0)
                    for observer, ms in sorted(ahead_ms.items())
                    if observer
                }
            ),
        )
