"""What the rows of the benchmarks measure: loads, and their figures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from sds_core.planning.cost_fit import FitRow
from sds_core.planning.load import Load
from sds_core.planning.measured import Performance, Run, Scaling

MIX = ((1, 10), (5, 5), (25, 3))
"""Classes of `mix` in benchmarks/data.py: channels per ten frames a second, counted
twice (with and without filter), and participants; each class has a third of the frames.
"""
USUAL = 5
"""Participants of the data sets, unless a row says otherwise."""
_LIVE_HOURS = 50 / 3_600
"""Traffic that a live row's channels remember in the middle of it."""
_LIVE = re.compile(
    r"([\d,]+) (?:(big|small) )?(?:frames|messages)/s(?: on|,) ([\d,]+) channels, CPU"
)
_DRAIN_BATCHES = 8
"""Batches in which the rows of `drain` read their topic."""
_CATCH_UP = "catch-up of 60 min of 200 channels"


class BatchRow(NamedTuple):
    """A row of the benchmarks: a batch of some loads; 0 for what has no figure."""

    name: str
    loads: list[Load]
    cpu_s: float
    batch_s: float
    memory_bytes: float = 0.0


class CostRows:
    """Rows that a cost model is fitted to; methods raise `NotMeasured`."""

    def __init__(self, performance: Performance, scaling: Scaling) -> None:
        self._performance, self._scaling = performance, scaling

    def frames(self) -> list[FitRow]:
        """Return the cost of a frame by participants, microseconds."""
        row, what = "growth of one channel", "read and apply a frame: {:,} participants"
        return [
            (what.format(n), [n], self._performance.median(row, what.format(n)))
            for n in (10, 100, 1_000)
        ]

    def states(self) -> list[FitRow]:
        """Return the state of a channel by messages and participants, bytes."""
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
        """Runs on the whole machine with the default partitions of the state."""
        runs = self._scaling.runs.sizes
        local = max(run.cores for run in runs), 2, 0
        return [r for r in runs if (r.cores, r.state_partitions, r.executors) == local]

    def run_load(self, run: Run, batches: float = 0.0) -> Load:
        """Return a batch of a run, after so many; by default the middle of the run."""
        runs = self._scaling.runs
        hours = (batches or (runs.cold + runs.batches) / 2) / 3_600
        size = self._performance.data_set("small")[2]
        return Load(run.channels, runs.participants, runs.batch_records, hours, size)

    def batches(self) -> Iterator[BatchRow]:
        """Yield the rows of whole jobs, batches of a second if not said otherwise."""
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
            # In the middle of the run, half of the frames are remembered.
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
