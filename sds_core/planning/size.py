"""Computes the resources that a monitor needs for a load.

The cost model is fitted to the benchmarks' results. A batch has a fixed cost, and costs
that grow with five quantities: number of known channels, number of channels with a
frame in the batch, bytes of these channels' states, number of frames, and bytes of
frames. No cost is negative. docs/planning.md has the definitions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from sds_core.observer.settings import DEFAULTS
from sds_core.planning.cost_fit import Fit, FitRow, fit, fit_power
from sds_core.planning.measured import Performance, Run, Scaling

MIX = ((1, 10), (5, 5), (25, 3))
"""Classes of channels in the data set `mix` (benchmarks/data.py).

A class is a pair: a number n, and the number of participants per channel. For every 10
frames/s of the data set, the class has n channels with filters and n channels without
filters. Each class has a third of all frames.
"""

USUAL = 5
"""Number of participants per channel in most rows of the benchmarks."""

_LIVE_HOURS = 50 / 3_600
"""Hours of traffic that channels remember in the middle of a live benchmark."""

_LIVE = re.compile(
    r"([\d,]+) (?:(big|small) )?(?:frames|messages)/s(?: on|,) ([\d,]+) channels, CPU"
)

_DRAIN_BATCHES = 8
"""Number of batches in which a `drain` benchmark reads its topic."""

_CATCH_UP = "catch-up of 60 min of 200 channels"

KEPT_BATCHES = 100
"""Number of batches whose files Spark keeps.

The Spark setting is `spark.sql.streaming.minBatchesToRetain`.
"""

MOST_CORES = 1_024
"""Maximum number of cores that `CostModel.size` tries."""

_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Load:
    """The traffic that a monitor processes.

    Attributes:
        frames_per_s: Frames per second of all channels together. All channels have the
            same traffic.
        hours: Hours for which a channel remembers messages.
        frame_bytes: Mean bytes of a frame.
        trigger_s: Seconds of traffic in a batch.
    """

    channels: float
    participants: float
    frames_per_s: float
    hours: float
    frame_bytes: float
    trigger_s: float = 1.0

    def times(self, factor: float) -> Load:
        """Return a load with `factor` times as many channels.

        The traffic per channel stays the same.
        """
        return replace(
            self,
            channels=self.channels * factor,
            frames_per_s=self.frames_per_s * factor,
        )

    @property
    def frames(self) -> float:
        """Number of frames in a batch."""
        return self.frames_per_s * self.trigger_s

    @property
    def touched(self) -> float:
        """Mean number of channels that have at least one frame in a batch.

        Frames are assumed to be independent of each other.
        """
        return self.channels * -math.expm1(-self.frames / self.channels)

    @property
    def remembered(self) -> float:
        """Number of messages that a channel remembers, at most the default maximum.

        Each frame is assumed to be a message.
        """
        seen = self.frames_per_s / self.channels * self.hours * 3_600
        return min(seen, DEFAULTS.remembered)


class BatchRow(NamedTuple):
    """Measured costs of a batch. The load of the batch is the sum of `loads`.

    An unknown cost is 0.
    """

    name: str
    loads: list[Load]
    cpu_s: float
    batch_s: float
    memory_bytes: float = 0.0


class CostRows:
    """Results of the benchmarks, as rows to which a cost model is fitted.

    Methods raise `NotMeasured` if a result is missing.
    """

    def __init__(self, performance: Performance, scaling: Scaling) -> None:
        self._performance, self._scaling = performance, scaling

    def frames(self) -> list[FitRow]:
        """Return the CPU time per frame, microseconds, by number of participants."""
        row, what = "growth of one channel", "read and apply a frame: {:,} participants"
        return [
            (what.format(n), [n], self._performance.median(row, what.format(n)))
            for n in (10, 100, 1_000)
        ]

    def states(self) -> list[FitRow]:
        """Return the bytes of a state, by number of messages and of participants."""
        rows: list[FitRow] = []
        for count in (100, 3_650, 20_000):
            kilobytes = self._performance.median("state", f"blob: {count:,} messages")
            rows.append((f"{count:,} messages", [count, USUAL], kilobytes * 1e3))
        for state in self._scaling.states:
            values = [state.messages_a_day / 24, state.participants]
            name = f"{state.participants} participants"
            rows.append((name, values, float(state.blob_bytes)))
        return rows

    @property
    def local_runs(self) -> list[Run]:
        """Runs with the maximum number of cores, two state partitions, no executors."""
        runs = self._scaling.runs.sizes
        local = max(run.cores for run in runs), 2, 0
        return [r for r in runs if (r.cores, r.state_partitions, r.executors) == local]

    def run_load(self, run: Run, batches: float = 0.0) -> Load:
        """Return the load of a run in its batch number `batches`.

        The default is the middle of the batches that are measured.
        """
        runs = self._scaling.runs
        hours = (batches or (runs.cold + runs.batches) / 2) / 3_600
        size = self._performance.data_set("small")[2]
        return Load(run.channels, runs.participants, runs.batch_records, hours, size)

    def batches(self) -> Iterator[BatchRow]:
        """Yield the results of the benchmarks that run the whole job."""
        median = self._performance.median
        data = {name: self._performance.data_set(name) for name in ("big", "small")}
        big, small = (size for _, _, size in data.values())

        yield self._live("little to do", "heartbeats only", [])
        for measure in self._performance.measures:
            if not (match := _LIVE.fullmatch(measure.what)):
                continue
            rate, channels = (float(match[n].replace(",", "")) for n in (1, 3))
            size = small if match[2] == "small" else big
            loads = [Load(channels, USUAL, rate, _LIVE_HOURS, size)]
            if measure.row == "what operators have":
                loads = [
                    Load(share * rate / 10, members, rate / 6, _LIVE_HOURS, size)
                    for share, members in MIX
                    for size in (big, small)
                ]
            yield self._live(measure.row, measure.what.removesuffix(", CPU"), loads)

        frames = median("an hour", _CATCH_UP)
        frames *= median("an hour", f"{_CATCH_UP}, with the start")
        load = Load(200, self._scaling.runs.participants, frames / 3_600, 1.0, small)
        what = "200 channels at one message/s, 60 min remembered"
        yield self._live("an hour", what, [load])

        for name, (channels, frames, size) in data.items():
            row = f"drain {name}"
            cpu_us, rate = (median(one, "this job") for one in (f"{row}, CPU", row))
            frames /= _DRAIN_BATCHES
            # The load is that of the middle of the benchmark, when the channels
            # remember half of the frames.
            load = Load(channels, USUAL, frames, _DRAIN_BATCHES / 2 / 3_600, size)
            yield BatchRow(row, [load], cpu_us * frames / 1e6, frames / rate)

        frames = self._scaling.runs.batch_records
        for run in self.local_runs:
            yield BatchRow(
                f"{run.channels:,} channels in batches of {frames:,}",
                [self.run_load(run)],
                run.cpu_us * frames / 1e6,
                frames / run.frames_per_s,
                run.memory_mb * 1e6,
            )

    def _live(self, row: str, what: str, loads: list[Load]) -> BatchRow:
        cpu, batch, memory = (
            self._performance.median(row, f"{what}, {figure}")
            for figure in ("CPU", "batch", "memory")
        )
        return BatchRow(what, loads, cpu, batch, memory * 2**20)


class Limit(NamedTuple):
    """The maximum load on a number of cores, if the traffic per channel is fixed."""

    cores: float
    channels: int
    frames_per_s: float


class Size(NamedTuple):
    """The resources that the monitor needs.

    Attributes:
        needs: Resources by name: bytes, seconds and counts. docs/planning.md defines
            the names. `machine_cores` is None if `MOST_CORES` cores are not enough.
        limits: Maximum load with as many cores as in the benchmarks, and maximum load
            with an unlimited number of cores.
    """

    needs: dict[str, Any]
    limits: tuple[Limit, ...]


class CostModel:
    """Model of a job's costs, which is fitted to the results of the benchmarks.

    Raises:
        NotMeasured: The results lack a measure.
    """

    def __init__(self, performance: Performance, scaling: Scaling) -> None:
        self._scaling, self._rows = scaling, CostRows(performance, scaling)
        self._frame = fit_power(self._rows.frames())
        self._state = fit_power(self._rows.states())
        rows = list(self._rows.batches())
        self._loads = [row.loads for row in rows]
        self.fits = {
            "cpu": fit(self._features(rows, "cpu_s")),
            "batch": fit(self._features(rows, "batch_s")),
            "memory": fit(self._features(rows, "memory_bytes")),
            "state": self._state,
        }
        runs = scaling.runs
        local = [(f"{run.channels} channels", run) for run in self._rows.local_runs]
        self.fits["written"] = fit(
            [
                (name, [self._touched(load)], run.written_kb * runs.batch_records)
                for name, run in local
                for load in [self._rows.run_load(run)]
            ]
        )
        batches = range(1, runs.batches + 1)
        self.fits["checkpoint"] = Fit(
            (),
            tuple(
                (name, run.checkpoint_mb * 1e6, sum(map(self._written, loads)))
                for name, run in local
                for loads in [[self._rows.run_load(run, batch) for batch in batches]]
            ),
        )
        one, both = runs.run(1_000, 1), runs.run(1_000, 2)
        self.measured_cores = both.cores
        # The wall time of a batch is s + p / cores, with a serial part s and a parallel
        # part p. `single` is s + p, measured on one core. `double` is s + p / 2,
        # measured on two cores. `_serial` is s / `double`.
        single, double = 1 / one.frames_per_s, 1 / both.frames_per_s
        self._serial = max(0.0, 2 * double - single) / double
        first, last = runs.run(1_000, 1, 1), runs.run(1_000, 2, 2)
        self.measured_executors = last.executors
        self._cluster_factor = last.cpu_us / both.cpu_us
        self._busy = last.frames_per_s * last.cpu_us / 1e6 / last.executors
        self._executor_bytes = (last.memory_mb - first.memory_mb) * 1e6

    def cpu_s(self, load: Load) -> float:
        """Return the CPU time of a batch, seconds, if the job has no executors."""
        return self.fits["cpu"].of(self._costs(load))

    def batch_s(self, load: Load, cores: float) -> float:
        """Return the wall time of a batch, seconds, on a number of cores."""
        return self.fits["batch"].of(self._costs(load)) * self._spread(cores)

    def extrapolated(self, load: Load) -> list[str]:
        """Return the names of the load's values that no benchmark reached."""
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

    def size(self, load: Load, *, history_days: int) -> Size:
        """Return the resources for a load if the history is kept for `history_days`."""
        cpu_cores = self.cpu_s(load) / load.trigger_s
        enough = (
            cores
            for cores in range(1, MOST_CORES + 1)
            if self.batch_s(load, cores) <= load.trigger_s
        )
        state = self._state_bytes(load)
        states = state * load.channels
        written = self._written(load)
        kept = self.fits["written"].of([states])
        checkpoint = KEPT_BATCHES * written + kept
        history = self._scaling.history
        minutes = _minutes(load.frames_per_s / load.channels)
        days = load.channels * minutes / _minutes(history.messages_a_day / _DAY_S)
        files = days * history.files_bytes
        stored = history_days * files + days * history.running_bytes
        waiting = days * history.pending_bytes
        needs = {
            "cpu_cores": cpu_cores,
            "batch_s": self.batch_s(load, self.measured_cores),
            "machine_cores": next(enough, None),
            "memory_bytes": self.fits["memory"].of(self._costs(load)),
            "channel_state_bytes": state,
            "state_bytes": states,
            "written_bytes_per_s": written / load.trigger_s,
            "checkpoint_bytes": checkpoint,
            "history_bytes_per_day": files,
            "history_bytes": stored,
            "ledger_bytes_per_day": waiting,
            "disk_bytes": checkpoint + stored + waiting,
            "executors": math.ceil(cpu_cores * self._cluster_factor / self._busy),
            "executor_memory_bytes": self._executor_bytes,
        }
        limits = (self._limit(load, n) for n in (self.measured_cores, math.inf))
        return Size(needs, tuple(limits))

    def _limit(self, load: Load, cores: float) -> Limit:
        spread, fit_ = self._spread(cores), self.fits["batch"]
        fixed_s = fit_.coefficients[0] * spread
        growing_s = self.batch_s(load, cores) - fixed_s
        # All costs except the fixed cost are proportional to the number of channels.
        factor = max(0.0, load.trigger_s - fixed_s) / max(growing_s, 1e-12)
        channels = math.floor(load.channels * factor)
        return Limit(cores, channels, load.frames_per_s * factor)

    def _spread(self, cores: float) -> float:
        """Return the wall time on `cores`, divided by that on `measured_cores`."""
        return self._serial + (1 - self._serial) * self.measured_cores / cores

    def _state_bytes(self, load: Load) -> float:
        return self._state.power_of([max(load.remembered, 1.0), load.participants])

    def _touched(self, load: Load) -> float:
        """Return the total bytes of all states that change in a batch."""
        return load.touched * self._state_bytes(load)

    def _written(self, load: Load) -> float:
        return self.fits["written"].of([self._touched(load)])

    def _costs(self, load: Load) -> list[float]:
        _, exponent = self._frame.coefficients
        frames = load.frames * (load.participants / USUAL) ** exponent
        sizes = load.frames * load.frame_bytes
        return [1.0, load.touched, self._touched(load), frames, sizes, load.channels]

    def _features(self, rows: list[BatchRow], figure: str) -> list[FitRow]:
        features: list[FitRow] = []
        for row in rows:
            if value := getattr(row, figure):
                costs = [self._costs(load)[1:] for load in row.loads] or [[0.0] * 5]
                sums = [1.0, *map(sum, zip(*costs, strict=True))]
                features.append((row.name, sums, value))
        return features


def _minutes(frames_per_s: float) -> float:
    """Return the mean number of minutes per day in which a channel sends a frame."""
    return 1_440 * -math.expm1(-60 * frames_per_s)
