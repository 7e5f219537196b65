"""Results of a run, as docs/sync.json has them."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path

import msgspec

from benchmarks.prolly.contenders import Session

PATH = Path(__file__).parents[2] / "docs" / "sync.json"


class Cell(msgspec.Struct):
    """Sessions of one contender under the same conditions, one per seed.

    Attributes:
        table: Which table it belongs to.
        contender: Name.
        number: Messages of both sides together.
        differences: How many of them a side lacks.
        shape: Which ones.
        variant: What the table varies.
        sessions: The sessions.
    """

    table: str
    contender: str
    number: int
    differences: int
    shape: str
    variant: str
    sessions: list[Session]

    @property
    def bytes(self) -> float:
        """Median of the bytes in both directions."""
        return self._median(lambda one: one.sent + one.received)

    @property
    def rounds(self) -> float:
        """Median of the rounds."""
        return self._median(lambda one: one.rounds)

    @property
    def cpu_ms(self) -> float:
        """Median of the processor time of both sides."""
        return self._median(lambda one: one.client_ms + one.server_ms)

    def _median(self, of: Callable[[Session], float]) -> float:
        return statistics.median(map(of, self.sessions))


class Timing(msgspec.Struct):
    """Processor time of something that one side does alone.

    Attributes:
        contender: Name.
        what: What was measured.
        number: Messages in the tree.
        values_ms: The values; none if the result was wrong or was not measured.
        note: What came out instead.
    """

    contender: str
    what: str
    number: int
    values_ms: list[float]
    note: str = ""

    @property
    def median_ms(self) -> float | None:
        """Median of the values; None without any."""
        return statistics.median(self.values_ms) if self.values_ms else None


class SyncRun(msgspec.Struct):
    """A run.

    Attributes:
        version: Version of sds-monitor.
        date: Day, ISO 8601.
        minutes: Length of the run.
        machine: Processor, cores and memory.
        load: Mean number of other processes that wanted a core at the start.
        versions: Versions of the programs, by name.
        seeds: Sets of messages per row.
        cells: Sessions.
        timings: What one side does alone.
        skipped: Contenders that could not be had, and why.
    """

    version: str
    date: str
    minutes: float
    machine: str
    load: float
    versions: dict[str, str]
    seeds: int
    cells: list[Cell] = []
    timings: list[Timing] = []
    skipped: dict[str, str] = {}

    def add(self, made: Cell, session: Session) -> None:
        """Add a session to its cell; `made` is a cell without sessions."""
        session = session._replace(
            client_ms=_short(session.client_ms), server_ms=_short(session.server_ms)
        )
        for cell in self.cells:
            if _place(cell) == _place(made):
                cell.sessions.append(session)
                return
        made.sessions = [session]
        self.cells.append(made)

    def time(
        self, contender: str, what: str, number: int, value_ms: float | None, note: str
    ) -> None:
        """Add a timing; None if there is no value that counts."""
        values = [] if value_ms is None else [_short(value_ms)]
        for one in self.timings:
            if (one.contender, one.what, one.number) == (contender, what, number):
                one.values_ms += values
                return
        self.timings.append(Timing(contender, what, number, values, note))

    def find(
        self,
        table: str,
        contender: str,
        number: int,
        differences: int,
        shape: str,
        variant: str = "",
    ) -> Cell | None:
        """Return a cell; None if the run does not have it."""
        place = (table, contender, number, differences, shape, variant)
        return next((one for one in self.cells if _place(one) == place), None)

    def timing(self, contender: str, what: str, number: int) -> Timing | None:
        """Return a timing; None if the run does not have it."""
        place = (contender, what, number)
        for one in self.timings:
            if (one.contender, one.what, one.number) == place:
                return one
        return None


def read_run(path: Path = PATH) -> SyncRun:
    """Read a run."""
    return msgspec.json.decode(path.read_bytes(), type=SyncRun)


def write_run(run: SyncRun, path: Path = PATH) -> None:
    """Write a run."""
    path.write_bytes(msgspec.json.encode(run) + b"\n")


def _place(cell: Cell) -> tuple[str, str, int, int, str, str]:
    return (
        cell.table,
        cell.contender,
        cell.number,
        cell.differences,
        cell.shape,
        cell.variant,
    )


def _short(value: float) -> float:
    return float(f"{value:.4g}")
