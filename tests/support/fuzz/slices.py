"""Shares the time of a run out among decoders and processes."""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from tests.support.fuzz.running import Finding, Tally, check, minimised, run
from tests.support.fuzz.targets import TARGETS

_SLICE_S = 5.0
_MOST_INPUTS = 10**7
"""Of a slice: numbers of its inputs begin where no other's can end."""


class ProcessEnded(Exception):
    """An input ended the process that checked it, which may have said why.

    Args:
        names: Targets whose inputs were being checked.
    """

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(
            f"a process ended while it checked an input of {' or '.join(set(names))}"
        )


def run_all(
    names: Sequence[str],
    seed: int,
    seconds: float,
    jobs: int,
    report: Callable[[Finding], None],
) -> dict[str, Tally]:
    """Run targets in turn, each for its share of the time; return their tallies.

    Args:
        names: Names of the targets.
        seed: Seed of all inputs.
        seconds: Time until the last slice begins.
        jobs: Number of processes.
        report: Called with the first input that shows a defect.

    Raises:
        ProcessEnded: An input ended a process.
    """
    tallies = {name: Tally() for name in names}
    turns = [name for name in names for _ in range(TARGETS[name].share)]
    slice_s = min(_SLICE_S, jobs * seconds / len(turns))
    ends_s = time.monotonic() + seconds
    running: dict[Future[Tally], str] = {}
    begun: Counter[str] = Counter()
    # Forked processes would share the state of this one.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context) as pool:
        while running or time.monotonic() < ends_s:
            while len(running) < jobs and time.monotonic() < ends_s:
                name = turns[begun.total() % len(turns)]
                first = begun[name] * _MOST_INPUTS
                running[pool.submit(_slice, name, seed, first, slice_s)] = name
                begun[name] += 1
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                if isinstance(future.exception(), BrokenProcessPool):
                    raise ProcessEnded(running.values())
                _add(tallies[running.pop(future)], future.result(), report)
    return tallies


def _slice(name: str, seed: int, first: int, seconds: float) -> Tally:
    # The first call in a process imports and keeps much that no input should pay for.
    check(TARGETS[name], TARGETS[name].seeds[0])
    ends_s = time.monotonic() + seconds
    tally = run(TARGETS[name], seed, first, lambda _: time.monotonic() >= ends_s)
    for place, finding in tally.findings.items():
        tally.findings[place] = minimised(finding, TARGETS[name])
    return tally


def _add(tally: Tally, more: Tally, report: Callable[[Finding], None]) -> None:
    tally.inputs += more.inputs
    tally.accepted += more.accepted
    tally.cpu_s += more.cpu_s
    for place, finding in more.findings.items():
        if place not in tally.findings:
            tally.findings[place] = finding
            report(finding)
