"""Compares this machine's clock with the clocks of Kafka and of taps.

If a record's time is more than a minute ahead of this machine's clock, the record
becomes a dead letter. If this machine's clock is slow, this happens to live records
that have the right time (docs/clock.md).
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
"""Largest difference between clocks that is not reported.

It is equal to the time between two heartbeats of a tap.
"""

WRONG_MS = 30_000
"""Difference between clocks above which an alert fires.

It is half of `record.MAX_AHEAD_MS`, above which records become dead letters.
"""

_CALM = 0.8
"""Fraction of a limit to which a difference must fall after it exceeded the limit.

Until then, the difference still counts as too large.
"""

_RECORDS = 3
"""Minimum number of new records that together show how far a tap's clock is ahead.

Single records may have arbitrary times.
"""

_WINDOW_S = 60.0
"""Number of seconds for which a new record is used to measure its tap's clock.

In one minute, a tap sends twelve heartbeats. At least one of them usually arrives
almost without delay.
"""

_MOST_TAPS = 1_000
"""Maximum number of taps whose clocks are tracked.

The number is limited, because senders can invent taps.
"""

_LONGEST_NAME = 1_000
"""Maximum length of the name of a tap whose clock is tracked, in characters.

The length is limited, because senders choose the names.
"""


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
            milliseconds; negative if they are behind. The value is the median of one
            value for each tap; if the number of taps is even, the lower middle value.
            None if no tap has enough new records.
        taps: For each tap, how far its clock is ahead of Kafka's clock, milliseconds;
            negative if it is behind. If Kafka does not report its time, taps are
            compared with this machine's clock instead. Taps without enough new records
            are omitted.
    """

    behind_ms: int | None = None
    records_ahead_ms: int | None = None
    taps: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def skewed_taps(self) -> Mapping[str, int]:
        """The entries of `taps` that are more than `WRONG_MS` ahead or behind."""
        return {tap: ms for tap, ms in self.taps.items() if abs(ms) > WRONG_MS}

    @property
    def difference_ms(self) -> int:
        """How far this machine's clock seems to be behind, milliseconds.

        The value is negative if this machine's clock is ahead of Kafka's clock. If
        Kafka's clock is unknown, this machine's clock is compared with new records. If
        new records are behind this machine's clock, the value is 0, because the records
        may have been written late.
        """
        if self.behind_ms is not None:
            return self.behind_ms
        return max(0, self.records_ahead_ms or 0)

    def level(self, before: ClockLevel = ClockLevel.AGREES) -> ClockLevel:
        """Return the severity of the difference; `before` is the previous severity.

        To avoid flapping, the severity decreases only if the difference is clearly
        below the limit of the previous severity.
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
        """A sentence about the difference between the clocks, without a full stop."""
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
        observer: Tap id; empty if the record names no tap.
        time_ms: Record time, Unix ms.
        arrived_ms: Latest time at which the record can have arrived in the topic, Unix
            ms, by this machine's clock.
    """

    observer: str
    time_ms: int
    arrived_ms: int


class TapClocks:
    """Measures how far the clocks of taps are ahead of this machine's clock.

    The lead of a record is its record time, by the tap's clock, minus its arrival time,
    by this machine's clock. The lead is the difference between the two clocks minus the
    record's delay, so the largest leads show the difference best. For each tap, the
    result is the third largest lead of the last minute. The two largest leads are not
    used, because their records may have arbitrary times.
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
        """How far each tap's clock is ahead of this machine's clock, milliseconds.

        Taps without enough new records are omitted.
        """
        return {
            observer: heapq.nlargest(_RECORDS, (ms for _, ms in kept))[-1]
            for observer, kept in self._leads.items()
            if len(kept) >= _RECORDS
        }

    def figures(self, behind_ms: int | None) -> ClockFigures:
        """Return the figures of all clocks; for `behind_ms`, see `ClockFigures`."""
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
