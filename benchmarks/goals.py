"""Goals of the job's speed, on two cores, and what a run says about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks.results import Run
from benchmarks.rows import drain
from benchmarks.rows.age import ROW as AGE
from benchmarks.rows.catch_up import ROW as HOUR
from benchmarks.rows.channel import ROW as CHANNEL
from benchmarks.rows.floor import ROW as FLOOR
from benchmarks.rows.hostile import ROW as HOSTILE

_GB_PER_MIB = 2**20 / 1e9

HEAD = ("what", "this run", "goal", "aim", "", "why")
_NOT_MEASURED = "not measured"

# Why a goal is missed. Nothing checks these: read them again after each run.
_RULES = "the rules and the reader run in Python, and use most of the CPU time"
_STATE = "every batch reads and writes the state of each channel that has new frames"
_PYTHON = "the monitor's rules run in Python; the naive process has hardly any rules"
_WAITS = "a frame waits until the previous batch ends, then until its own batch ends"
_START = "the JVM, Spark and the first Python workers start one after the other"


@dataclass(frozen=True)
class Goal:
    """A goal.

    Attributes:
        name: What is measured.
        values: Returns it from a run, one value per repetition.
        goal, aim: What is to be reached, and what would be better still; the latter may
            be None.
        unit: Unit of all three.
        is_least: Whether larger values are better.
        why: Why it is missed, if it is.
    """

    name: str
    values: Callable[[Run], Sequence[float]]
    goal: float
    aim: float | None
    unit: str
    is_least: bool = False
    why: str = ""

    def outcome(self, value: float) -> str:
        """Return whether a value reaches the goal, or how far it is from it."""
        if value >= self.goal if self.is_least else value <= self.goal:
            return "met"
        return f"missed: {value / self.goal:.2g} x the goal"

    def cells(self, run: Run) -> tuple[str, ...]:
        """Return the goal's row of a table; `HEAD` has the names of the columns."""
        values = self.values(run)
        shown, outcome, why = "", _NOT_MEASURED, ""
        if values:
            shown = f"{median(values):.3g} {self.unit}"
            if len(values) > 1:
                shown += f" ({min(values):.3g} to {max(values):.3g})"
            outcome = self.outcome(median(values))
            why = "" if outcome == "met" else self.why
        aim = "" if self.aim is None else f"{self.aim:g} {self.unit}"
        return self.name, shown, f"{self.goal:g} {self.unit}", aim, outcome, why


def _cpu_ratio(data: str, of: str, to: str) -> Callable[[Run], Sequence[float]]:
    return lambda run: run.ratios(drain.cpu(data), of, to)


def _found(
    row: str, *words: str, factor: float = 1.0
) -> Callable[[Run], Sequence[float]]:
    """Return a function for the measure whose name has all these words.

    Names also hold numbers that differ in a short run. Of several measures it is the
    one with the greatest median.
    """

    def values(run: Run) -> Sequence[float]:
        found = [
            [value * factor for value in one.values]
            for one in run.measures
            if one.row == row and all(word in one.what for word in words)
        ]
        return max(found, key=median, default=())

    return values


def _against(data: str, other: str, goal: float, aim: float, why: str) -> Goal:
    name = f"{data} frames: CPU time of the {other}, divided by that of this job"
    ratio = _cpu_ratio(data, other, drain.JOB)
    return Goal(name, ratio, goal, aim, "x", is_least=True, why=why)


def _without_spark(data: str, goal: float, aim: float) -> Goal:
    name = (
        f"{data} frames: CPU time of the naive process, "
        "divided by that of this monitor's views"
    )
    ratio = _cpu_ratio(data, drain.NAIVE, drain.SAME)
    return Goal(name, ratio, goal, aim, "x", is_least=True, why=_PYTHON)


RATIOS = (
    _against("big", drain.FIGURES, 2.4, 2.8, _RULES),
    _against("small", drain.FIGURES, 2.2, 2.6, _STATE),
    _against("big", drain.COUNTS, 2.0, 2.4, _RULES),
    _against("small", drain.COUNTS, 1.6, 2.0, _STATE),
    _without_spark("big", 0.6, 0.8),
    _without_spark("small", 0.2, 0.3),
)
"""CPU time of the other by ours, so 2 x is half the CPU time."""

OTHERS = (
    Goal(
        "open a state, apply one frame, close the state: 100 messages",
        _found(CHANNEL, ": 100 messages"),
        *(0.1, None, "ms"),
        why=_RULES,
    ),
    Goal(
        "open a state, apply one frame, close the state: 3,650 messages",
        _found(CHANNEL, ": 3,650 messages"),
        *(0.4, None, "ms"),
        why=_RULES,
    ),
    Goal(
        "open a state, apply one frame, close the state: 20,000 messages",
        _found(CHANNEL, ": 20,000 messages"),
        *(1.5, None, "ms"),
        why=_RULES,
    ),
    Goal(
        "age on `/metrics`, p95: 500 big frames/s, 40 channels",
        _found(AGE, "500 big", "p95"),
        *(1.2, 1, "s"),
        why=_WAITS,
    ),
    Goal(
        "age on `/metrics`, p95: 2,000 small frames/s, 1,920 channels",
        _found(AGE, "2,000 small", "p95"),
        *(1.5, 1.2, "s"),
        why=_STATE,
    ),
    Goal(
        "age on `/metrics`, p95: 200 channels with one message/s each, "
        "60 min remembered",
        _found(HOUR, "p95"),
        *(2, 1.5, "s"),
        why=_STATE,
    ),
    Goal(
        "CPU time of a hostile record, divided by that of a normal frame of equal size",
        _found(HOSTILE),
        *(8, 4, "x"),
        why="a normal frame has one new id; a hostile record has many ids or MVDS "
        "records. The monitor reads all these ids and records, and tracks most of them",
    ),
    Goal(
        "CPU at 3 frames/s on 8 channels",
        _found(FLOOR, "3 frames/s", "CPU"),
        *(0.15, None, "cores"),
        why="each batch has a fixed cost, most of it in Spark, and one starts each "
        "second",
    ),
    Goal(
        "memory at 3 frames/s on 8 channels",
        _found(FLOOR, "3 frames/s", "memory", factor=_GB_PER_MIB),
        *(0.75, None, "GB"),
        why="the JVM, the driver and two Python workers load their libraries",
    ),
    Goal(
        "time from the command to the first figures, after `sds-monitor prepare`",
        _found(FLOOR, "first figures, after"),
        *(4.5, None, "s"),
        why=_START,
    ),
    Goal(
        "time from the command to the first figures, on a fresh clone",
        _found(FLOOR, "first figures, on a fresh clone"),
        *(8, None, "s"),
        why=_START,
    ),
)

GOALS = (*RATIOS, *OTHERS)


def cells(run: Run) -> Iterator[tuple[str, ...]]:
    """Yield the row of each goal, with the columns of `HEAD`."""
    return (goal.cells(run) for goal in GOALS)


def print_goals(run: Run) -> None:
    """Print the goals that the run has values of, without the reasons."""
    table = Table(*HEAD[:-1])
    for *row, _ in cells(run):
        if _NOT_MEASURED not in row:
            table.add_row(*row)
    if table.row_count:
        Console(stderr=True).print(table)
