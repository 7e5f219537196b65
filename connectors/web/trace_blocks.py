"""Shows a trace as a picture and tables, on a page or in a file of `trace --html`."""

from __future__ import annotations

from collections.abc import Sequence

from connectors.web import words
from connectors.web.blocks import Block, Report, Section, Table
from connectors.web.lanes import LaneEvent, Lanes
from sds_core.observer.tracing import Step
from sds_core.text import iso_time
from sds_core.trace.document import step_text
from sds_core.trace.trace import Trace
from sds_core.trace.words import (
    conclusion_text,
    facts_of,
    findings_of,
    lane_names,
    relative_time,
    tone_of,
)

MOST_LANES = 40
"""Maximum number of participants, and of taps, that have a lane of their own. Untrusted
clients can invent any number of names."""

_MONITOR = "the monitor"


def summary_of(trace: Trace) -> str:
    """Return the most important conclusion that is not revoked, as a sentence."""
    summary = trace.evidence.summary
    if summary is None:
        return "The monitor cannot conclude anything yet."
    text = words.bounded(conclusion_text(summary))
    return f"{text[0].upper()}{text[1:]}."


def blocks_of(trace: Trace, anchor: str) -> list[Block]:
    """Return the picture and the tables of a trace.

    `anchor` is the prefix of the ids of rows. Each trace on a page needs a prefix of
    its own.
    """
    steps = trace.evidence.steps
    after = [relative_time(step.at_ms - trace.begin_ms) for step in steps]
    events = Table(
        "Events",
        ("Number", "After", "Time", "Participant", "What happened", "Tap"),
        [
            (
                str(number),
                time,
                iso_time(step.at_ms),
                _who(step) or (words.NOTHING if step.tap else _MONITOR),
                words.bounded(step_text(step)),
                words.bounded(step.tap) if step.tap else words.NOTHING,
            )
            for number, (time, step) in enumerate(zip(after, steps, strict=True), 1)
        ],
        "An event with a tap is a frame that the tap recorded, or a capture gap of "
        "the tap. All other events are conclusions of the monitor, or frames whose tap "
        "is unknown.",
        words=6,
        anchor=anchor,
    )
    facts = [(word, words.bounded(text)) for word, text in facts_of(trace)]
    findings = [(word, words.bounded(text)) for word, text in findings_of(trace)]
    return [
        _lanes(trace, after, anchor),
        events,
        Table("The message", ("Fact", "Value"), facts, words=2),
        Table("Conclusions", ("What", "Text"), findings, words=2),
    ]


def trace_report(traces: Sequence[Trace]) -> Report:
    """Return a report with a section for each traced message."""
    sections = [
        Section(
            f"Message {words.short(one.message_id)}",
            blocks_of(one, f"event-{number}"),
            summary_of(one),
        )
        for number, one in enumerate(traces, 1)
    ]
    title = f"Trace of {words.counted(len(traces), 'message')}"
    read = words.counted(traces[0].records, "record")
    foot = f"{read} of channel {words.short(traces[0].channel)} read"
    return Report(title, [], sections, foot)


def _who(step: Step) -> str:
    names = [words.bounded(name) for name in (step.by, step.to) if name]
    return " \N{RIGHTWARDS ARROW} ".join(names)


def _lanes(trace: Trace, after: Sequence[str], anchor: str) -> Lanes:
    steps = trace.evidence.steps
    people, people_names = _places(lane_names(trace), 0)
    shown_by = dict.fromkeys((*trace.taps, *(one.tap for one in steps if one.tap)))
    taps, tap_names = _places(list(shown_by), len(people_names))
    monitor = len(people_names) + len(tap_names)
    events = []
    for step, time in zip(steps, after, strict=True):
        lanes = [people[name] for name in (step.by, step.to) if name]
        lanes += [taps[step.tap]] if step.tap else []
        text = words.bounded(": ".join(filter(None, (_who(step), step_text(step)))))
        tone = tone_of(step).value
        is_square = not step.tap
        events.append(
            LaneEvent(step.at_ms, lanes or [monitor], tone, is_square, f"{time} {text}")
        )
    return Lanes(
        "Events in order of time",
        [*people_names, *(f"{name} (tap)" for name in tap_names), _MONITOR],
        events,
        after,
        anchor,
        "A circle is a frame that a tap recorded, or a capture gap of a tap. "
        "A square is an event without a tap. The number of an event is its row in the "
        "table. "
        "The distance between two events grows with the logarithm of the time "
        "between them.",
    )


def _places(names: Sequence[str], first: int) -> tuple[dict[str, int], list[str]]:
    # All names beyond the first `MOST_LANES` share one lane, which is the last.
    labels = [words.short(name) for name in names[:MOST_LANES]]
    if len(names) > MOST_LANES:
        labels.append(words.counted(len(names) - MOST_LANES, "other"))
    places = {name: first + min(n, MOST_LANES) for n, name in enumerate(names)}
    return places, labels
