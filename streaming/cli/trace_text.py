"""Prints a trace on a terminal: a row for each step, a lane for each participant.

A lane is a column of letters. Times are relative to the time at which the trace begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sds_core.observer.tracing import Step
from sds_core.text import printable, shorten
from sds_core.trace.document import step_text
from sds_core.trace.trace import Trace
from sds_core.trace.words import Tone, facts_of, findings_of, relative_time, tone_of

_LETTERS = "ABCDEFGHIJKL"
_LONGEST_NAME = 48
_OTHERS = "*"
"""Mark of the lane that all participants without a letter share."""

_STYLES = {
    Tone.BAD: "bold red",
    Tone.LACKS: "yellow",
    Tone.CONCLUDED: "cyan",
    Tone.SHOWN: "",
}


class TracePrinter:
    """Prints one trace; each call of `print_steps` prints only new steps."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._printed: set[Step] = set()

    def print_head(self, trace: Trace) -> None:
        """Print the facts of the message, and the participant of each letter."""
        self._print_facts(_head(trace))

    def print_steps(self, trace: Trace) -> None:
        """Print the steps that are not printed yet."""
        steps = [one for one in trace.evidence.steps if one not in self._printed]
        self._printed.update(steps)
        if not steps:
            return
        lanes = _lanes(trace)
        table = Table.grid(padding=(0, 1))
        table.add_column(justify="right", no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for step in steps:
            table.add_row(
                relative_time(step.at_ms - trace.begin_ms),
                _marks(step, lanes),
                Text(_said(step, lanes), _STYLES[tone_of(step)]),
            )
        self._console.print(table)

    def print_end(self, trace: Trace) -> None:
        """Print incidents, conclusions, and what the trace cannot show."""
        self._print_facts(findings_of(trace))
        self._console.print()

    def _print_facts(self, facts: Iterable[tuple[str, str]]) -> None:
        table = Table.grid(padding=(0, 2))
        last = ""
        for word, value in facts:
            said = "" if word == last else word
            table.add_row(Text(said, "dim"), Text(value, overflow="fold"))
            last = word
        self._console.print(table)


def _head(trace: Trace) -> Iterator[tuple[str, str]]:
    yield from facts_of(trace)
    for name, letter in _lanes(trace).items():
        yield letter, printable(shorten(name, _LONGEST_NAME))
    if len(trace.evidence.people) > len(_LETTERS):
        yield _OTHERS, f"{len(trace.evidence.people) - len(_LETTERS):,} others"


def _lanes(trace: Trace) -> dict[str, str]:
    """Return {participant: letter}; only the first participants have a letter."""
    names = [one.name for one in trace.evidence.people]
    return dict(zip(names, _LETTERS, strict=False))


def _marks(step: Step, lanes: dict[str, str]) -> str:
    """Return a character for each lane: a dot, or a letter if the step concerns it."""
    concerned = {lanes.get(name, _OTHERS) for name in (step.by, step.to) if name}
    letters = [*lanes.values(), *([_OTHERS] if _OTHERS in concerned else [])]
    return "".join(letter if letter in concerned else "·" for letter in letters)


def _said(step: Step, lanes: dict[str, str]) -> str:
    by = lanes.get(step.by, printable(shorten(step.by, _LONGEST_NAME)))
    to = lanes.get(step.to, printable(shorten(step.to, _LONGEST_NAME)))
    who = f"{by} → {to}: " if to else f"{by}: " if by else ""
    tap = f" [{printable(shorten(step.tap, _LONGEST_NAME))}]" if step.tap else ""
    return f"{who}{step_text(step)}{tap}"
