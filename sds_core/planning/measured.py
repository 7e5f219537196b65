"""Results of the benchmarks, to which the cost model is fitted."""

from __future__ import annotations

import re
import statistics

import msgspec


class NotMeasured(ValueError):
    """The benchmarks' results lack a value that the cost model needs."""

    def __init__(self, *what: str) -> None:
        missing = ": ".join(what)
        super().__init__(
            f"the measurements do not contain {missing}: run a full `make bench`"
        )


class Measure(msgspec.Struct):
    """One measured quantity, with a value for each repetition of the benchmark.

    `row` and `what` together identify the quantity.
    """

    row: str
    what: str
    values: list[float]


class Performance(msgspec.Struct):
    """Results of `make bench`. `data` maps names of data sets to their descriptions."""

    version: str
    date: str
    machine: str
    data: dict[str, str]
    measures: list[Measure]

    def median(self, row: str, what: str) -> float:
        """Return the median of a measure's values.

        Raises:
            NotMeasured: The results lack the measure, or it has no values.
        """
        for measure in self.measures:
            if (measure.row, measure.what) == (row, what) and measure.values:
                return statistics.median(measure.values)
        raise NotMeasured(row, what)

    def data_set(self, name: str) -> tuple[float, float, float]:
        """Return a data set's number of channels, of frames, and mean bytes per frame.

        Raises:
            NotMeasured: The results lack the data set or one of the numbers.
        """
        words = self.data.get(name, "").replace(",", "")
        channels, frames, size, *_ = [*map(float, re.findall(r"\d+", words)), 0, 0, 0]
        if not channels * frames * size:
            missing = f"data set {name}"
            raise NotMeasured(missing)
        return channels, frames, size


class Run(msgspec.Struct):
    """One run of `benchmarks.scaling`, which is a row of the table in docs/scaling.md.

    `jvm_us` and `python_us` are CPU time per frame, microseconds.
    """

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
    batches do not count in the measurements.
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
        """Return the run with these values and with two state partitions.

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
    """Result of one run of `benchmarks.state`, which simulates one channel.

    `blob_bytes` is the maximum size of the channel's state during the run.
    """

    participants: int
    messages_a_day: int
    blob_bytes: int


class HistoryCost(msgspec.Struct):
    """Bytes that each channel adds to the history per day (`benchmarks.history`).

    Attributes:
        files_bytes: Size of a day's files after compaction.
        running_bytes: Size of a day's files before the day's last compaction.
        pending_bytes: Growth of the ledger in a day if a destination is unreachable.
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
