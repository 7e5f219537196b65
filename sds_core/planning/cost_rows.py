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
_LIVE_S = 50.0
"""Seconds of traffic that a live row's channels remember in the middle of it."""
_LIVE = re.compile(
    r"([\d,]+) (?:(big|small) )?(?:frames|messages)/s(?: on|,) ([\d,]+) channels, CPU"
)
_DRAIN_BATCHES = 8
"""Batches in which the rows of `drain` read their topic."""


class BatchRow(NamedTuple):
    """A row of the benchmarks: a batch of some loads; 0 for what has no figure."""

    name: str
    loads: list[Load]
    cpu_s: float
    batch_s: float
    memory_bytes: float


class CostRows:
    """Rows that a cost model is fitted to; iterators raise `NotMeasured`.

    Args:
        performance: A full run of `make bench`.
        scaling: Figures of the other benchmarks.
    """

    def __init__(self, performance: Performance, scaling: Scaling) -> None:
        self._performance, self._scaling = performance, scaling

    def frames(self) -> Iterator[FitRow]:
        """Yield the cost of a frame by participants, microseconds."""
        for count in (10, 100, 1_000):
            what = f"read and apply a frame: {count:,} participants"
            cost_us = self._performance.median("growth of one channel", what)
            yield what, [count], cost_us

    def states(self) -> Iterator[FitRow]:
        """Yield the state of a channel by messages and participants, bytes."""
        for count in (100, 3_650, 20_000):
            kilobytes = self._performance.median("state", f"blob: {count:,} messages")
            yield f"{count:,} messages", [count, USUAL], kilobytes * 1e3
        for state in self._scaling.states:
            hour = state.messages_a_day / 24
            name = f"{state.participants} participants"
            yield name, [hour, state.participants], float(state.blob_bytes)

    def batches(self) -> Iterator[BatchRow]:
        """Yield the rows of whole jobs."""
        yield from self._live_rows()
        yield from self._drain_rows()
        yield from self._run_rows()

    @property
    def local_runs(self) -> list[Run]:
        """Runs on the whole machine with the default partitions of the state."""
        cores = max(run.cores for run in self._scaling.runs.sizes)
        return [
            run
            for run in self._scaling.runs.sizes
            if (run.cores, run.state_partitions, run.executors) == (cores, 2, 0)
        ]

    def run_load(self, run: Run, batches: float = 0.0) -> Load:
        """Return a batch of a run, after so many; by default the middle of the run."""
        runs = self._scaling.runs
        hours = (batches or (runs.cold + runs.batches) / 2) / 3_600
        size = self._performance.data_set("small")[2]
        return Load(run.channels, runs.participants, runs.batch_records, hours, size)

    def _live_rows(self) -> Iterator[BatchRow]:
        """Yield the rows that follow traffic with a trigger of a second."""
        performance = self._performance
        big, small = (performance.data_set(name)[2] for name in ("big", "small"))
        idle = "heartbeats only"
        yield self._live("little to do", idle, [])
        for measure in performance.measures:
            if not (match := _LIVE.fullmatch(measure.what)):
                continue
            rate, channels = (float(match[n].replace(",", "")) for n in (1, 3))
            hours = _LIVE_S / 3_600
            if measure.row == "what operators have":
                loads = [
                    Load(share * rate / 10, members, rate / 6, hours, size)
                    for share, members in MIX
                    for size in (big, small)
                ]
            else:
                size = small if match[2] == "small" else big
                loads = [Load(channels, USUAL, rate, hours, size)]
            yield self._live(measure.row, measure.what.removesuffix(", CPU"), loads)
        what = "catch-up of 60 min of 200 channels"
        frames = performance.median("an hour", what)
        frames *= performance.median("an hour", f"{what}, with the start")
        load = Load(200, self._scaling.runs.participants, frames / 3_600, 1.0, small)
        what = "200 channels at one message/s, 60 min remembered"
        yield self._live("an hour", what, [load])

    def _live(self, row: str, what: str, loads: list[Load]) -> BatchRow:
        cpu, batch, memory = (
            self._performance.median(row, f"{what}, {figure}")
            for figure in ("CPU", "batch", "memory")
        )
        return BatchRow(what, loads, cpu, batch, memory * 2**20)

    def _drain_rows(self) -> Iterator[BatchRow]:
        for name in ("big", "small"):
            channels, frames, size = self._performance.data_set(name)
            row = f"drain {name}"
            cpu_us = self._performance.median(f"{row}, CPU", "this job")
            rate = self._performance.median(row, "this job")
            frames /= _DRAIN_BATCHES
            # In the middle of the run, half of the frames are remembered.
            hours = _DRAIN_BATCHES / 2 / 3_600
            load = Load(channels, USUAL, frames, hours, size)
            yield BatchRow(row, [load], cpu_us * frames / 1e6, frames / rate, 0.0)

    def _run_rows(self) -> Iterator[BatchRow]:
        frames = self._scaling.runs.batch_records
        for run in self.local_runs:
            yield BatchRow(
                f"{run.channels:,} channels in batches of {frames:,}",
                [self.run_load(run)],
                run.cpu_us * frames / 1e6,
                frames / run.frames_per_s,
                run.memory_mb * 1e6,
            )
