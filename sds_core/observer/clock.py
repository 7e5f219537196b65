"""Compares this machine's clock with the clocks of Kafka and of taps.

A record more than a minute ahead of this machine's clock becomes a dead letter. If this
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
"""Largest difference that is not reported: the time between two heartbeats."""

WRONG_MS = 30_000
"""Difference above which an alert fires: half the limit above which records become dead
letters."""

_CALM = 0.8
"""If a difference exceeded a limit, it must fall to this fraction of the limit before
it counts as normal again."""

_RECORDS = 3
"""Number of new records that must agree on a tap's clock, because single records may
have arbitrary times."""

_WINDOW_S = 60.0
"""Number of seconds for which a record counts as evidence for its tap's clock.

In one minute, a tap sends twelve heartbeats. At least one of them usually arrives
almost without delay.
"""

_MOST_TAPS = 1_000
"""Maximum number of taps whose clocks are tracked, because senders can invent taps."""

_LONGEST_NAME = 1_000
"""Maximum length of the name of a tracked tap, in characters, because senders choose
names."""


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
        records_ahead_ms: How far new records are ahead of this machine's clock,
            milliseconds; negative if they are behind. The value is the median of the
            taps; for an even number of taps, the lower middle value. None if no tap has
            enough new records.
        taps: For each tap, how far its clock is ahead of Kafka's clock, milliseconds;
            negative if it is behind. If Kafka does not report its time, this machine's
            clock is used instead. Taps without enough new records are omitted.
    """

    behind_ms: int | None = None
    records_ahead_ms: int | None = None
    taps: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def skewed_taps(self) -> Mapping[str, int]:
        """The entries of `taps` with a difference of more than `WRONG_MS`."""
        return {tap: ms for tap, ms in self.taps.items() if abs(ms) > WRONG_MS}

    @property
    def difference_ms(self) -> int:
        """How far this machine's clock seems to be behind, milliseconds.

        Negative if it is ahead. If Kafka's clock is unknown, this machine's clock is
        compared with new records. Only records ahead of this clock count, because a
        record behind it may have been written late.
        """
        if self.behind_ms is not None:
            return self.behind_ms
        return max(0, self.records_ahead_ms or 0)

    def level(self, before: ClockLevel = ClockLevel.AGREES) -> ClockLevel:
        """Return the severity of the difference; `before` is the previous level.

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
        """A sentence that states the difference, without a full stop."""
        seconds = f"{abs(self.difference_ms) / 1000:,.1f} s"
        if self.behind_ms is None:
            return (
                f"new records are stamped {seconds} ahead of this machine's clock: "
                "it is slow, or the clock of a tap is fast"
            )
        side = "behind" if self.behind_ms >= 0 else "ahead of"
        return f"this machine's clock is {seconds} {side} Kafka's"


class NewRecord(NamedTuple):
    """A record that arrived while the monitor watched the end of the topic.

    Attributes:
        observer: Tap id; empty if the record names none.
        time_ms: Record time, Unix ms.
        arrived_ms: Latest time at which the record can have arrived in the topic, on
            this machine's clock, Unix ms.
    """

    observer: str
    time_ms: int
    arrived_ms: int


class TapClocks:
    """Measures how far the clocks of taps are ahead of this machine's clock.

    The lead of a record is its time, by the tap's clock, minus its arrival, by this
    machine's clock. The lead is the difference of the two clocks minus the delay of the
    record, so the largest leads show the difference best. For each tap, the result is
    the third largest lead of the last minute, because up to two records may have
    arbitrary times.
    """

    def __init__(self) -> None:
        self._leads: dict[str, deque[tuple[float, int]]] = {}

    def observe(self, records: Iterable[NewRecord], now_s: float) -> None:
        """Process new records, in any order; `now_s` is the monotonic time, seconds."""
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
        """For each tap with enough records, how far its clock is ahead, ms."""
        return {
            observer: heapq.nlargest(_RECORDS, (ms for _, ms in kept))[-1]
            for observer, kept in self._leads.items()
            if len(kept) >= _RECORDS
        }

    def figures(self, behind_ms: int | None) -> ClockFigures:
        """Return all figures; for `behind_ms`, see `ClockFigures`."""
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
