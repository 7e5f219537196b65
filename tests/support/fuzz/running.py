"""Runs a target: many inputs, each once, and what was found."""

from __future__ import annotations

import signal
import sys
import time
import traceback
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from tests.support.fuzz.target import Target

CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus"
"""Inputs that once broke a contract, in a directory for each target."""

_LONGEST_CPU_S = 20
_FIXED_CALLS = 50_000
_COSTS_EVERY = 50
"""Of so many inputs, one is checked for its calls and one for its memory: counting
makes a check several times slower."""

_MEASUREMENTS = 3
"""Measurements of memory, of which the least counts."""


class TooExpensive(AssertionError):
    """An input costs more than its size allows."""


@dataclass(frozen=True)
class Finding:
    """An input that breaks the contract of a target.

    Attributes:
        target: Name of the target.
        data: The input.
        place: Class of the error and the line of code that raised it: the same for
            inputs that find the same defect.
        text: The traceback.
    """

    target: str
    data: bytes
    place: str
    text: str

    @property
    def summary(self) -> str:
        """The last line of the traceback, shortened."""
        return self.text.strip().splitlines()[-1][:200]


@dataclass
class Tally:
    """What a run of a target came to.

    Attributes:
        inputs: Number of inputs.
        accepted: Number of those that the decoder accepted.
        cpu_s: CPU time, seconds.
        findings: The first input for each defect, by `Finding.place`.
    """

    inputs: int = 0
    accepted: int = 0
    cpu_s: float = 0.0
    findings: dict[str, Finding] = field(default_factory=dict)


def corpus_of(target: Target) -> list[bytes]:
    """Return the inputs of a target in the repository."""
    return [path.read_bytes() for path in sorted((CORPUS / target.name).glob("*"))]


def run(target: Target, seed: int, first: int, ends: Callable[[int], bool]) -> Tally:
    """Check inputs; the same seed and number always give the same input.

    Args:
        target: What to check.
        seed: Seed of all inputs.
        first: Number of the first input.
        ends: Returns whether to end after so many inputs.
    """
    tally, corpus = Tally(), corpus_of(target)
    begun_s = time.process_time()
    while not ends(tally.inputs):
        number = first + tally.inputs
        data = target.input(Random(f"{seed}/{target.name}/{number}"), corpus)
        found = check(target, data, number % _COSTS_EVERY)
        tally.inputs += 1
        if isinstance(found, Finding):
            tally.findings.setdefault(found.place, found)
        else:
            tally.accepted += found
    tally.cpu_s = time.process_time() - begun_s
    return tally


def check(target: Target, data: bytes, costs: int = -1) -> bool | Finding:
    """Check one input; returns whether it was accepted, or how it broke the contract.

    Args:
        target: What to check.
        data: The input.
        costs: 0 to limit the calls as well, 1 for the memory.
    """
    try:
        with _limited_cpu():
            if costs == 0:
                return _with_counted_calls(target, data)
            if costs == 1:
                return _with_measured_memory(target, data)
            return target.check(data)
    except Exception as error:
        return _finding(target, data, error)


def minimised(finding: Finding, target: Target, attempts: int = 2_000) -> Finding:
    """Return the finding with a shorter input that still shows the same defect.

    Args:
        finding: Its input is shortened by ever smaller stretches.
        target: Its target.
        attempts: Number of shorter inputs that are tried at most.
    """
    step = len(finding.data) // 2
    while step and attempts > 0:
        at, before = 0, finding
        while at < len(finding.data) and attempts > 0:
            attempts -= 1
            shorter = finding.data[:at] + finding.data[at + step :]
            found = check(target, shorter)
            if isinstance(found, Finding) and found.place == finding.place:
                finding = found
            else:
                at += step
        if finding is before:
            step //= 2
    return finding


def _finding(target: Target, data: bytes, error: Exception) -> Finding:
    frames = traceback.extract_tb(error.__traceback__)
    # A check that ends in a library is told apart by our own last line.
    own = [one for one in frames if "site-packages" not in one.filename] or frames
    place = f"{type(error).__name__} at {Path(own[-1].filename).name}:{own[-1].lineno}"
    text = "".join(traceback.format_exception(error))
    return Finding(target.name, data, place, text)


def _with_counted_calls(target: Target, data: bytes) -> bool:
    # Counted, not timed: the same on every machine.
    limit = _FIXED_CALLS + target.calls_per_byte * len(data)
    calls = 0

    def count(_: FrameType, event: str, __: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        accepted = target.check(data)
    finally:
        sys.setprofile(before)
    if calls > limit:
        message = f"{calls:,} calls for {len(data):,} bytes, allowed are {limit:,}"
        raise TooExpensive(message)
    return accepted


def _with_measured_memory(target: Target, data: bytes) -> bool:
    limit = target.fixed_memory + target.memory_per_byte * len(data)
    peaks: list[int] = []
    # Other threads of the process, such as those of Spark's session, allocate too; what
    # a decoder allocates is the same each time.
    while len(peaks) < _MEASUREMENTS and (not peaks or min(peaks) > limit):
        tracemalloc.start()
        try:
            accepted = target.check(data)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    if min(peaks) > limit:
        message = f"{min(peaks):,} bytes for {len(data):,} bytes, allowed are {limit:,}"
        raise TooExpensive(message)
    return accepted


@contextmanager
def _limited_cpu() -> Iterator[None]:
    """Raise `TooExpensive` in the block if it takes far too much CPU time."""

    def stop(_: int, __: FrameType | None) -> None:
        message = f"more than {_LONGEST_CPU_S} s of CPU"
        raise TooExpensive(message)

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, _LONGEST_CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
