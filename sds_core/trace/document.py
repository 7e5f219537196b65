"""A trace as a JSON document, and its sentences (docs/trace.md)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import msgspec

from sds_core.observer.incidents import ChannelIncident, incident_object
from sds_core.observer.protocols import PROTOCOLS, by_name
from sds_core.observer.tracing import Conclusion, Step
from sds_core.text import printable
from sds_core.trace.trace import Trace

SCHEMA = 1
"""Raised if a field changes its meaning or is removed."""

_BY_NAME = by_name(PROTOCOLS)


def trace_object(trace: Trace) -> dict[str, Any]:
    """Return a trace as values of JSON; docs/trace.md describes the fields."""
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


def incident_objects(trace: Trace) -> list[dict[str, Any]]:
    """Return the incidents of the message as the report has them."""
    kind = _BY_NAME[trace.protocol].kind
    return [
        incident_object(
            ChannelIncident(trace.channel, one, one.kind in trace.in_gaps),
            trace.settings,
            kind.explain,
        )
        for one in trace.evidence.incidents
    ]


def conclusion_object(conclusion: Conclusion) -> dict[str, Any]:
    """Return a conclusion as values of JSON."""
    return {
        "at_ms": conclusion.at_ms,
        "figure": conclusion.figure or None,
        "section": conclusion.section,
        "text": conclusion.text,
        "names": list(conclusion.names),
    }


def sentence(text: str, names: Iterable[str]) -> str:
    """Return a sentence and the participants that follow it, safe to print."""
    listed = ", ".join(printable(name) for name in names)
    return f"{text}: {listed}" if listed else text


def step_text(step: Step) -> str:
    """Return what a step says, without who shows it."""
    return sentence(step.text, step.names)
