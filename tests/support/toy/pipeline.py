"""The way from records to the job's files, without Spark and Kafka."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pyspark.sql import Row

from connectors.history.schema import tables_of
from sds_core.observer import blob
from sds_core.observer.kinds import AnyProtocol
from sds_core.observer.protocols import PROTOCOLS, by_name, kinds_of
from sds_core.observer.record import RawRecord
from streaming.board import Board
from streaming.chunk import Chunk
from streaming.findings import Findings
from streaming.fold import Fold
from streaming.group_minutes import GroupMinutes
from streaming.keys import CLOCK_KEY
from streaming.labels import open_ledgers
from streaming.recent import RecentMinutes
from streaming.sink import Sink
from streaming.stores import Store
from streaming.view_register import ViewRegister
from tests.support.toy.league import FIGURES, LEAGUE, LEAGUES

ADMITTED_MS = 1 << 50


class KeyState:
    """The state of one key, as far as the fold uses it."""

    def __init__(self) -> None:
        self.stored: tuple[int, bytes] | None = None
        self.timeout_ms: int | None = None
        self.watermark_ms = 0
        self.hasTimedOut = False

    @property
    def exists(self) -> bool:
        """Whether there is a state."""
        return self.stored is not None

    @property
    def get(self) -> tuple[int, bytes] | None:
        """Version and blob."""
        return self.stored

    def update(self, stored: tuple[int, bytes]) -> None:
        """Store version and blob."""
        self.stored = stored

    def remove(self) -> None:
        """Remove the state."""
        self.stored = None

    def getCurrentWatermarkMs(self) -> int:
        """The watermark of the batch."""
        return self.watermark_ms

    def setTimeoutTimestamp(self, timeout_ms: int) -> None:
        """Set when the key is called without rows."""
        self.timeout_ms = timeout_ms


class Pipeline:
    """A job on one checkpoint, one batch after the other.

    Args:
        directory: Directory of the job's files.
        protocols: Registered protocols.
        label_budget: Number of labels of each kind.
    """

    def __init__(
        self,
        directory: Path,
        protocols: Iterable[AnyProtocol] = (*PROTOCOLS, LEAGUE),
        label_budget: int = 9,
    ) -> None:
        self._directory = directory
        self._protocols = tuple(protocols)
        self._label_budget = label_budget
        self._states: dict[str, KeyState] = {}
        self._watermark_ms = 0
        self._committed: int | None = None
        self.start()

    def start(self, board: Board | None = None) -> None:
        """Start the next query.

        Args:
            board: That of the query before; None for the first one of a process, which
                knows only what lies on the disk.
        """
        kinds = kinds_of(self._protocols)
        self.board = Board(self._protocols) if board is None else board
        self.store = Store(
            Findings(self._directory / "league-incidents.sqlite", 1, kind=LEAGUES),
            RecentMinutes(self._directory / "league-minutes.sqlite", table=FIGURES),
            tables_of(LEAGUES),
        )
        register = ViewRegister(self._directory / "views.sqlite")
        groups = GroupMinutes(self._directory / "groups.sqlite", kinds)
        groups.begin(self._committed)
        self._sink = Sink(
            self.board,
            open_ledgers(self._directory, kinds, self._label_budget),
            None,
            Findings(self._directory / "incidents.sqlite", 1),
            True,
            None,
            RecentMinutes(self._directory / "minutes.sqlite"),
            register,
            self._protocols,
            {LEAGUES.prefix: self.store},
            groups,
        )
        self._fold = Fold(protocols=self._protocols)
        totals = {
            key: blob.totals_part(state.stored[1])
            for key, state in self._states.items()
            if state.stored is not None
        }
        if not self.board.snapshot.primed:
            self._sink.publish(totals)

    def batch(self, records: Iterable[RawRecord], clock_ms: int) -> None:
        """Run a batch and commit it."""
        self._states = self._run(records, clock_ms)
        self._watermark_ms = clock_ms - 1
        self._committed = self._next

    def lose(self, records: Iterable[RawRecord], clock_ms: int) -> None:
        """Run a batch, and end the process before it is committed."""
        self._run(records, clock_ms)
        self.start()

    def fail(self, records: Iterable[RawRecord], clock_ms: int) -> None:
        """Run a batch; end the query, but not the process, before it is committed."""
        self._run(records, clock_ms)
        self.start(self.board)

    @property
    def _next(self) -> int:
        return 0 if self._committed is None else self._committed + 1

    def _run(self, records: Iterable[RawRecord], clock_ms: int) -> dict[str, KeyState]:
        chunk = Chunk(0, 0, ADMITTED_MS, by_name(self._protocols))
        for record in records:
            chunk.add(record)
        digests: dict[str, list[bytes]] = {}
        for row in chunk.take_rows():
            digests.setdefault(row.key, []).append(row.digest)
        states = copy.deepcopy(self._states)
        for key, state in states.items():
            due_ms = state.timeout_ms
            state.hasTimedOut = (
                key not in digests
                and due_ms is not None
                and due_ms < self._watermark_ms
            )
            if state.hasTimedOut:
                digests[key] = []
        rows = []
        for key, packed in digests.items():
            state = states.setdefault(key, KeyState())
            state.watermark_ms = self._watermark_ms
            state.timeout_ms = None
            any_state: Any = state
            output = self._fold.row(key, packed, clock_ms, any_state)
            rows.append(Row(**output._asdict()))
        clock = SimpleNamespace(key=CLOCK_KEY, totals=None, clock_ms=clock_ms)
        any_rows: Any = [*rows, clock]
        self._sink.take(any_rows, self._next)
        return states
