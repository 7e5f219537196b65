"""Records which verdicts are shown while a job runs."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Collection, Mapping
from functools import partial

from connectors.storage.disk import with_remedy
from sds_core.observer.minutes import MINUTE_MS
from sds_core.observer.shown_verdicts import SET_BACK_MS, ShownVerdict, VerdictLog
from sds_core.observer.snapshot import Snapshot
from streaming.board import Board
from streaming.damage import DamagedCheckpoint
from streaming.ledger.verdicts import VerdictStore, kept_since_ms

PAUSE_MS = 15_000
"""If more wall time than this passes without an observation, ms, verdicts count as not
shown in this time."""

_EXPIRE_EVERY_MS = 3_600_000

_log = logging.getLogger("sds-monitor")


class VerdictRecorder:
    """Stores the verdicts that are shown while a job runs.

    `stores` has one store for each kind of view, by the kind's prefix. Usually, an
    observation processes only the views that have changed. If a change of taps or of
    the job can affect the verdict of every view, the observation processes all views.
    """

    def __init__(self, stores: Mapping[str, VerdictStore], board: Board) -> None:
        self._stores = stores
        self._board = board
        self._logs: dict[str, VerdictLog] = {}
        self._waiting: dict[str, list[tuple[str, ShownVerdict]]] = {}
        # Time of the last observation, Unix ms. At first, it is the last observation of
        # an earlier run; None if no earlier run has stored one.
        self._looked_ms: int | None = None
        for prefix, store in stores.items():
            observed_ms = store.observed_ms
            self._logs[prefix] = VerdictLog()
            self._waiting[prefix] = []
            if observed_ms is not None:
                self._continue_at(observed_ms, prefix)
                self._looked_ms = max(self._looked_ms or 0, observed_ms)
        self._now_ms = self._looked_ms or 0
        self._expire_ms = 0
        self._changed: Mapping[str, Collection[str]] = {}
        self._judged: set[str] = set(stores)
        self._is_open = True
        self._fails = False

    def look(self, snapshot: Snapshot, now_ms: int, wall_ms: int | None = None) -> None:
        """Store the verdicts that are shown now; called about every second.

        If the ledger cannot be written, the error is logged, and the rows are stored by
        a later call. `snapshot` has the figures that are shown; its verdicts must take
        blindness into account. `now_ms` is the time that the page shows, Unix ms: wall
        time, or event time in a demo. `wall_ms` is always wall time, and reveals a
        pause of the process; None if equal to `now_ms`.
        """
        if not (self._is_open and now_ms):
            return
        wall_ms = now_ms if wall_ms is None else wall_ms
        last_ms = wall_ms if self._looked_ms is None else self._looked_ms
        paused, self._looked_ms = wall_ms - last_ms > PAUSE_MS, wall_ms
        if now_ms < self._now_ms - SET_BACK_MS:
            for prefix in self._stores:
                self._attempt(partial(self._continue_at, now_ms, prefix))
        is_first = now_ms // MINUTE_MS != self._now_ms // MINUTE_MS
        self._now_ms = now_ms
        self._observe(snapshot, now_ms, paused)
        self._store(also_without_rows=is_first)
        if now_ms >= self._expire_ms:
            self._expire_ms = now_ms + _EXPIRE_EVERY_MS
            for store in self._stores.values():
                self._attempt(partial(store.expire, kept_since_ms(now_ms)))

    def _continue_at(self, now_ms: int, prefix: str) -> None:
        store = self._stores[prefix]
        rows, ahead = store.newest(now_ms), store.ahead(now_ms)
        self._logs[prefix] = VerdictLog(rows, now_ms, ahead)

    def close(self) -> None:
        """Store the time of the last observation; afterwards, `look` stores nothing."""
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
                # The snapshot may have been made before the newest changes. The views
                # that changed before the previous call may thus show their change only
                # now, so they are processed again.
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
        try:
            work()
        except (sqlite3.Error, OSError, DamagedCheckpoint) as error:
            if not self._fails:
                cause = with_remedy(str(error))
                _log.warning("verdicts cannot be stored yet: %s", cause)
            self._fails = True
            return False
        self._fails = False
        return True
