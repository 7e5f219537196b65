"""Prints a trace on a terminal: a row for each step, a lane for each participant.

A lane is a column of letters. Times are relative to the time at which the trace begins.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sds_core.observer.tracing import Step
from sds_core.text import printable, shorten
from sds_core.trace.document import step_text
from sds_core.trace.trace import Trace
from sds_core.trace.words import (
    Tone,
    facts_of,
    findings_of,
    relative_time,
    title_of,
    tone_of,
)

_LETTERS = "ABCDEFGHIJKL"
_LONGEST_NAME = 48
_OTHERS = "*"
"""Mark of the lane that all participants without a letter share."""

_MOVING = frozenset({"lacked_last", "repeated"})
"""Kinds of steps that further frames replace by a later step."""

_STYLES = {
    Tone.BAD: "bold red",
    Tone.LACKS: "yellow",
    Tone.CONCLUDED: "cyan",
    Tone.SHOWN: "",
}


class TracePrinter:
    """Prints traces; each call of `print_new` prints only what is new of a trace.

    Therefore, a participant keeps the letter that was printed first.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._known: defaultdict[str, _Known] = defaultdict(_Known)
        self._last_id = ""

    def print_new(self, trace: Trace) -> None:
        """Print new facts, the letters of new participants, and new steps.

        If a step replaces a printed one, `print_end` prints it.
        """
        is_known = trace.message_id in self._known
        self._print_new(trace, without=_MOVING if is_known else frozenset())

    def print_end(self, trace: Trace) -> None:
        """Print incidents, conclusions, and what the trace cannot show."""
        self._print_new(trace)
        self._print_facts(trace, findings_of(trace))
        self._console.print()

    def _print_new(self, trace: Trace, without: frozenset[str] = frozenset()) -> None:
        known = self._known[trace.message_id]
        facts = known.new_facts(trace)
        steps = known.new_steps(trace, without)
        if facts or steps:
            self._print_facts(trace, facts)
        if steps:
            self._print_steps(steps, known.lanes, trace.begin_ms)

    def _print_facts(self, trace: Trace, facts: Iterable[tuple[str, str]]) -> None:
        """Print facts; if the last text was about another message, name this one."""
        rows, title = list(facts), title_of(trace)
        if self._last_id != trace.message_id and title not in rows:
            rows.insert(0, title)
        self._last_id = trace.message_id
        table = Table.grid(padding=(0, 2))
        last = ""
        for word, value in rows:
            said = "" if word == last else word
            table.add_row(Text(said, "dim"), Text(value, overflow="fold"))
            last = word
        if rows:
            self._console.print(table)

    def _print_steps(
        self, steps: Iterable[Step], lanes: Mapping[str, str], begin_ms: int
    ) -> None:
        table = Table.grid(padding=(0, 1))
        table.add_column(justify="right", no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for step in steps:
            table.add_row(
                relative_time(step.at_ms - begin_ms),
                _marks(step, lanes),
                Text(_said(step, lanes), _STYLES[tone_of(step)]),
            )
        self._console.print(table)


class _Known:
    """What is printed of a trace: its facts and steps, and {participant: letter}."""

    def __init__(self) -> None:
        self.lanes: dict[str, str] = {}
        self._facts: set[tuple[str, str]] = set()
        self._steps: set[Step] = set()

    def new_facts(self, trace: Trace) -> list[tuple[str, str]]:
        """Return new facts, and the letters; a new participant gets the next letter."""
        people = trace.evidence.people
        new = [one.name for one in people if one.name not in self.lanes]
        self.lanes.update(zip(new, _LETTERS[len(self.lanes) :], strict=False))
        facts = [*facts_of(trace)]
        for name, letter in self.lanes.items():
            facts.append((letter, printable(shorten(name, _LONGEST_NAME))))
        if len(people) > len(_LETTERS):
            facts.append((_OTHERS, f"{len(people) - len(_LETTERS):,} others"))
        facts = [one for one in facts if one not in self._facts]
        self._facts.update(facts)
        return facts

    def new_steps(self, trace: Trace, without: frozenset[str]) -> list[Step]:
        """Return new steps, except those of some kinds."""
        steps = [
            one
            for one in trace.evidence.steps
            if one not in self._steps and one.what not in without
        ]
        self._steps.update(steps)
        return steps


def _marks(step: Step, lanes: Mapping[str, str]) -> str:
    """Return a character for each lane: a dot, or a letter if the step concerns it."""
    concerned = {lanes.get(name, _OTHERS) for name in (step.by, step.to) if name}
    letters = [*lanes.values(), *([_OTHERS] if _OTHERS in concerned else [])]
    return "".join(letter if letter in concerned else "·" for letter in letters)


def _said(step: Step, lanes: Mapping[str, str]) -> str:
    by = lanes.get(step.by, printable(shorten(step.by, _LONGEST_NAME)))
    to = lanes.get(step.to, printable(shorten(step.to, _LONGEST_NAME)))
    who = f"{by} → {to}: " if to else f"{by}: " if by else ""
    tap = f" [{printable(shorten(step.tap, _LONGEST_NAME))}]" if step.tap else ""
    return f"{who}{step_text(step)}{tap}"
