"""What the monitor itself needs: a cost model fitted to the benchmarks.

A batch costs a fixed amount, and an amount per channel with news, per byte of these
channels' states, per frame, per byte of frames, and per channel known. No amount is
negative. docs/planning.md has the definitions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from sds_core.planning.cost_fit import Fit, FitRow, fit, fit_power
from sds_core.planning.cost_rows import USUAL, BatchRow, CostRows
from sds_core.planning.load import Load
from sds_core.planning.measured import Performance, Scaling

KEPT_BATCHES = 100
"""Batches whose files Spark keeps: its `spark.sql.streaming.minBatchesToRetain`."""
MOST_CORES = 1_024
"""More cores than any machine that is looked for."""

_MOST = 1e12
_DAY_S = 86_400


class Limit(NamedTuple):
    """The greatest load of this kind: more channels, each with the same traffic."""

    cores: float
    channels: int
    frames_per_s: float


class Size(NamedTuple):
    """What the monitor needs.

    Attributes:
        cpu_cores: Cores that are busy on average, of one machine.
        batch_s: Time of a batch on a machine with the measured number of cores.
        machine_cores: Cores with which batches take at most `trigger_s`; None if no
            number of cores is enough.
        memory_bytes: Memory of all processes of one machine.
        channel_state_bytes: State of a channel.
        state_bytes: States of all channels.
        written_bytes_per_s: Bytes that the checkpoint's states grow by.
        checkpoint_bytes: Files of the states in the checkpoint.
        history_bytes_per_day: Files of the history, complete days.
        history_bytes: The same over the retention, with the running day.
        ledger_bytes_per_day: Rows that wait if a destination is unreachable.
        disk_bytes: Checkpoint, history, and a day of waiting rows.
        executors: Executors of a cluster, with a core each.
        executor_memory_bytes: Memory of an executor.
        limits: Measured machine, and any number of cores.
    """

    cpu_cores: float
    batch_s: float
    machine_cores: int | None
    memory_bytes: float
    channel_state_bytes: float
    state_bytes: float
    written_bytes_per_s: float
    checkpoint_bytes: float
    history_bytes_per_day: float
    history_bytes: float
    ledger_bytes_per_day: float
    disk_bytes: float
    executors: int
    executor_memory_bytes: float
    limits: tuple[Limit, ...]


class CostModel:
    """Costs of a job, fitted to measurements.

    Args:
        performance: A full run of `make bench`.
        scaling: Figures of the other benchmarks.

    Raises:
        NotMeasured: A measure is missing.

    Attributes:
        fits: By figure; the errors are theirs.
        measured_cores: Cores of the machine that was measured.
        measured_executors: Executors of the largest cluster that was measured.
    """

    def __init__(self, performance: Performance, scaling: Scaling) -> None:
        self._scaling, self._rows = scaling, CostRows(performance, scaling)
        runs = scaling.runs
        self._frame = fit_power(list(self._rows.frames()))
        self._state = fit_power(list(self._rows.states()))
        rows = list(self._rows.batches())
        self._loads = [row.loads for row in rows]
        self.fits = {
            "cpu": fit(self._features(rows, lambda row: row.cpu_s)),
            "batch": fit(self._features(rows, lambda row: row.batch_s)),
            "memory": fit(self._features(rows, lambda row: row.memory_bytes)),
            "state": self._state,
            "written": fit(
                [
                    (f"{run.channels} channels", [self._touched_bytes(load)], bytes_)
                    for run in self._rows.local_runs
                    for load in [self._rows.run_load(run)]
                    for bytes_ in [run.written_kb * runs.batch_records]
                ]
            ),
        }
        self.fits["checkpoint"] = Fit((), tuple(self._checkpoints()))
        one, both = runs.run(1_000, 1), runs.run(1_000, 2)
        self.measured_cores = both.cores
        # Wall time of a batch is s + p / cores: s + p and s + p / 2 were measured.
        single, double = 1 / one.frames_per_s, 1 / both.frames_per_s
        self._serial = max(0.0, 2 * double - single) / double
        first, last = runs.run(1_000, 1, 1), runs.run(1_000, 2, 2)
        self.measured_executors = last.executors
        self._cluster_factor = last.cpu_us / both.cpu_us
        self._busy = last.frames_per_s * last.cpu_us / 1e6 / last.executors
        self._executor_bytes = (last.memory_mb - first.memory_mb) * 1e6

    def cpu_s(self, load: Load) -> float:
        """Return the CPU time of a batch on one machine."""
        return self.fits["cpu"].of(self._costs(load))

    def batch_s(self, load: Load, cores: float) -> float:
        """Return the wall time of a batch; measured for the cores of the machine."""
        measured_s = self.fits["batch"].of(self._costs(load))
        spread = (1 - self._serial) * self.measured_cores / cores
        return measured_s * (self._serial + spread)

    def extrapolated(self, load: Load) -> list[str]:
        """Return what of a load is greater than in all measured rows."""
        participants = max(state.participants for state in self._scaling.states)
        channels, frames, remembered = (
            max(sum(getattr(load, name) for load in loads) for loads in self._loads)
            for name in ("channels", "frames", "remembered")
        )
        greatest = {
            "channels": (load.channels, channels),
            "participants": (load.participants, participants),
            "frames in a batch": (load.frames, frames),
            "remembered messages of a channel": (load.remembered, remembered),
        }
        return [name for name, (value, most) in greatest.items() if value > most]

    def state_bytes(self, load: Load) -> float:
        """Return the state of a channel."""
        return self._state.power_of([max(load.remembered, 1.0), load.participants])

    def limit(self, load: Load, cores: float) -> Limit:
        """Return how many channels a machine follows, in batches of this length."""

        def follows(factor: float) -> bool:
            return self.batch_s(load.times(factor), cores) <= load.trigger_s

        low, high = 0.0, 1.0
        while high < _MOST and follows(high):
            low, high = high, 2 * high
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if follows(middle) else (low, middle)
        channels = math.floor(load.channels * low)
        return Limit(cores, channels, load.frames_per_s * low)

    def size(self, load: Load, *, history_days: int) -> Size:
        """Return what a load needs.

        Args:
            load: The traffic.
            history_days: Days that the history keeps.
        """
        cpu_cores = self.cpu_s(load) / load.trigger_s
        enough = (
            cores
            for cores in range(1, MOST_CORES + 1)
            if self.batch_s(load, cores) <= load.trigger_s
        )
        states = self.state_bytes(load) * load.channels
        written = self._written(load)
        checkpoint = KEPT_BATCHES * written + self.fits["written"].coefficients[0] * (
            states
        )
        history = self._scaling.history
        minutes = _minutes(load.frames_per_s / load.channels)
        days = load.channels * minutes / _minutes(history.messages_a_day / _DAY_S)
        files = days * history.files_bytes
        kept = history_days * files + days * history.running_bytes
        waiting = days * history.pending_bytes
        return Size(
            cpu_cores,
            self.batch_s(load, self.measured_cores),
            next(enough, None),
            self.fits["memory"].of(self._costs(load)),
            self.state_bytes(load),
            states,
            written / load.trigger_s,
            checkpoint,
            files,
            kept,
            waiting,
            checkpoint + kept + waiting,
            math.ceil(cpu_cores * self._cluster_factor / self._busy),
            self._executor_bytes,
            tuple(self.limit(load, n) for n in (self.measured_cores, math.inf)),
        )

    def _costs(self, load: Load) -> list[float]:
        _, exponent = self._frame.coefficients
        frames = load.frames * (load.participants / USUAL) ** exponent
        sizes = load.frames * load.frame_bytes
        touched = self._touched_bytes(load)
        return [1.0, load.touched, touched, frames, sizes, load.channels]

    def _touched_bytes(self, load: Load) -> float:
        return load.touched * self.state_bytes(load)

    def _written(self, load: Load) -> float:
        return self.fits["written"].of([self._touched_bytes(load)])

    def _features(
        self, rows: Sequence[BatchRow], value: Callable[[BatchRow], float]
    ) -> list[FitRow]:
        """Return the rows that have a value, with the costs of all their loads."""
        features: list[FitRow] = []
        for row in rows:
            if value(row):
                loads = [self._costs(load) for load in row.loads]
                sums = [1.0, *(sum(costs[n] for costs in loads) for n in range(1, 6))]
                features.append((row.name, sums, value(row)))
        return features

    def _checkpoints(self) -> Iterator[tuple[str, float, float]]:
        """Yield name, measured and modelled bytes of the checkpoints of the runs."""
        for run in self._rows.local_runs:
            batches = range(1, self._scaling.runs.batches + 1)
            sums = sum(
                self._written(self._rows.run_load(run, number)) for number in batches
            )
            yield f"{run.channels} channels", run.checkpoint_mb * 1e6, sums


def _minutes(frames_per_s: float) -> float:
    """Return the minutes of a day in which a channel has a frame."""
    return 1_440 * -math.expm1(-60 * frames_per_s)
