"""The directory of a sweep of simulations: grid, journal of runs, and result table.

Each finished run is one line of the journal. An incomplete last line is ignored. When
all runs are finished, their results are also written to the table `results.parquet`.
The table's rows are in the order of the runs in the grid, so the table's bytes do not
depend on the number of workers.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from connectors.storage.disk import REMEDIES, locked, replacing, sync, with_remedy
from sds_core.planning.channel import ChannelPlan
from sds_core.planning.experiment import Outcome
from sds_core.planning.grid import Grid
from sds_core.reading import TableError

TABLE: Final = "results.parquet"
_GRID, _JOURNAL, _LOCK = "grid.json", "runs.jsonl", "lock"
_NEW_GRID: Final = f"{_GRID}.new"


class SweepRefused(ValueError):
    """A directory cannot be used for a sweep; the message gives the reason."""


class SweepDiskFailed(SweepRefused):
    """The disk of the directory is full, or fails."""


class _Description(msgspec.Struct, forbid_unknown_fields=True):
    """The content of ``grid.json``: the simulator's version and the sweep's grid."""

    version: str
    grid: dict[str, Any]


class Finished(msgspec.Struct, array_like=True):
    """A finished run, as one line of the journal.

    `number` is the number of the run in the grid, and `cpu_s` its CPU time in seconds.
    `figures` are the values of the `Outcome`; None for NaN.
    """

    number: int
    cpu_s: float
    figures: list[float | None]

    @classmethod
    def of(cls, number: int, cpu_s: float, outcome: Outcome) -> Finished:
        """Return the journal's line of a run with this outcome."""
        figures = [None if math.isnan(value) else value for value in outcome]
        return cls(number, cpu_s, figures)

    @property
    def outcome(self) -> Outcome:
        """The outcome."""
        return Outcome(*(math.nan if one is None else one for one in self.figures))


_finished = msgspec.json.Decoder(Finished)


@dataclass(frozen=True, slots=True)
class SweepResults:
    """The grid of a sweep, and the sweep's finished runs by number."""

    grid: Grid
    runs: dict[int, Finished]

    @property
    def outcomes(self) -> dict[int, Outcome]:
        """Outcomes of the finished runs by number."""
        return {number: run.outcome for number, run in self.runs.items()}


class SweepWriter:
    """Adds finished runs to a sweep's directory and to `results`.

    Methods raise `SweepRefused` if the directory cannot be written to, and
    `SweepDiskFailed` if this is because of the disk.
    """

    def __init__(self, directory: Path, results: SweepResults, file: FileIO) -> None:
        self.results = results
        self._directory = directory
        self._file = file

    def add(self, run: Finished) -> None:
        """Store a run durably."""
        with _explained(self._directory):
            line = msgspec.json.encode(run) + b"\n"
            if self._file.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._file.fileno())
        self.results.runs[run.number] = run

    def finish(self) -> None:
        """Write the table of all runs, completely or not at all."""
        with _explained(self._directory), replacing(self._directory / TABLE) as file:
            pq.write_table(_table(self.results), file)


def read_sweep(directory: Path) -> SweepResults:
    """Read the results of a sweep, which may be unfinished.

    Raises:
        SweepRefused: The directory is unreadable or contains no sweep, or one of its
            files is damaged or from an incompatible release.
    """
    with _explained(directory):
        description = _described(directory)
        if description is None:
            message = (
                f"{directory} contains no results of a sweep: give the --out "
                "directory of a sweep"
            )
            raise SweepRefused(message)
        return _results(directory, description)[0]


@contextmanager
def opened_sweep(
    directory: Path, mapping: dict[str, Any], version: str
) -> Iterator[SweepWriter]:
    """Lock a sweep's directory while the block adds runs; create it if it is missing.

    A directory belongs to one grid and to one version of the simulator. Its file
    ``grid.json`` contains the grid and the version.

    Raises:
        SweepRefused: The directory contains anything other than a sweep with this grid
            and version, or is not writable, or another process writes to it. Nothing is
            written.
        SweepDiskFailed: The disk is full, or fails.
    """
    asked = _Description(version, mapping)
    with ExitStack() as stack:
        with _explained(directory):
            _check(directory, asked)
            stack.enter_context(locked(directory / _LOCK))
            path = directory / _GRID
            if not path.exists():
                with replacing(path, directory / _NEW_GRID) as grid:
                    grid.write(msgspec.json.encode(asked))
            _check(directory, asked)
            results, length = _results(directory, asked)
            # The file has no buffer. Otherwise, closing the file after a failed write
            # would write the rest of the data.
            file = stack.enter_context((directory / _JOURNAL).open("ab", buffering=0))
            file.truncate(length)
            sync(directory)
        yield SweepWriter(directory, results, file)


@contextmanager
def _explained(directory: Path) -> Iterator[None]:
    try:
        yield
    except BlockingIOError as error:
        message = f"another sweep writes to {directory}: wait until it ends"
        raise SweepRefused(message) from error
    except OSError as error:
        message = with_remedy(
            f"{directory} cannot be used ({error.strerror}): check --out"
        )
        refusal = SweepDiskFailed if error.errno in REMEDIES else SweepRefused
        raise refusal(message) from error


def _check(directory: Path, asked: _Description) -> None:
    """Raise SweepRefused unless a directory is new or has the sweep `asked`."""
    found = _described(directory)
    if found is None:
        # A sweep that was killed while it started may have left these files.
        begun = {_LOCK, _NEW_GRID}
        if directory.exists() and {x.name for x in directory.iterdir()} - begun:
            message = (
                f"{directory} is not empty, and does not contain a sweep: give another "
                "--out"
            )
            raise SweepRefused(message)
    elif found.version != asked.version:
        message = (
            f"{directory} has results of sds-monitor {found.version}, not of version "
            f"{asked.version}: give another --out"
        )
        raise SweepRefused(message)
    elif _results(directory, found)[0].grid != Grid.from_mapping(asked.grid):
        message = f"{directory} has results of another grid: give another --out"
        raise SweepRefused(message)


def _described(directory: Path) -> _Description | None:
    try:
        text = (directory / _GRID).read_bytes()
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(text, type=_Description)
    except msgspec.MsgspecError as error:
        message = f"{directory / _GRID} is damaged ({error}): give another --out"
        raise SweepRefused(message) from error


def _results(directory: Path, description: _Description) -> tuple[SweepResults, int]:
    """Return the results, and the total size of the journal's complete lines, bytes."""
    runs = {}
    journal = directory / _JOURNAL
    text = journal.read_bytes() if journal.exists() else b""
    whole = text[: text.rfind(b"\n") + 1]
    try:
        grid = Grid.from_mapping(description.grid)
        for line in whole.splitlines():
            run = _finished.decode(line)
            # This raises a TypeError if the number of figures is wrong.
            _ = run.outcome
            runs[run.number] = run
    except (msgspec.MsgspecError, TableError, TypeError) as error:
        message = (
            f"{directory} cannot be read ({error}), because a file is damaged or from "
            "another release: give another --out"
        )
        raise SweepRefused(message) from error
    return SweepResults(grid, runs), len(whole)


def _table(results: SweepResults) -> pa.Table:
    rows: list[Mapping[str, Any]] = []
    for run in results.grid.runs():
        settings = {
            _PREFIX + name: value for name, value in run.plan.settings().items()
        }
        figures = dict(
            zip(Outcome._fields, results.runs[run.number].figures, strict=True)
        )
        rows.append({"run": run.number, "seed": run.seed} | settings | figures)
    return pa.Table.from_pylist(rows, _SCHEMA)


_PREFIX: Final = "plan_"
"""Prefix of the columns with settings; some settings have the same name as a figure."""
# The columns with settings get the types of the example's values.
_EXAMPLE = ChannelPlan(
    participants=2, messages_per_day=1.0, fetch_after_s=0.0, filter_ids=0
)
_SCHEMA: Final = pa.schema(
    [
        ("run", pa.int32()),
        ("seed", pa.int32()),
        *(
            (_PREFIX + name, pa.scalar(value).type)
            for name, value in _EXAMPLE.settings().items()
        ),
        *((name, pa.float64()) for name in Outcome._fields),
    ]
)
