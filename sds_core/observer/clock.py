"""Compares this machine's clock with those of Kafka and of whoever stamps records.

Records stamped more than a minute ahead of this clock are dead letters, so a slow clock
makes dead letters of live records (docs/operations.md, "Clock").
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

NOTABLE_MS = 5_000
"""Difference that is reported: as long as the time between two heartbeats."""

WRONG_MS = 30_000
"""Difference that is an alert: half of what makes live records dead letters."""

_CALM = 0.8
"""Part of a limit below which a difference must fall to be below the limit again."""

_RECORDS = 3
"""New records of a partition that must all be ahead: one may have any time."""

_ACTIVE_MS = 30_000
"""A partition without a new record for this long does not count. As in admission."""


class ClockLevel(enum.IntEnum):
    """How much this machine's clock differs from others."""

    AGREES = 0
    NOTABLE = 1
    """More than `NOTABLE_MS`."""
    WRONG = 2
    """More than `WRONG_MS`."""


@dataclass(frozen=True, slots=True)
class ClockFigures:
    """This machine's clock, compared with others.

    Attributes:
        behind_ms: Kafka's clock less this one, milliseconds; None if Kafka does not
            tell its time.
        records_ahead_ms: Least time by which new records of the active partitions are
            stamped ahead of this clock, milliseconds; negative if one is behind. None
            if too few records are new.
    """

    behind_ms: int | None = None
    records_ahead_ms: int | None = None

    @property
    def difference_ms(self) -> int:
        """By how much this clock seems to be behind, milliseconds; negative if ahead.

        Kafka's clock counts. Without it, new records do if they are ahead: an old time
        stamp shows nothing, because a record may be written late.
        """
        if self.behind_ms is not None:
            return self.behind_ms
        return max(0, self.records_ahead_ms or 0)

    def level(self, before: ClockLevel = ClockLevel.AGREES) -> ClockLevel:
        """How much this clock differs.

        Args:
            before: The level until now. It falls only if the difference is clearly
                below its limit, so that it does not go up and down.
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


@dataclass(slots=True)
class _Newest:
    """The newest record of a partition.

    Attributes:
        offset: Its offset.
        changed_ms: When another record was the newest before, wall time, Unix ms; None
            if none was seen.
        leads_ms: Time by which the last new records were ahead, milliseconds.
    """

    offset: int
    changed_ms: int | None = None
    leads_ms: deque[int] = field(default_factory=lambda: deque(maxlen=_RECORDS))


class RecordLead:
    """Measures how far new records are stamped ahead of this machine's clock.

    A record was stamped before it was read. So if it is ahead, its writer's clock is
    ahead of this one by at least as much.
    """

    def __init__(self) -> None:
        self._partitions: dict[int, _Newest] = {}

    def observe(
        self, newest: Mapping[int, tuple[int, int]], wall_ms: int
    ) -> int | None:
        """Take notice of the newest records; see `ClockFigures.records_ahead_ms`.

        Args:
            newest: Offset and time, Unix ms, of the record with the greatest time of
                each partition.
            wall_ms: This machine's clock, Unix ms.
        """
        for partition, (offset, time_ms) in newest.items():
            known = self._partitions.setdefault(partition, _Newest(offset))
            if known.offset != offset:
                known.offset, known.changed_ms = offset, wall_ms
                known.leads_ms.append(time_ms - wall_ms)
        active = [
            one
            for one in self._partitions.values()
            if one.changed_ms is not None and wall_ms - one.changed_ms <= _ACTIVE_MS
        ]
        if not active or any(len(one.leads_ms) < _RECORDS for one in active):
            return None
        return min(min(one.leads_ms) for one in active)
