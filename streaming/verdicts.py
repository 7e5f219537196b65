"""Stores which verdicts were shown, for the page's strips and for the history.

What is stored is what the page showed, in its time (docs/figures.md, 8). The rows lie
beside the outbox of the history, so that one transaction adds them to both.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

import msgspec

from sds_core.observer.minutes import MINUTE_MS
from sds_core.observer.shown_verdicts import (
    DAY_MS,
    SET_BACK_MS,
    ShownVerdict,
    VerdictLog,
    day_begin_ms,
)
from sds_core.observer.snapshot import Snapshot
from streaming.board import Board
from streaming.damage import DamagedCheckpoint
from streaming.findings import QUEUE, Findings

PAUSE_MS = 15_000
"""Wall time without a look at the verdicts from which on they count as not shown."""

_EXPIRE_EVERY_MS = 3_600_000

_CHUNK_ROWS = 5_000
"""Rows of one transaction: a batch of the job waits for the file meanwhile."""

_STORE = "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?)"

_NEWEST = """
SELECT channel, max(minute_ms), verdict, reason FROM verdicts
WHERE minute_ms >= ? GROUP BY channel
"""

_OF_CHANNEL = """
SELECT minute_ms, verdict, reason FROM verdicts
WHERE channel = ? AND minute_ms >= ? AND minute_ms < ? ORDER BY minute_ms
"""

_log = logging.getLogger("sds-monitor")


def kept_since_ms(observed_ms: int) -> int:
    """Return from when on all rows are stored here: the whole day of 24 hours ago."""
    return day_begin_ms(observed_ms - DAY_MS)


class VerdictStore:
    """The verdicts that were shown of the views, or groups, of one kind.

    What a method has written is durable when the method returns.

    Args:
        findings: The findings of the kind, whose file and outbox are used.
        with_history: Whether rows are added to the outbox.
    """

    def __init__(self, findings: Findings, with_history: bool = False) -> None:
        self._database = findings.database
        self._with_history = with_history

    def record(
        self, rows: Sequence[tuple[str, ShownVerdict]], observed_ms: int
    ) -> None:
        """Store rows by view, and when the verdicts were looked at, Unix ms.

        After an error some may be stored: store all again.
        """
        for begin in range(0, len(rows), _CHUNK_ROWS):
            chunk = rows[begin : begin + _CHUNK_ROWS]
            with self._database.transaction() as connection:
                connection.executemany(
                    _STORE,
                    [(name, *msgspec.structs.astuple(row)) for name, row in chunk],
                )
                if self._with_history:
                    encoded = [
                        (name, msgspec.msgpack.encode(row)) for name, row in chunk
                    ]
                    connection.executemany(QUEUE, encoded)
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM observed")
            connection.execute("INSERT INTO observed VALUES (?)", (observed_ms,))

    def find(
        self, names: Iterable[str], since_ms: int, until_ms: int
    ) -> dict[str, list[ShownVerdict]]:
        """Return the rows of some views that tell what was shown in a time, in order.

        Args:
            names: The views.
            since_ms: Begin of the time, Unix ms: rows are those from the begin of its
                day on.
            until_ms: End of the time, Unix ms.
        """
        begin_ms = day_begin_ms(since_ms)
        with self._database.transaction() as connection:
            return {
                name: [
                    ShownVerdict(*row)
                    for row in connection.execute(
                        _OF_CHANNEL, (name, begin_ms, until_ms)
                    )
                ]
                for name in names
            }

    @property
    def observed_ms(self) -> int | None:
        """When the verdicts were looked at last, as far as it is stored; else None."""
        with self._database.transaction() as connection:
            row = connection.execute("SELECT observed_ms FROM observed").fetchone()
        return None if row is None else int(row[0])

    def newest(self, observed_ms: int) -> dict[str, ShownVerdict]:
        """Return the newest row of each view on the day of a time, Unix ms."""
        with self._database.transaction() as connection:
            rows = connection.execute(_NEWEST, (day_begin_ms(observed_ms),)).fetchall()
        return {name: ShownVerdict(*row) for name, *row in rows}

    def expire(self, before_ms: int) -> None:
        """Remove the rows before a time, Unix ms."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM verdicts WHERE minute_ms < ?", (before_ms,))

    def take_back(self, after_ms: int) -> None:
        """Remove the rows after a time, Unix ms: the clock was wrong."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM verdicts WHERE minute_ms > ?", (after_ms,))


class VerdictRecorder:
    """Stores the verdicts that are shown while a job runs.

    A look at them costs what has changed: all views are gone through only if the taps
    or the job have changed what is shown of all.

    Args:
        stores: What is stored of each kind, by prefix.
        board: Has the figures before blindness is judged.
    """

    def __init__(self, stores: Mapping[str, VerdictStore], board: Board) -> None:
        self._stores = stores
        self._board = board
        self._logs: dict[str, VerdictLog] = {}
        self._waiting: dict[str, list[tuple[str, ShownVerdict]]] = {}
        # Until the first look, that of an earlier run.
        self._looked_ms: int | None = None
        for prefix, store in stores.items():
            observed_ms = store.observed_ms
            rows = {} if observed_ms is None else store.newest(observed_ms)
            self._logs[prefix] = VerdictLog(rows, observed_ms)
            self._waiting[prefix] = []
            if observed_ms is not None:
                self._looked_ms = max(self._looked_ms or 0, observed_ms)
        self._now_ms = self._looked_ms or 0
        self._expire_ms = 0
        self._changed: Mapping[str, Collection[str]] = {}
        self._judged: set[str] = set(stores)
        self._is_open = True
        self._fails = False

    def look(self, snapshot: Snapshot, now_ms: int, wall_ms: int | None = None) -> None:
        """Store what is shown now; called about every second.

        An error of the file is logged, and the rows wait for the next call.

        Args:
            snapshot: The figures that are shown, blindness judged.
            now_ms: The time of the page, Unix ms: wall time, unless traffic is played.
            wall_ms: Wall time, by which a pause is noticed; None if it is `now_ms`.
        """
        if not (self._is_open and now_ms):
            return
        wall_ms = now_ms if wall_ms is None else wall_ms
        last_ms = wall_ms if self._looked_ms is None else self._looked_ms
        paused, self._looked_ms = wall_ms - last_ms > PAUSE_MS, wall_ms
        if now_ms < self._now_ms - SET_BACK_MS:
            for store in self._stores.values():
                self._attempt(partial(store.take_back, now_ms))
        is_first = now_ms // MINUTE_MS != self._now_ms // MINUTE_MS
        self._now_ms = now_ms
        self._observe(snapshot, now_ms, paused)
        self._store(also_without_rows=is_first)
        if now_ms >= self._expire_ms:
            self._expire_ms = now_ms + _EXPIRE_EVERY_MS
            for store in self._stores.values():
                self._attempt(partial(store.expire, kept_since_ms(now_ms)))

    def close(self) -> None:
        """Store when the last look was; nothing is stored from then on."""
        if self._is_open and self._now_ms:
            self._store(also_without_rows=True)
        self._is_open = False

    def _observe(self, snapshot: Snapshot, now_ms: int, paused: bool) -> None:
        changed, shown = self._board.take_changed(), snapshot.views
        raw = self._board.snapshot.views
        for prefix, log in self._logs.items():
            views = shown[prefix].totals
            is_judged = views is not raw[prefix].totals
            names = None
            if not (is_judged or prefix in self._judged):
                # The snapshot may be older than what has just changed.
                names = {*changed[prefix], *self._changed.get(prefix, ())}
            (self._judged.add if is_judged else self._judged.discard)(prefix)
            rows = log.observe(views, now_ms, snapshot.unwatched, names, paused)
            self._waiting[prefix] += rows
        self._changed = changed

    def _store(self, also_without_rows: bool) -> None:
        for prefix, store in self._stores.items():
            rows = self._waiting[prefix]
            if (rows or also_without_rows) and self._attempt(
                partial(store.record, rows, self._now_ms)
            ):
                self._waiting[prefix] = []

    def _attempt(self, work: Callable[[], None]) -> bool:
        """Do some work with the files; returns whether it succeeded."""
        try:
            work()
        except (sqlite3.Error, OSError, DamagedCheckpoint) as error:
            if not self._fails:
                _log.warning("the shown verdicts wait to be stored: %s", error)
            self._fails = True
            return False
        self._fails = False
        return True
