"""The verdicts that were shown, minute by minute of wall time (docs/figures.md, 8).

What was shown is the verdict after blindness was judged; while the monitor was down,
stopped or behind, nothing was shown that holds: those minutes are not watched. Of each
minute the worst counts. There is a row for each change, and one for each view at the
begin of each day, so that the rows of a day need no others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from sds_core.observer.minutes import MINUTE_MS
from sds_core.observer.verdict import Verdict
from sds_core.observer.view_totals import ViewTotals

NOT_WATCHED = "not_watched"
"""Stands for the verdict in minutes in which none was shown that holds."""

WORST_FIRST = (
    Verdict.FAILING.value,
    Verdict.BLIND.value,
    Verdict.DEGRADED.value,
    # A minute is not called fine if part of it was not watched.
    NOT_WATCHED,
    Verdict.WARMING_UP.value,
    Verdict.QUIET.value,
    Verdict.OK.value,
)
"""What may be shown; of a minute the first counts."""

DAY_MS = 86_400_000

_STOPPED = "stopped"
_FORGOTTEN = "forgotten"

_RANK = {verdict: rank for rank, verdict in enumerate(WORST_FIRST)}

SET_BACK_MS = 3_600_000
"""A clock that is set back further had been wrong: what it dated later goes."""


class ShownVerdict(msgspec.Struct, array_like=True, tag=True, frozen=True):
    """What was shown of a view from a minute on, until its next row or the day's end.

    The tag is persisted.

    Attributes:
        minute_ms: Start of the minute, Unix ms of wall time; a multiple of 60,000.
        verdict: One of `WORST_FIRST`.
        reason: Why, as one word.
    """

    minute_ms: int
    verdict: str
    reason: str


class Span(NamedTuple):
    """A time in which the same was shown, minute by minute.

    Attributes:
        begin_ms, end_ms: Its begin and its end, which is not in it, Unix ms.
        verdict: One of `WORST_FIRST`.
        reason: Why, as one word.
    """

    begin_ms: int
    end_ms: int
    verdict: str
    reason: str


def day_begin_ms(unix_ms: int) -> int:
    """Return the begin of a time's day in UTC, Unix ms."""
    return unix_ms // DAY_MS * DAY_MS


def spans_of(rows: Sequence[ShownVerdict], since_ms: int, until_ms: int) -> list[Span]:
    """Return what was shown between two moments, in order; nothing where it is unknown.

    Args:
        rows: Rows of one view, in order, from the begin of the day of `since_ms` on.
        since_ms: The first moment, a whole minute, Unix ms.
        until_ms: The second moment, a whole minute, Unix ms.
    """
    spans: list[Span] = []
    next_ms = until_ms
    for row in reversed(rows):
        end_ms = min(day_begin_ms(row.minute_ms) + DAY_MS, next_ms, until_ms)
        next_ms = row.minute_ms
        begin_ms = max(row.minute_ms, since_ms)
        if begin_ms >= end_ms:
            continue
        shown = row.verdict, row.reason
        if spans and spans[-1].begin_ms == end_ms and spans[-1][2:] == shown:
            end_ms = spans.pop().end_ms
        spans.append(Span(begin_ms, end_ms, *shown))
    spans.reverse()
    return spans


def minutes_by_verdict(spans: Iterable[Span]) -> dict[str, int]:
    """Return the minutes of each of `WORST_FIRST`."""
    minutes = dict.fromkeys(WORST_FIRST, 0)
    for span in spans:
        minutes[span.verdict] += (span.end_ms - span.begin_ms) // MINUTE_MS
    return minutes


def worst(shown: Sequence[Span]) -> Span:
    """Return the worst of some spans, at least one; of equal ones the first."""
    return min(shown, key=lambda span: _RANK[span.verdict])


_Shown = tuple[str, str]
"""A verdict, and its reason."""


class VerdictLog:
    """Follows the views of one kind, and returns a row whenever what is shown changes.

    A verdict that is worse than all others of the running minute is returned
    immediately, a better one when the minute has ended: if the process is killed, only
    the last second is missing.

    Args:
        rows: The newest row of each view, as of an earlier run.
        observed_ms: When that run observed last, Unix ms of wall time; None if there
            was none.
    """

    def __init__(
        self,
        rows: Mapping[str, ShownVerdict] | None = None,
        observed_ms: int | None = None,
    ) -> None:
        known = (rows or {}).items()
        self._rows = {name: row for name, row in known if row.reason != _FORGOTTEN}
        self._minute_ms = 0 if observed_ms is None else _minute_of(observed_ms)
        # Views of which something else was shown last than their row says.
        self._due: set[str] = set()
        self._unwatched: str | None = None
        self._found: list[tuple[str, ShownVerdict]] = []

    def observe(
        self,
        views: Mapping[str, ViewTotals],
        now_ms: int,
        unwatched: str = "",
        changed: Collection[str] | None = None,
        paused: bool = False,
    ) -> list[tuple[str, ShownVerdict]]:
        """Return the new rows, in order; of two of one view and minute the last counts.

        Args:
            views: Totals by name, with the verdicts that are shown.
            now_ms: Wall time, Unix ms. It is taken for the newest one if it is earlier.
            unwatched: Why none of these verdicts holds, as one word; "" if they do.
            changed: Names of the views whose verdict may have changed since the last
                call, because they are new or gone for example; None for all.
            paused: Whether nothing was shown for a while since the last call.
        """
        minute_ms = _minute_of(now_ms)
        if minute_ms < self._minute_ms - SET_BACK_MS:
            self._rows, self._due, self._minute_ms = {}, set(), 0
        minute_ms = max(minute_ms, self._minute_ms)
        if paused and self._minute_ms:
            self._pause(minute_ms)
        if changed is None or paused or unwatched != self._unwatched:
            changed = {*self._rows, *views}
        self._unwatched = unwatched

        def shown(name: str) -> _Shown:
            if unwatched:
                return NOT_WATCHED, unwatched
            totals = views.get(name)
            if totals is None:
                return NOT_WATCHED, _FORGOTTEN
            return totals.verdict, totals.verdict_reason

        self._sample(minute_ms, changed, shown)
        found, self._found = self._found, []
        return found

    def _pause(self, minute_ms: int) -> None:
        """Nothing was shown from the last call to some time in this minute."""

        def shown(_: str) -> _Shown:
            return NOT_WATCHED, _STOPPED

        names = list(self._rows)
        self._sample(self._minute_ms, names, shown)
        if minute_ms > self._minute_ms:
            self._sample(self._minute_ms + MINUTE_MS, names, shown)
        # Days between without a row were not watched either.
        self._sample(max(self._minute_ms, day_begin_ms(minute_ms)), names, shown)
        self._minute_ms = minute_ms

    def _sample(
        self, minute_ms: int, names: Collection[str], shown: Callable[[str], _Shown]
    ) -> None:
        is_first = minute_ms > self._minute_ms
        is_new_day = day_begin_ms(minute_ms) > self._minute_ms
        self._minute_ms = minute_ms
        if is_new_day:
            names = {*self._rows, *names}
        elif is_first:
            names = {*self._due, *names}
        if is_first:
            self._due = set()
        for name in names:
            verdict, reason = shown(name)
            row = self._rows.get(name)
            if row is not None and row.verdict == verdict and row.reason == reason:
                # Most views of most looks.
                if is_new_day:
                    self._add(name, ShownVerdict(minute_ms, row.verdict, reason))
            elif reason == _FORGOTTEN and (row is None or is_new_day):
                self._rows.pop(name, None)
            elif row is None or is_first or _RANK[verdict] < _RANK[row.verdict]:
                self._add(name, ShownVerdict(minute_ms, str(verdict), reason))
            else:
                self._due.add(name)

    def _add(self, name: str, row: ShownVerdict) -> None:
        self._found.append((name, row))
        if row.reason == _FORGOTTEN:
            del self._rows[name]
        else:
            self._rows[name] = row


def _minute_of(unix_ms: int) -> int:
    return unix_ms - unix_ms % MINUTE_MS
