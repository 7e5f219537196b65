"""Results of a run: measures by row, what was measured and its repetitions."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec
import psutil

from benchmarks.jars import VERSION as KAFKA_SOURCE_VERSION
from benchmarks.measured import PERFORMANCE
from connectors.broker.jars import KAFKA_VERSION

MOST_DISTURBED = 0.05
"""Share of all cores that other programs may take during a row.

The kernel's threads count too, which take less than 0.01, and so does what the counters
of the machine and those of processes differ by.
"""

_PACKAGES = ("pyspark", "pyarrow", "pandas", "numpy", "confluent-kafka", "kafka-python")


class Disturbed(RuntimeError):
    """Other programs ran during a row, so the run must not be published.

    Attributes:
        rows: The share of all cores that they took, by row.
    """

    def __init__(self, rows: Mapping[str, float]) -> None:
        shares = ", ".join(f"{row} {share:.0%}" for row, share in rows.items())
        words = " ".join(f"--only {row}" for row in rows)
        super().__init__(
            f"other programs took more than {MOST_DISTURBED:.0%} of the cores during "
            f"rows, so nothing is published: {shares}. End them, then measure these "
            f"rows again: python -m benchmarks {words} --add"
        )
        self.rows = rows


class Measure(msgspec.Struct):
    """Values of one thing that was measured, one per repetition.

    Attributes:
        row: Name of the row that measured it.
        what: What was measured; unique in the row.
        unit: Unit of the values.
        values: The values.
    """

    row: str
    what: str
    unit: str
    values: list[float]

    @property
    def median(self) -> float:
        """Median of the values."""
        return statistics.median(self.values)


class Run(msgspec.Struct):
    """A run of the benchmarks.

    Attributes:
        version: Version of sds-monitor.
        date: Day, ISO 8601.
        minutes: Length of the run.
        is_quick: Whether it was the short form, with less data and one repetition.
        machine: Processor, cores and memory.
        load: Mean number of processes that wanted a core at the start.
        versions: Versions of the programs, by name.
        data: Frames and mean bytes of the data sets, in words, by name.
        measures: What was measured.
        problems: Rows that failed, with the reason.
        apart: Rows that were measured in a run of their own.
        disturbed: Share of all cores that other programs took, of the rows during which
            it was more than `MOST_DISTURBED`.
    """

    version: str
    date: str
    minutes: float
    is_quick: bool
    machine: str
    load: float
    versions: dict[str, str]
    data: dict[str, str] = {}
    measures: list[Measure] = []
    problems: dict[str, str] = {}
    apart: list[str] = []
    disturbed: dict[str, float] = {}

    def add(self, row: str, what: str, unit: str, value: float) -> None:
        """Add a value to its measure."""
        for one in self.measures:
            if (one.row, one.what) == (row, what):
                one.values.append(value)
                return
        self.measures.append(Measure(row, what, unit, [value]))

    def median(self, row: str, what: str) -> float | None:
        """Return the median of a measure; None if the run does not have it."""
        for one in self.measures:
            if (one.row, one.what) == (row, what):
                return one.median
        return None

    def ratios(self, row: str, what: str, other: str) -> list[float]:
        """Return the ratios of two measures of a row, repetition by repetition.

        Both were measured one after the other, so what slowed the machine down for a
        while slowed down both.
        """
        both = (self._values(row, what), self._values(row, other))
        return [a / b for a, b in zip(*both, strict=False)]

    def _values(self, row: str, what: str) -> Sequence[float]:
        for one in self.measures:
            if (one.row, one.what) == (row, what):
                return one.values
        return ()


def new_run(date: str, *, is_quick: bool) -> Run:
    """Return a run without measures, on this machine."""
    versions = {name: version(name) for name in _PACKAGES}
    versions["Python"] = platform.python_version()
    versions["Java"] = _java_version()
    versions["Kafka"] = KAFKA_VERSION
    versions["Spark's Kafka source"] = KAFKA_SOURCE_VERSION
    return Run(
        version("sds-monitor"),
        date,
        0.0,
        is_quick,
        machine(),
        round(os.getloadavg()[0], 1),
        versions,
    )


def read_run(path: Path = PERFORMANCE) -> Run:
    """Read a run."""
    return msgspec.json.decode(path.read_bytes(), type=Run)


def publish(run: Run) -> None:
    """Write the run of docs/performance.md, to which `plan size` is fitted.

    Raises:
        Disturbed: Other programs ran during a row.
    """
    if run.disturbed:
        raise Disturbed(run.disturbed)
    write_run(run, PERFORMANCE)


def write_run(run: Run, path: Path) -> None:
    """Write a run, its values to four digits."""
    for measure in run.measures:
        measure.values = [float(f"{value:.4g}") for value in measure.values]
    path.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n")


def quantile(values: Iterable[float], percent: int) -> float:
    """Return the least value that is not below this percentage of the values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def machine() -> str:
    """Return processor, cores, memory and system of this machine, in words."""
    memory_gb = psutil.virtual_memory().total / 2**30
    return (
        f"{_processor()}, {os.cpu_count()} cores, {memory_gb:.0f} GiB, "
        f"{platform.system()} {platform.release()}"
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _java_version() -> str:
    java = subprocess.run(
        ["java", "-version"],  # noqa: S607 - as the job finds it
        capture_output=True,
        text=True,
        check=False,
    )
    return java.stderr.partition('"')[2].partition('"')[0]
