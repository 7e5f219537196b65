"""Prints a trace on a terminal: a lane per participant, times from the begin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sds_core.observer.tracing import Conclusion, Step
from sds_core.text import iso_time, printable, shorten
from sds_core.trace.document import incident_objects, sentence, step_text
from sds_core.trace.trace import Trace

_LETTERS = "ABCDEFGHIJKL"
_LONGEST_NAME = 48
_FEW_PLACES = 20
_OTHERS = "*"
"""Lane of all participants beyond the letters."""

_BAD = frozenset(
    {"gaps_lost", "undelivered", "unacknowledged", "segmented_incomplete", "tap_gap"}
)
_STYLES = {"lacked": "yellow", "lacked_last": "yellow", "missing": "yellow"} | {
    what: "bold red" for what in _BAD
}


class TracePrinter:
    """Prints one trace, and later the steps that it did not have before.

    Args:
        console: Where to print.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._printed: set[Step] = set()

    def print_head(self, trace: Trace) -> None:
        """Print what the message is, and the lanes."""
        self._print_facts(_head(trace))

    def print_steps(self, trace: Trace) -> None:
        """Print the steps that were not printed yet."""
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
            style = _STYLES.get(step.what, "")
            if not (style or step.tap):
                style = "cyan"
            table.add_row(
                _relative(step.at_ms - trace.begin_ms),
                _marks(step, lanes),
                Text(_said(step, lanes), style),
            )
        self._console.print(table)

    def print_end(self, trace: Trace) -> None:
        """Print conclusions, and what cannot be known."""
        self._print_facts(_end(trace))
        self._console.print()

    def _print_facts(self, facts: Iterable[tuple[str, str]]) -> None:
        table = Table.grid(padding=(0, 2))
        for word, value in facts:
            table.add_row(Text(word, "dim"), Text(value, overflow="fold"))
        self._console.print(table)


def _head(trace: Trace) -> Iterator[tuple[str, str]]:
    yield "message", printable(trace.message_id)
    yield "channel", printable(trace.channel)
    for name, value in trace.evidence.facts.items():
        is_known = name == "named_sender" and "sender" in trace.evidence.facts
        if isinstance(value, str) and not is_known:
            yield name.replace("_", " "), printable(value)
    if (segments := trace.evidence.facts.get("segments")) is not None:
        yield "segments", _segments_text(segments)
    yield "begins", f"{iso_time(trace.begin_ms)}, the time 0 below"
    for name, letter in _lanes(trace).items():
        yield letter, printable(shorten(name, _LONGEST_NAME))
    if len(trace.evidence.people) > len(_LETTERS):
        yield _OTHERS, f"{len(trace.evidence.people) - len(_LETTERS):,} others"


def _segments_text(segments: Mapping[str, Any]) -> str:
    text = f"{segments['seen']} of its payload seen"
    if segments["needed"] is not None:
        text += f", {segments['needed']} needed"
    if missing := segments["missing_data"]:
        places = ", ".join(map(str, missing[:_FEW_PLACES]))
        text += f"; not seen: number {places} (counted from 0)"
    return text


def _end(trace: Trace) -> Iterator[tuple[str, str]]:
    evidence = trace.evidence
    word = "concluded"
    for incident in incident_objects(trace):
        ended = incident["ended"]
        state = "unresolved" if ended is None else f"ended {iso_time(ended)}"
        yield f"incident, {incident['kind']}", f"{state}: {printable(incident['why'])}"
    for conclusion in evidence.conclusions:
        yield word, conclusion_text(conclusion)
        word = ""
    if evidence.summary is None:
        yield word, "nothing yet"
    else:
        yield "in short", conclusion_text(evidence.summary)
    word = "not known"
    for text, names in evidence.unknown:
        yield word, sentence(text, names)
        word = ""


def conclusion_text(conclusion: Conclusion) -> str:
    """Return a conclusion with its rule."""
    figure = f"{conclusion.figure}, " if conclusion.figure else ""
    text = sentence(conclusion.text, conclusion.names)
    return f"{text} ({figure}figures.md section {conclusion.section})"


def _lanes(trace: Trace) -> dict[str, str]:
    """Return the letter of each participant, as many as there are letters."""
    names = [one.name for one in trace.evidence.people]
    return dict(zip(names, _LETTERS, strict=False))


def _marks(step: Step, lanes: dict[str, str]) -> str:
    """Return a row of lanes: the letters of those that a step is about."""
    concerned = {lanes.get(name, _OTHERS) for name in (step.by, step.to) if name}
    letters = [*lanes.values(), *([_OTHERS] if _OTHERS in concerned else [])]
    return "".join(letter if letter in concerned else "·" for letter in letters)


def _said(step: Step, lanes: dict[str, str]) -> str:
    by = lanes.get(step.by, printable(shorten(step.by, _LONGEST_NAME)))
    to = lanes.get(step.to, printable(shorten(step.to, _LONGEST_NAME)))
    who = f"{by} → {to}: " if to else f"{by}: " if by else ""
    tap = f" [{printable(shorten(step.tap, _LONGEST_NAME))}]" if step.tap else ""
    return f"{who}{step_text(step)}{tap}"


def _relative(after_ms: int) -> str:
    sign = "-" if after_ms < 0 else "+"
    seconds, ms = divmod(abs(after_ms), 1000)
    if seconds < 60:
        return f"{sign}{seconds}.{ms:03} s"
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours}:{minutes:02}:{seconds:02}"
