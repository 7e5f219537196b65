"""The way from records to the job's files, without Spark and Kafka."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pyspark.sql import Row

from sds_core.observer import blob
from sds_core.observer.kinds import AnyProtocol
from sds_core.observer.protocols import PROTOCOLS, by_name, kinds_of
from sds_core.observer.record import RawRecord
from sds_core.observer.settings import DEFAULTS, ObserverSettings
from streaming.board import Board
from streaming.chunk import CLOCK_KEY, Chunk
from streaming.fold import Fold
from streaming.ledger.stores import Stores
from streaming.position import Position
from streaming.sink import Sink
from tests.support.streaming.ledger import ledger_in
from tests.support.toy.league import LEAGUE, LEAGUES

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
        dead_letters: Gets dead letters; None to only count them.
        settings: Settings of the views.
    """

    def __init__(
        self,
        directory: Path,
        protocols: Iterable[AnyProtocol] = (*PROTOCOLS, LEAGUE),
        label_budget: int = 9,
        dead_letters: Any = None,
        settings: ObserverSettings = DEFAULTS,
    ) -> None:
        self.directory = directory
        self._protocols = tuple(protocols)
        self._label_budget = label_budget
        self.dead_letters = dead_letters
        self._settings = settings
        self._states: dict[str, KeyState] = {}
        self._watermark_ms = -1
        self._committed: int | None = None
        # All that decides the rows of a batch, by its number.
        self._planned: dict[int, str] = {}
        self.start()

    def start(self, board: Board | None = None) -> None:
        """Start the next query.

        Args:
            board: That of the query before; None for the first one of a process, which
                knows only what lies on the disk.
        """
        kinds = kinds_of(self._protocols)
        self.board = Board(self._protocols) if board is None else board
        self.board.set_position(Position(self.clock_ms))
        self.ledger = ledger_in(self.directory)
        self.ledger.begin(self._committed, self._planned.get(self._next))
        self.stores = Stores.of(self.ledger, kinds, self._label_budget, True, True)
        self.store = self.stores.by_kind[LEAGUES.prefix]
        self._sink = Sink(
            self.board,
            self.stores,
            self.dead_letters,
            self._planned.__getitem__,
            self._protocols,
        )
        self._fold = Fold(self._settings, True, self._protocols)
        totals = {
            key: blob.totals_part(state.stored[1])
            for key, state in self._states.items()
            if state.stored is not None
        }
        if not self.board.snapshot.primed:
            self._sink.prime(totals)
        for prefix, store in self.stores.by_kind.items():
            views = self.board.snapshot.views[prefix].totals
            store.recent.begin(views, self.board.snapshot.clock_ms)

    def copy(self, directory: Path, dead_letters: Any = None) -> Pipeline:
        """A job on a copy of the checkpoint, as the next process starts it."""
        shutil.copytree(self.directory, directory)
        new = copy.copy(self)
        new.dead_letters = dead_letters
        new.move(directory)
        return new

    def move(self, directory: Path) -> None:
        """Go on with a copy of the files, as the next process."""
        self.directory = directory
        self._states = copy.deepcopy(self._states)
        self._planned = dict(self._planned)
        self.start()

    @property
    def clock_ms(self) -> int:
        """Admission time of the newest batch that was committed, Unix ms."""
        return self._watermark_ms + 1

    def plan(self, records: Sequence[RawRecord] | None, clock_ms: int = 0) -> None:
        """Plan the next batch, or remove its plan."""
        if records is None:
            self._planned.pop(self._next, None)
        else:
            offsets = [one.offset for one in records]
            self._planned[self._next] = f"{clock_ms} {offsets}"

    def batch(self, records: Iterable[RawRecord], clock_ms: int) -> None:
        """Run a batch and commit it."""
        self._states = self._run(records, clock_ms)
        self._watermark_ms = clock_ms - 1
        self._committed = self._next

    def lose(
        self, records: Iterable[RawRecord], clock_ms: int, replanned: bool = False
    ) -> None:
        """Run a batch, and end the process before it is committed.

        Args:
            records: Its records.
            clock_ms: Its admission time.
            replanned: Whether the next batch has other records.
        """
        self._run(records, clock_ms)
        if replanned:
            self.plan(None)
        self.start()

    def fail(self, records: Iterable[RawRecord], clock_ms: int) -> None:
        """Run a batch; end the query, but not the process, before it is committed."""
        self._run(records, clock_ms)
        self.start(self.board)

    @property
    def _next(self) -> int:
        return 0 if self._committed is None else self._committed + 1

    def _run(self, records: Iterable[RawRecord], clock_ms: int) -> dict[str, KeyState]:
        records = list(records)
        self.plan(records, clock_ms)
        chunk = Chunk(0, 0, by_name(self._protocols))
        for record in records:
            chunk.add(record, ADMITTED_MS)
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
            state.watermark_ms = max(0, self._watermark_ms)
            state.timeout_ms = None
            any_state: Any = state
            output = self._fold.row(key, packed, clock_ms, any_state)
            rows.append(Row(**output._asdict()))
        clock = SimpleNamespace(key=CLOCK_KEY, totals=None, clock_ms=clock_ms)
        any_rows: Any = [*rows, clock]
        self._sink.take(any_rows, self._next)
        return states
