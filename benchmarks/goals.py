"""Goals of the job's speed, on two cores, and what a run says about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from rich.console import Console
from rich.table import Table

from benchmarks.results import Run
from benchmarks.rows import drain
from benchmarks.rows.age import ROW as AGE
from benchmarks.rows.catch_up import ROW as HOUR
from benchmarks.rows.channel import ROW as CHANNEL
from benchmarks.rows.floor import ROW as FLOOR
from benchmarks.rows.hostile import ROW as HOSTILE
from benchmarks.rows.touched import ROW as TOUCHED

_GIB_IN_MIB = 1.073741824


@dataclass(frozen=True)
class Goal:
    """A goal.

    Attributes:
        name: What is measured.
        value: Returns it from a run; None if the run does not have it.
        goal, aim: What is to be reached, and what would be better still.
        unit: Unit of all three.
        is_least: Whether larger values are better.
    """

    name: str
    value: Callable[[Run], float | None]
    goal: float
    aim: float
    unit: str
    is_least: bool = False

    def is_met(self, value: float) -> bool:
        """Whether a value reaches the goal."""
        return value >= self.goal if self.is_least else value <= self.goal


def _ratio(data: str, other: str) -> Callable[[Run], float | None]:
    return lambda run: run.ratio(f"drain {data}", drain.JOB, other)


def _found(row: str, *words: str, factor: float = 1.0) -> Callable[[Run], float | None]:
    """Return a function for the measure whose name has all these words.

    Names also hold numbers that differ in a short run.
    """

    def value(run: Run) -> float | None:
        found = [
            one.median * factor
            for one in run.measures
            if one.row == row and all(word in one.what for word in words)
        ]
        return max(found, default=None)

    return value


def _most_channels(run: Run) -> float | None:
    """Return the last measure of many channels: most news among most channels."""
    found = [one.median for one in run.measures if one.row == TOUCHED]
    return found[-1] if found else None


_times = partial(Goal, unit="x", is_least=True)

GOALS = (
    _times("big, against the obvious Spark job", _ratio("big", drain.OBVIOUS), 6, 8),
    _times(
        "small, against the obvious Spark job", _ratio("small", drain.OBVIOUS), 4, 6
    ),
    _times(
        "big, against one process with kafka-python, naive",
        _ratio("big", drain.KAFKA_PYTHON),
        2,
        3,
    ),
    _times(
        "small, against one process with kafka-python, naive",
        _ratio("small", drain.KAFKA_PYTHON),
        1.5,
        2.5,
    ),
    _times(
        "big, against one process with confluent-kafka, naive",
        _ratio("big", drain.CONFLUENT),
        0.5,
        0.8,
    ),
    _times(
        "big, against the same semantics in one process",
        _ratio("big", drain.SAME),
        1.3,
        1.6,
    ),
    _times(
        "small, against the same semantics in one process",
        _ratio("small", drain.SAME),
        1.3,
        1.6,
    ),
    Goal(
        "open and close a channel of 3,650 messages",
        _found(CHANNEL, "an hour"),
        2,
        1,
        "ms",
    ),
    Goal(
        "open and close a channel of 20,000 messages",
        _found(CHANNEL, "20,000"),
        15,
        5,
        "ms",
    ),
    Goal("idle batch", _found(FLOOR, "idle batch"), 0.45, 0.3, "s"),
    Goal(
        "batch at 500 big frames/s, 40 channels",
        _found(AGE, "500 big", "batch"),
        0.9,
        0.6,
        "s",
    ),
    Goal(
        "age on `/metrics`, p95, 500 big frames/s",
        _found(AGE, "500 big", "p95"),
        2,
        1.5,
        "s",
    ),
    Goal(
        "age on `/metrics`, p95, 2,000 small frames/s",
        _found(AGE, "2,000 small", "p95"),
        2,
        1.5,
        "s",
    ),
    Goal(
        "age, p95, 200 channels at one message/s, an hour remembered",
        _found(HOUR, "p95"),
        2.5,
        2,
        "s",
    ),
    Goal("20,000 channels, 2,000 touched in a batch", _most_channels, 5, 3, "s"),
    Goal("command to first figures", _found(FLOOR, "command to first"), 8, 6, "s"),
    Goal("SIGTERM to end", _found(FLOOR, "SIGTERM"), 3, 2, "s"),
    Goal(
        "processor at 3 frames/s on 8 channels",
        _found(FLOOR, "3 frames/s", "processor"),
        0.3,
        0.15,
        "cores",
    ),
    Goal(
        "memory of all processes",
        _found(FLOOR, "3 frames/s", "memory", factor=_GIB_IN_MIB / 1024),
        1.0,
        0.8,
        "GB",
    ),
    Goal("a frame made to hurt, against a normal one", _found(HOSTILE), 5, 2, "x"),
)


def cells(run: Run) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield what, goal, aim, value and outcome of each goal."""
    for goal in GOALS:
        value = goal.value(run)
        outcome = shown = "not measured"
        if value is not None:
            outcome = "met" if goal.is_met(value) else "missed"
            shown = f"{value:.3g} {goal.unit}"
        least, better = f"{goal.goal:g} {goal.unit}", f"{goal.aim:g} {goal.unit}"
        yield goal.name, least, better, shown, outcome


def print_goals(run: Run) -> None:
    """Print the goals that the run has values of."""
    table = Table("", "goal", "aim", "this run", "")
    for row in cells(run):
        if row[-1] != "not measured":
            table.add_row(*row)
    if table.row_count:
        Console(stderr=True).print(table)
