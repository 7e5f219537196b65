"""Records the verdict shown in each minute of wall time (docs/figures.md, 8).

The shown verdict is a view's verdict, or BLIND if the view cannot be judged because its
taps miss too much. Minutes in which the monitor was down, stopped or lagging count as
not watched. If a view has several verdicts in a minute, the worst counts.

Each change of a view's verdict is recorded as a row. Each view also has a row at the
start of each day, so the rows of a day can be read without earlier rows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from sds_core.observer.minutes import MINUTE_MS
from sds_core.observer.verdict import Verdict
from sds_core.observer.view_totals import ViewTotals

NOT_WATCHED = "not_watched"
"""Replaces the verdict in minutes in which a view had no valid verdict."""

WORST_FIRST = (
    Verdict.FAILING.value,
    Verdict.BLIND.value,
    Verdict.DEGRADED.value,
    # This value is worse than the following verdicts. If part of a minute was not
    # watched, a good verdict in the other part does not count.
    NOT_WATCHED,
    Verdict.WARMING_UP.value,
    Verdict.QUIET.value,
    Verdict.OK.value,
)
"""All values of `ShownVerdict.verdict`, from worst to best.

If a view has several of these values in a minute, the worst counts.
"""

DAY_MS = 86_400_000

_STOPPED = "stopped"
_FORGOTTEN = "forgotten"

_RANK = {verdict: rank for rank, verdict in enumerate(WORST_FIRST)}

SET_BACK_MS = 3_600_000
"""If the clock is set back by more than this time, some rows count no more.

These are the rows of minutes after the clock's new time: rows ahead.
"""


class ShownVerdict(msgspec.Struct, array_like=True, tag=True, frozen=True):
    """A row: a view's shown verdict from a minute on.

    The row is valid until the view's next row begins or the day (UTC) ends. The tag,
    which is the name of this class, is persisted.

    Attributes:
        minute_ms: Start of the minute, Unix ms of wall time; a multiple of 60,000.
        verdict: One of `WORST_FIRST`.
        reason: Reason of the verdict, as one word.
    """

    minute_ms: int
    verdict: str
    reason: str


class Span(NamedTuple):
    """A period in which a view had the same shown verdict and reason in each minute.

    Attributes:
        begin_ms, end_ms: Start (inclusive) and end (exclusive), Unix ms.
        verdict, reason: See `ShownVerdict`.
    """

    begin_ms: int
    end_ms: int
    verdict: str
    reason: str


def day_begin_ms(unix_ms: int) -> int:
    """Return the start of the UTC day that contains a time, Unix ms."""
    return unix_ms // DAY_MS * DAY_MS


def spans_of(rows: Sequence[ShownVerdict], since_ms: int, until_ms: int) -> list[Span]:
    """Return the periods of a view in [since_ms, until_ms), in order.

    Periods that no row covers are omitted.

    Args:
        rows: The view's rows from the start of the day of `since_ms` on, in order.
        since_ms: Unix ms, a multiple of 60,000.
        until_ms: Unix ms, a multiple of 60,000.
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
    """Return the number of minutes for each value in `WORST_FIRST`."""
    minutes = dict.fromkeys(WORST_FIRST, 0)
    for span in spans:
        minutes[span.verdict] += (span.end_ms - span.begin_ms) // MINUTE_MS
    return minutes


def worst(shown: Sequence[Span]) -> Span:
    """Return the period with the worst verdict; the first one if several have it.

    The list must not be empty.
    """
    return min(shown, key=lambda span: _RANK[span.verdict])


_Shown = tuple[str, str]
"""A verdict, and its reason."""


class VerdictLog:
    """Tracks the shown verdicts of views of one kind, and returns a row at each change.

    If a view's verdict becomes worse, `observe` returns the row immediately. So if the
    process is killed, only rows of the last second are lost. If the verdict becomes
    better, `observe` returns the row when the minute has ended.

    Args:
        rows: The newest row of each view, from an earlier run.
        observed_ms: When the earlier run last called `observe`, Unix ms of wall time;
            None if no earlier run is known.
        ahead: The first value of the attribute.

    Attributes:
        ahead: By view, the minutes of stored rows that are later than the clock, in
            order, Unix ms. The history may have these rows too. When the clock passes
            such a minute, a new row takes the place of the old row.
    """

    def __init__(
        self,
        rows: Mapping[str, ShownVerdict] | None = None,
        observed_ms: int | None = None,
        ahead: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        self.ahead = ahead or {}
        known = (rows or {}).items()
        self._rows = {name: row for name, row in known if row.reason != _FORGOTTEN}
        self._minute_ms = 0 if observed_ms is None else _minute_of(observed_ms)
        # Views whose last shown verdict or reason differs from their newest row.
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
        """Process the verdicts that are shown now; return the new rows, in order.

        If a view has several rows for one minute, the last row counts.

        Args:
            views: Totals by view name; their verdicts are the shown verdicts.
            now_ms: Wall time, Unix ms. If the time is earlier than in the previous
                call, but by at most `SET_BACK_MS`, the previous call's minute is used.
            unwatched: Why the verdicts are invalid, as one word; "" if they are valid.
            changed: Names of the views whose verdict may have changed since the last
                call, including new and removed views; None if this is not known.
            paused: Whether the monitor showed no verdicts for some time since the last
                call.
        """
        minute_ms = _minute_of(now_ms)
        if minute_ms < self._minute_ms - SET_BACK_MS:
            self._rows, self._due, self._minute_ms = {}, set(), 0
            # A view whose verdict has not changed needs a new row, too.
            changed = None
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
        """Record that no verdicts were shown from the last call until `minute_ms`."""

        def shown(_: str) -> _Shown:
            return NOT_WATCHED, _STOPPED

        names = list(self._rows)
        self._sample(self._minute_ms, names, shown)
        if minute_ms > self._minute_ms:
            self._sample(self._minute_ms + MINUTE_MS, names, shown)
        # A pause may last several days. A day without any row counts as not watched, so
        # only the day of `minute_ms` needs a row.
        self._sample(max(self._minute_ms, day_begin_ms(minute_ms)), names, shown)
        self._supersede(minute_ms - MINUTE_MS)
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
            self._supersede(minute_ms - MINUTE_MS)
        for name in names:
            verdict, reason = shown(name)
            row = self._rows.get(name)
            if row is not None and row.verdict == verdict and row.reason == reason:
                # This is the usual case: the verdict and its reason are the same.
                if is_new_day:
                    self._add(name, ShownVerdict(minute_ms, row.verdict, reason))
            elif reason == _FORGOTTEN and (row is None or is_new_day):
                self._rows.pop(name, None)
            elif row is None or is_first or _RANK[verdict] < _RANK[row.verdict]:
                self._add(name, ShownVerdict(minute_ms, str(verdict), reason))
            else:
                self._due.add(name)
        if is_first:
            self._supersede(minute_ms)

    def _supersede(self, until_ms: int) -> None:
        """Add a row for each minute until `until_ms` that has a row ahead."""
        if not self.ahead:
            return
        left: dict[str, Sequence[int]] = {}
        for name, minutes in self.ahead.items():
            row = self._rows.get(name)
            shown = (NOT_WATCHED, _FORGOTTEN)
            if row is not None:
                shown = (row.verdict, row.reason)
            passed = bisect_right(minutes, until_ms)
            self._found += [(name, ShownVerdict(m, *shown)) for m in minutes[:passed]]
            if passed < len(minutes):
                left[name] = minutes[passed:]
        self.ahead = left

    def _add(self, name: str, row: ShownVerdict) -> None:
        self._found.append((name, row))
        if row.reason == _FORGOTTEN:
            del self._rows[name]
        else:
            self._rows[name] = row


def _minute_of(unix_ms: int) -> int:
    return unix_ms - unix_ms % MINUTE_MS
