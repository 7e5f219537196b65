"""Decides which records are from the future (docs/figures.md, 3).

A record is from the future if its time is more than `MAX_AHEAD_MS` later than the
moment at which it was written to Kafka. Kafka does not store this moment, but orders
the records of a partition by it. Three facts show when a record was written:

- A record was written before the monitor read it.
- A `Look` has the end of a partition at an earlier moment. If a record's offset is at
  or after this end, the record was written after the look.
- A record was written before all records at later offsets. If enough of these records
  have earlier times than the record, their times give an upper bound of the writing
  time, even if the monitor reads the records much later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice, takewhile
from typing import Generic, NamedTuple, Protocol, TypeVar

from sds_core.observer.record import MAX_AHEAD_MS, is_future

LOOKAHEAD = 50
"""Number of offsets after a record whose records show when the record was written.

With a larger number, the records at these offsets would cover too much time. With a
smaller number, all of them could come from a single burst of one tap.
"""


_REFUTING = 3
"""Minimum number of contradicting later records that refute a record's time.

One or two later records may contradict the time only because they are late by chance.
"""


class Look(NamedTuple):
    """The end offset of a partition at the wall time `wall_ms`, Unix ms."""

    end: int
    wall_ms: int


NO_LOOK = Look(0, 0)


class Timed(Protocol):
    """The attributes of a record that this module reads."""

    @property
    def offset(self) -> int:
        """Offset of the record in its partition."""

    @property
    def timestamp_ms(self) -> int:
        """Record time, Unix ms."""


_Record = TypeVar("_Record", bound=Timed)


def is_at_odds(time_ms: int, behind_ms: int) -> bool:
    """Whether the time `behind_ms` of a later record contradicts a record's time.

    Both times are in Unix ms. A later record is a record at a later offset.
    """
    return is_future(time_ms, behind_ms)


def refuted_at_ms(time_ms: int, clock_ms: int, behind: Iterable[int]) -> int | None:
    """Return an upper bound of a record's writing time, if later records show one.

    A later record is a record at a later offset. A later record contradicts the record
    if the later record's time is more than `MAX_AHEAD_MS` before the record's time;
    otherwise, the later record agrees. If a later record contradicts the record, either
    the record is from the future, or the later record is late. If the record is from
    the future, agreeing records are from the future too.

    The function counts contradicting and agreeing records in order of offset. The
    record itself counts as agreeing. The record's time is refuted as soon as the number
    of contradicting records is at least `_REFUTING`, and more than 1.5 times the number
    of agreeing records.

    Args:
        time_ms: Time of the record, Unix ms.
        clock_ms: Maximum time of the records at earlier offsets, Unix ms. A later
            record does not count as contradicting if its time is more than
            `MAX_AHEAD_MS` before `clock_ms`.
        behind: Times of the later records, in order of offset, Unix ms.

    Returns:
        The maximum time of the contradicting records, Unix ms; None if the record's
        time is not refuted.
    """
    refuting_ms: list[int] = []
    agreeing = 1
    for behind_ms in behind:
        if not is_at_odds(time_ms, behind_ms):
            agreeing += 1
        elif behind_ms >= clock_ms - MAX_AHEAD_MS:
            refuting_ms.append(behind_ms)
            if len(refuting_ms) >= max(_REFUTING, 3 * agreeing // 2 + 1):
                return max(refuting_ms)
    return None


class Foresight(Generic[_Record]):
    """Decides, in order, which records of one partition are from the future.

    If a record's time is far after the times of all earlier records, the record waits
    until enough records at later offsets are known.

    Args:
        clock_ms: Maximum time of the records before the first record that is given to
            `add`, Unix ms.
        admitted_ms: Wall time at which the monitor reads the records, Unix ms.
    """

    def __init__(self, clock_ms: int, admitted_ms: int, look: Look = NO_LOOK) -> None:
        self._clock_ms = clock_ms
        self._admitted_ms = admitted_ms
        self._look = look
        self._waiting: deque[_Record] = deque()

    @property
    def waits(self) -> bool:
        """Whether any added record is not decided yet."""
        return bool(self._waiting)

    def add(self, record: _Record) -> Iterable[tuple[_Record, int]]:
        """Add the record at the next offset.

        Returns:
            The records that are now decided. Each has the latest time at which it may
            have been written, Unix ms, for `record.is_future`.
        """
        time_ms = record.timestamp_ms
        if (
            not self._waiting
            and time_ms <= self._clock_ms + MAX_AHEAD_MS
            and not is_future(time_ms, self._admitted_ms)
        ):
            self._clock_ms = max(self._clock_ms, time_ms)
            return ((record, self._admitted_ms),)
        self._waiting.append(record)
        return self._settled(record.offset)

    def finish(self, behind: Iterable[_Record] = ()) -> list[tuple[_Record, int]]:
        """Decide the records that still wait; the result is as in `add`.

        Args:
            behind: The records after the last added record. They must cover `LOOKAHEAD`
                offsets, or be all records that existed at `admitted_ms`. The result
                does not contain these records.
        """
        rest = len(self._waiting)
        self._waiting.extend(behind)
        return self._settled(None)[:rest]

    def _settled(self, reached: int | None) -> list[tuple[_Record, int]]:
        """Decide waiting records until one needs records at offsets after `reached`.

        If `reached` is None, decide all waiting records.
        """
        settled = []
        while self._waiting:
            record = self._waiting[0]
            time_ms = record.timestamp_ms
            written_ms = self._admitted_ms
            if self._is_doubtful(record):
                last = record.offset + LOOKAHEAD
                if reached is not None and reached < last:
                    break
                behind = (
                    one.timestamp_ms
                    for one in takewhile(
                        lambda one, last=last: one.offset <= last,  # type: ignore[misc]
                        islice(self._waiting, 1, None),
                    )
                )
                refuted_ms = refuted_at_ms(time_ms, self._clock_ms, behind)
                written_ms = written_ms if refuted_ms is None else refuted_ms
            if not is_future(time_ms, written_ms):
                self._clock_ms = max(self._clock_ms, time_ms)
            settled.append((self._waiting.popleft(), written_ms))
        return settled

    def _is_doubtful(self, record: _Record) -> bool:
        time_ms = record.timestamp_ms
        return (
            time_ms > self._clock_ms + MAX_AHEAD_MS
            and not is_future(time_ms, self._admitted_ms)
            and not was_written_by_then(record, self._look)
        )


def was_written_by_then(record: Timed, look: Look) -> bool:
    """Whether a look at the partition proves that a record is not from the future.

    If a record's offset is at least `look.end`, the record was written after the look.
    If its time is also at most `MAX_AHEAD_MS` after the look, it is not from the
    future.
    """
    return record.offset >= look.end and not is_future(
        record.timestamp_ms, look.wall_ms
    )
