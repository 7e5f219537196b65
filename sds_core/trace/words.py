"""Returns the contents of a trace as texts for the terminal and for pages."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import Any

from sds_core.observer.tracing import Conclusion, Step
from sds_core.text import iso_time, printable
from sds_core.trace.document import incident_objects, sentence
from sds_core.trace.trace import Trace

_FEW_PLACES = 20
_BAD = frozenset(
    {"gaps_lost", "undelivered", "unacknowledged", "segmented_incomplete", "tap_gap"}
)
_LACKS = frozenset({"lacked", "lacked_last", "missing"})


class Tone(enum.StrEnum):
    """How a step is highlighted, depending on what the step means for the message."""

    BAD = "bad"
    LACKS = "lacks"
    CONCLUDED = "concluded"
    SHOWN = "shown"


def tone_of(step: Step) -> Tone:
    """Return how a step is highlighted."""
    if step.what in _BAD:
        return Tone.BAD
    if step.what in _LACKS:
        return Tone.LACKS
    return Tone.SHOWN if step.tap else Tone.CONCLUDED


def lane_names(trace: Trace) -> list[str]:
    """Return the participants that occur in any step, the sender first."""
    used = {name for step in trace.evidence.steps for name in (step.by, step.to)}
    names = [one.name for one in trace.evidence.people]
    return [
        name for name in dict.fromkeys((*names, *sorted(used))) if name in used - {""}
    ]


def title_of(trace: Trace) -> tuple[str, str]:
    """Return (label, text) for the id of the message."""
    return "message", printable(trace.message_id)


def facts_of(trace: Trace) -> Iterator[tuple[str, str]]:
    """Yield (label, text) for each fact about the message, first for its id."""
    yield title_of(trace)
    yield "channel", printable(trace.channel)
    for name, value in trace.evidence.facts.items():
        is_known = name == "named_sender" and "sender" in trace.evidence.facts
        if isinstance(value, str) and not is_known:
            yield name.replace("_", " "), printable(value)
    if (segments := trace.evidence.facts.get("segments")) is not None:
        yield "segments", _segments_text(segments)
    if trace.evidence.appeared_ms is not None:
        yield "begins", f"{iso_time(trace.begin_ms)}, the time 0 of this trace"


def findings_of(trace: Trace) -> Iterator[tuple[str, str]]:
    """Yield (label, text) for incidents, conclusions and unknown facts."""
    evidence = trace.evidence
    for incident in incident_objects(trace):
        ended = incident["ended"]
        state = "unresolved" if ended is None else f"ended {iso_time(ended)}"
        yield f"incident, {incident['kind']}", f"{state}: {printable(incident['why'])}"
    for conclusion in evidence.conclusions:
        yield "concluded", conclusion_text(conclusion)
    if evidence.summary is None:
        yield "concluded", "nothing yet"
    else:
        yield "in short", conclusion_text(evidence.summary)
    for text, names in evidence.unknown:
        yield "not known", sentence(text, names)


def conclusion_text(conclusion: Conclusion) -> str:
    """Return a conclusion as text, with its figure and its section of figures.md."""
    figure = f"{conclusion.figure}, " if conclusion.figure else ""
    text = sentence(conclusion.text, conclusion.names)
    return f"{text} ({figure}figures.md section {conclusion.section})"


def relative_time(after_ms: int) -> str:
    """Return the text of a relative time of a trace, such as -0:03:43."""
    sign = "-" if after_ms < 0 else "+"
    seconds, ms = divmod(abs(after_ms), 1000)
    if seconds < 60:
        return f"{sign}{seconds}.{ms:03} s"
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours}:{minutes:02}:{seconds:02}"


def _segments_text(segments: Mapping[str, Any]) -> str:
    text = f"{segments['seen']} of its payload seen"
    if segments["needed"] is not None:
        text += f", {segments['needed']} needed"
    if missing := segments["missing_data"]:
        places = ", ".join(map(str, missing[:_FEW_PLACES]))
        text += f"; not seen: number {places} (counted from 0)"
    return text
