"""Results of a run: measures by row, what was measured and its repetitions."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec
import psutil

from benchmarks.jars import VERSION as KAFKA_SOURCE_VERSION
from connectors.broker.jars import KAFKA_VERSION

PATH = Path(__file__).parents[1] / "docs" / "performance.json"
_PACKAGES = ("pyspark", "pyarrow", "pandas", "numpy", "confluent-kafka", "kafka-python")


class Measure(msgspec.Struct):
    """Values of one thing that was measured, one per repetition.

    Attributes:
        row: Name of the row that measured it.
        what: What was measured; unique in the row.
        unit: Unit of the values.
        values: The values.
        note: What a reader must know to read them.
    """

    row: str
    what: str
    unit: str
    values: list[float]
    note: str = ""

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
        load: Mean number of other processes that wanted a core at the start.
        versions: Versions of the programs, by name.
        data: Frames and mean bytes of the data sets, in words, by name.
        measures: What was measured.
        problems: Rows that failed, with the reason.
        apart: Rows that were measured in a run of their own.
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

    def add(self, row: str, what: str, unit: str, value: float, note: str = "") -> None:
        """Add a value to its measure."""
        for one in self.measures:
            if (one.row, one.what) == (row, what):
                one.values.append(value)
                return
        self.measures.append(Measure(row, what, unit, [value], note))

    def median(self, row: str, what: str) -> float | None:
        """Return the median of a measure; None if the run does not have it."""
        for one in self.measures:
            if (one.row, one.what) == (row, what):
                return one.median
        return None

    def ratio(self, row: str, what: str, other: str) -> float | None:
        """Return the median ratio of two measures of a row, repetition by repetition.

        Both were measured one after the other, so what slowed the machine down for a
        while slowed down both.
        """
        both = [self._values(row, what), self._values(row, other)]
        pairs = list(zip(*both, strict=False))
        return statistics.median(a / b for a, b in pairs) if pairs else None

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
    memory_gb = psutil.virtual_memory().total / 2**30
    return Run(
        version("sds-monitor"),
        date,
        0.0,
        is_quick,
        f"{_processor()}, {os.cpu_count()} cores, {memory_gb:.0f} GiB, "
        f"{platform.system()} {platform.release()}",
        round(os.getloadavg()[0], 1),
        versions,
    )


def read_run(path: Path = PATH) -> Run:
    """Read a run."""
    return msgspec.json.decode(path.read_bytes(), type=Run)


def write_run(run: Run, path: Path = PATH) -> None:
    """Write a run, its values to four digits."""
    for measure in run.measures:
        measure.values = [float(f"{value:.4g}") for value in measure.values]
    path.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n")


def quantile(values: Iterable[float], percent: int) -> float:
    """Return the least value that is not below this percentage of the values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


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
