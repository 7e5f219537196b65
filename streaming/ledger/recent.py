"""Stores the figures of views per minute for the last hour, also without a history.

The rows of the table ``minutes`` are in order of time, so the rows of one minute, from
all channels, are on few pages of the file. For each channel, the table ``baseline`` has
the last figures before the channel's rows in ``minutes``. The table ``fields`` has the
names of the values in the columns ``figures``.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from connectors.history.schema import Row
from sds_core.observer.growth import CountedValue, Recorded, counted_values
from sds_core.observer.kinds import AnyKind
from sds_core.observer.minutes import MINUTE_MS, Minute
from streaming.ledger.ledger import Ledger

RECENT_MS = 66 * MINUTE_MS
"""How long the figures of a minute are stored, ms.

The page's "last hour" is rounded up to as much as 65 minutes; 1 minute is a reserve.
"""

_KEPT = 1_000
"""If more channels than this are cached, `RecentMinutes.steps` empties its cache.

The cached steps of a channel take about 10 kB.
"""

_STORE = """
INSERT INTO minutes (end_ms, name, figures, prefix) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET figures = excluded.figures
"""

_MOVE = """
INSERT INTO baseline SELECT prefix, name, end_ms, figures FROM minutes
WHERE prefix = ? AND end_ms <= ? ORDER BY end_ms
ON CONFLICT DO UPDATE SET end_ms = excluded.end_ms, figures = excluded.figures
WHERE excluded.end_ms >= baseline.end_ms
"""

_NAMES = """
SELECT name FROM minutes WHERE prefix = ? UNION
SELECT name FROM baseline WHERE prefix = ?
"""

_DELETE_MOVED = "DELETE FROM minutes WHERE prefix = ? AND end_ms <= ?"

_BASELINE = "SELECT name, end_ms, figures FROM baseline WHERE prefix = ?"

_AT = """
SELECT name, end_ms, figures FROM minutes
WHERE prefix = ? AND end_ms <= ? ORDER BY end_ms
"""

# The query looks up the channel's row of each minute separately. A condition on a range
# of minutes would read the rows of all channels.
_OF_CHANNEL = """
SELECT end_ms, figures FROM minutes
WHERE prefix = ? AND end_ms IN (SELECT value FROM json_each(?)) AND name = ?
ORDER BY end_ms
"""


class RecentMinutes:
    """The figures of each channel at the end of each minute in which they changed.

    In this class, "channel" means a view or group of any kind. If another release has
    stored a different set of figures, all stored figures of the kind are dropped.
    """

    def __init__(self, ledger: Ledger, kind: AnyKind) -> None:
        self._ledger = ledger
        self._prefix = kind.prefix
        self._table = kind.published
        self._values = msgspec.msgpack.Decoder(list[CountedValue])
        self._lock = threading.Lock()
        self._found: tuple[int, dict[str, Recorded]] | None = None
        self._steps: tuple[tuple[int, ...], dict[str, list[Recorded]]] = (), {}
        names = " ".join(self._table.counted)
        with ledger.transaction():
            query = "SELECT names FROM fields WHERE prefix = ?"
            if ledger.value(query, self._prefix) != names:
                for table in ("minutes", "baseline", "fields"):
                    delete = f"DELETE FROM {table} WHERE prefix = ?"  # noqa: S608 - ours
                    ledger.write(delete, self._prefix)
                ledger.write("INSERT INTO fields VALUES (?, ?)", self._prefix, names)

    def record(self, minutes: Mapping[str, Sequence[Minute[Any]]]) -> None:
        """Store each channel's minutes, given in order of time; drop old minutes."""
        if not minutes:
            return
        newest_ms = max(_end_ms(ended[-1]) for ended in minutes.values())
        rows = [
            (_end_ms(one), channel, self._packed(one.totals), self._prefix)
            for channel, ended in minutes.items()
            for one in _needed(ended, newest_ms - RECENT_MS)
        ]
        rows.sort()
        with self._ledger.transaction():
            self._ledger.write_all(_STORE, rows)
            before = self._prefix, self._newest_ms() - RECENT_MS
            self._ledger.write(_MOVE, *before)
            self._ledger.write(_DELETE_MOVED, *before)
            self._ledger.after_commit(partial(self._drop_answers_without, rows))

    def begin(self, totals: Mapping[str, Any], clock_ms: int) -> None:
        """Store the `totals` of channels that have no stored figures yet.

        The totals are stored as of the minute of `clock_ms`, Unix ms.
        """
        end_ms = clock_ms // MINUTE_MS * MINUTE_MS
        with self._ledger.transaction():
            rows = self._ledger.rows(_NAMES, self._prefix, self._prefix)
            known = {channel for (channel,) in rows}
            self._ledger.write_all(
                "INSERT INTO baseline VALUES (?, ?, ?, ?)",
                [
                    (self._prefix, channel, end_ms, self._packed(one))
                    for channel, one in totals.items()
                    if channel not in known
                ],
            )
            self._ledger.after_commit(self._drop_answers)

    def forget(self, channel: str) -> None:
        """Drop all figures of a channel."""
        with self._ledger.transaction():
            where = "WHERE prefix = ? AND name = ?"
            for table in ("minutes", "baseline"):
                delete = f"DELETE FROM {table} {where}"  # noqa: S608 - ours
                self._ledger.write(delete, self._prefix, channel)
            self._ledger.after_commit(self._drop_answers)

    def at(self, at_ms: int) -> Mapping[str, Recorded]:
        """Return the figures that each channel had at a moment in the last hour.

        The result is cached, because the page requests the same moment for five
        minutes.
        """
        with self._lock:
            if self._found is None or self._found[0] != at_ms:
                self._found = at_ms, self._find(at_ms)
            return self._found[1]

    def steps(
        self, channels: Collection[str], since_ms: int, until_ms: int, step_ms: int
    ) -> dict[str, list[Recorded]]:
        """Return the last minute of each channel in each step of `step_ms`.

        The steps divide the time from `since_ms` to `until_ms`. Both are ends of
        minutes, Unix ms of event time. A minute belongs to the step in which it ends;
        the end of a step belongs to this step, not to the next. Results are cached.
        """
        asked = since_ms, until_ms, step_ms
        with self._lock:
            if self._steps[0] != asked or len(self._steps[1]) > _KEPT:
                self._steps = asked, {}
            kept = self._steps[1]
            missing = [channel for channel in channels if channel not in kept]
            if missing:
                kept |= self._find_steps(missing, *asked)
            return {channel: kept[channel] for channel in channels}

    def rows(self, channel: str, since_ms: int, until_ms: int) -> list[Row]:
        """Return the minutes of a channel that begin in [since_ms, until_ms), in order.

        The rows have the form of the history's rows, but only the figures
        `FigureTable.grown`.
        """
        with self._ledger.snapshot():
            baseline = self._ledger.rows(
                "SELECT end_ms, figures FROM baseline WHERE prefix = ? AND name = ?",
                self._prefix,
                channel,
            )
            ends = self._ends(since_ms)
            later = self._ledger.rows(_OF_CHANNEL, self._prefix, ends, channel)
        return [
            {self._table.names.label: channel, "minute": end_ms - MINUTE_MS}
            | self._columns(self._recorded(end_ms, packed))
            for end_ms, packed in baseline + later
            if since_ms <= end_ms - MINUTE_MS < until_ms
        ]

    def _drop_answers_without(self, rows: Sequence[tuple[int, str, Any, str]]) -> None:
        with self._lock:
            if self._found is not None and rows[0][0] <= self._found[0]:
                self._found = None
            asked, kept = self._steps
            for end_ms, channel, *_ in rows:
                if kept and end_ms <= asked[1]:
                    kept.pop(channel, None)

    def _drop_answers(self) -> None:
        with self._lock:
            self._found = None
            self._steps = (), {}

    def _find(self, at_ms: int) -> dict[str, Recorded]:
        with self._ledger.snapshot():
            rows = self._ledger.rows(_BASELINE, self._prefix)
            rows += self._ledger.rows(_AT, self._prefix, at_ms)
        packed = {channel: row for channel, *row in rows}
        return {channel: self._recorded(*row) for channel, row in packed.items()}

    def _find_steps(
        self, channels: Collection[str], since_ms: int, until_ms: int, step_ms: int
    ) -> dict[str, list[Recorded]]:
        ends = json.dumps(list(range(since_ms + MINUTE_MS, until_ms + 1, MINUTE_MS)))
        found: dict[str, list[Recorded]] = {}
        with self._ledger.transaction():
            for channel in channels:
                rows = self._ledger.rows(_OF_CHANNEL, self._prefix, ends, channel)
                last = {
                    (end_ms - since_ms - 1) // step_ms: (end_ms, packed)
                    for end_ms, packed in rows
                }
                found[channel] = [self._recorded(*row) for row in last.values()]
        return found

    def _newest_ms(self) -> int:
        query = "SELECT max(end_ms) FROM minutes WHERE prefix = ?"
        return int(self._ledger.value(query, self._prefix) or 0)

    def _ends(self, since_ms: int) -> str:
        newest_ms = self._newest_ms()
        first_ms = max(since_ms, newest_ms - RECENT_MS)
        begin_ms = -(-first_ms // MINUTE_MS) * MINUTE_MS
        return json.dumps(list(range(begin_ms, newest_ms + 1, MINUTE_MS)))

    def _columns(self, recorded: Recorded) -> Row:
        columns = {one.field: self._table.column_of(one) for one in self._table.grown}
        named = zip(self._table.counted, recorded.values, strict=True)
        return {columns[name]: value for name, value in named if name in columns}

    def _packed(self, totals: Any) -> bytes:
        return msgspec.msgpack.encode(counted_values(self._table, totals))

    def _recorded(self, end_ms: int, packed: bytes) -> Recorded:
        with self._ledger.decoding("figures"):
            values = self._values.decode(packed)
        if len(values) != len(self._table.counted):
            reason = f"{len(values)} figures instead of {len(self._table.counted)}"
            raise self._ledger.damaged(reason)
        return Recorded(end_ms, values)


def _end_ms(minute: Minute[Any]) -> int:
    return minute.minute_ms + MINUTE_MS


def _needed(minutes: Sequence[Minute[Any]], before_ms: int) -> Sequence[Minute[Any]]:
    """Return the minutes that end after `before_ms`, and the last earlier minute."""
    older = sum(_end_ms(one) <= before_ms for one in minutes)
    return minutes[max(older - 1, 0) :]
