"""Results of the benchmarks. The cost model is fitted to them."""

from __future__ import annotations

import re
import statistics

import msgspec


class NotMeasured(ValueError):
    """A file with results lacks a measure that the model needs."""

    def __init__(self, *what: str) -> None:
        missing = ": ".join(what)
        super().__init__(
            f"the measurements do not contain {missing}: run a full `make bench`"
        )


class Measure(msgspec.Struct):
    """One measure, with a value for each repetition.

    A measure is identified by `row` and `what` together.
    """

    row: str
    what: str
    values: list[float]


class Performance(msgspec.Struct):
    """Results of `make bench`. `data` has descriptions of the data sets, by name."""

    version: str
    date: str
    machine: str
    data: dict[str, str]
    measures: list[Measure]

    def median(self, row: str, what: str) -> float:
        """Return the median of a measure.

        Raises:
            NotMeasured: The results lack the measure.
        """
        for measure in self.measures:
            if (measure.row, measure.what) == (row, what) and measure.values:
                return statistics.median(measure.values)
        raise NotMeasured(row, what)

    def data_set(self, name: str) -> tuple[float, float, float]:
        """Return a data set's numbers of channels and frames, and mean bytes per frame.

        Raises:
            NotMeasured: The run lacks the data set.
        """
        words = self.data.get(name, "").replace(",", "")
        channels, frames, size, *_ = [*map(float, re.findall(r"\d+", words)), 0, 0, 0]
        if not channels * frames * size:
            missing = f"data set {name}"
            raise NotMeasured(missing)
        return channels, frames, size


class Run(msgspec.Struct):
    """A row of the table in docs/scaling.md. CPU times are microseconds per frame."""

    channels: int
    cores: int
    state_partitions: int
    executors: int
    frames_per_s: float
    jvm_us: float
    python_us: float
    memory_mb: float
    written_kb: float
    checkpoint_mb: float

    @property
    def cpu_us(self) -> float:
        """CPU time per frame, microseconds."""
        return self.jvm_us + self.python_us


class Runs(msgspec.Struct):
    """The runs of `benchmarks.scaling`.

    A run has `batches` batches with `batch_records` frames each. The first `cold`
    batches are not counted.
    """

    version: str
    date: str
    machine: str
    batch_records: int
    batches: int
    cold: int
    participants: int
    sizes: list[Run]

    def run(self, channels: int, cores: int, executors: int = 0) -> Run:
        """Return the run that has two state partitions and matches the arguments.

        Raises:
            NotMeasured: No such run exists.
        """
        for run in self.sizes:
            key = (run.channels, run.cores, run.executors, run.state_partitions)
            if key == (channels, cores, executors, 2):
                return run
        missing = f"a run of {channels} channels on {cores} cores"
        raise NotMeasured(missing)


class State(msgspec.Struct):
    """The largest state of one channel, measured by `benchmarks.state`."""

    participants: int
    messages_a_day: int
    blob_bytes: int


class HistoryCost(msgspec.Struct):
    """Bytes of the history per channel and day, measured by `benchmarks.history`.

    Attributes:
        running_bytes: Size of one day's files before compaction.
        pending_bytes: Size of the ledger if a destination is unreachable for the whole
            day.
    """

    messages_a_day: int
    files_bytes: int
    running_bytes: int
    pending_bytes: int


class Scaling(msgspec.Struct):
    """Results of all benchmarks except `make bench`."""

    runs: Runs
    states: list[State]
    history: HistoryCost
