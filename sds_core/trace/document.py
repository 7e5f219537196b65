"""Converts a trace to a JSON document and to sentences (docs/trace.md)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, TypedDict

import msgspec

from sds_core.observer.incidents import ChannelIncident, IncidentObject, incident_object
from sds_core.observer.protocols import PROTOCOLS, by_name
from sds_core.observer.tracing import Conclusion, Person, Step
from sds_core.text import printable
from sds_core.trace.trace import Trace

SCHEMA = 1
"""Version of the document's format.

The version increases if a field changes its meaning or is removed.
"""

_BY_NAME = by_name(PROTOCOLS)


class ConclusionObject(TypedDict):
    """A conclusion of the monitor.

    Attributes:
        at_ms: Event time, Unix ms.
        figure: Name of the figure that counts the conclusion; null if no figure counts
            it.
        section: Section of docs/figures.md that has the rule for the conclusion.
        text: The conclusion in words.
        names: Participants that the conclusion concerns.
    """

    at_ms: int
    figure: str | None
    section: str
    text: str
    names: list[str]


class ReadObject(TypedDict):
    """What was read for the trace.

    Attributes:
        records: Number of records of the channel that were read.
        from_ms: Record time of the first record that was read, Unix ms; null if no
            record was read.
        to_ms: Event time up to which records were read, Unix ms; null if unknown.
    """

    records: int
    from_ms: int | None
    to_ms: int | None


class TraceTapObject(TypedDict):
    """A tap and its capture gaps.

    Attributes:
        name: Id of the tap.
        holes: Start and end of each period in which the tap may have missed records,
            event time, Unix ms.
    """

    name: str
    holes: list[list[int]]


class TraceObject(TypedDict):
    """What happened to a message (docs/trace.md).

    Attributes:
        schema: Version of this object's format; the version increases if a field
            changes its meaning or is removed.
        protocol: Protocol of the channel.
        channel: Id of the channel or group.
        message_id: Id of the message.
        summary: The most important conclusion; null if no conclusion was made.
        facts: Facts about the message's first copy, by the name of the fact.
        appeared_ms: Event time of the first frame that contains or names the message,
            Unix ms; null if no record concerned the message.
        read: Records that the trace read.
        participants: The sender, then the other participants in order of appearance.
        taps: Taps that captured the records.
        steps: Steps in order of time.
        steps_omitted: Number of steps that are not in `steps`.
        incidents: Incidents of the message.
        conclusions: Conclusions of the monitor, in order of time.
        unknown: Sentences about what the trace cannot show.
        observer: Settings of the monitor's model.
    """

    schema: int
    protocol: str
    channel: str
    message_id: str
    summary: ConclusionObject | None
    facts: dict[str, Any]
    appeared_ms: int | None
    read: ReadObject
    participants: list[Person]
    taps: list[TraceTapObject]
    steps: list[Step]
    steps_omitted: int
    incidents: list[IncidentObject]
    conclusions: list[ConclusionObject]
    unknown: list[str]
    observer: dict[str, int | float]


def trace_object(trace: Trace) -> TraceObject:
    """Return a trace as a JSON object; docs/trace.md describes the fields."""
    evidence = trace.evidence
    summary = evidence.summary
    return {
        "schema": SCHEMA,
        "protocol": trace.protocol,
        "channel": trace.channel,
        "message_id": trace.message_id,
        "summary": None if summary is None else conclusion_object(summary),
        "facts": dict(evidence.facts),
        "appeared_ms": evidence.appeared_ms,
        "read": {
            "records": trace.records,
            "from_ms": trace.from_ms,
            "to_ms": trace.to_ms,
        },
        "participants": [msgspec.to_builtins(one) for one in evidence.people],
        "taps": [
            {"name": name, "holes": [list(span) for span in spans]}
            for name, spans in trace.taps.items()
        ],
        "steps": [msgspec.to_builtins(one) for one in evidence.steps],
        "steps_omitted": evidence.omitted,
        "incidents": incident_objects(trace),
        "conclusions": [conclusion_object(one) for one in evidence.conclusions],
        "unknown": [sentence(text, names) for text, names in evidence.unknown],
        "observer": asdict(trace.settings),
    }


def incident_objects(trace: Trace) -> list[IncidentObject]:
    """Return the message's incidents in the format that the report uses."""
    kind = _BY_NAME[trace.protocol].kind
    return [
        incident_object(
            ChannelIncident(trace.channel, one, one.kind in trace.in_gaps),
            trace.settings,
            kind.explain,
        )
        for one in trace.evidence.incidents
    ]


def conclusion_object(conclusion: Conclusion) -> ConclusionObject:
    """Return a conclusion as a JSON object."""
    return {
        "at_ms": conclusion.at_ms,
        "figure": conclusion.figure or None,
        "section": conclusion.section,
        "text": conclusion.text,
        "names": list(conclusion.names),
    }


def sentence(text: str, names: Iterable[str]) -> str:
    """Return the text, followed by the names; the names are made safe to print."""
    listed = ", ".join(printable(name) for name in names)
    return f"{text}: {listed}" if listed else text


def step_text(step: Step) -> str:
    """Return the text of a step, with the step's `names` but without `by` and `to`."""
    return sentence(step.text, step.names)
