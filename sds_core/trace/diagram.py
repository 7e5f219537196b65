"""Converts a trace to a sequence diagram in Mermaid or PlantUML.

Untrusted senders choose ids and names, which could contain commands, comments or markup
of Mermaid or PlantUML. Therefore, a label keeps only letters, digits and harmless ASCII
characters; it shows all other characters as code points. Lanes have short generated
ids.
"""

from __future__ import annotations

import string
from collections.abc import Iterator

from sds_core.observer.tracing import Step
from sds_core.text import shorten
from sds_core.trace.document import sentence, step_text
from sds_core.trace.trace import Trace
from sds_core.trace.words import lane_names

_HARMLESS = frozenset(string.ascii_letters + string.digits + " ._,()+-")
_SAID = {": ": " - ", "…": "(cut)"}
"""Characters of this project's own texts, and their readable replacements in labels."""

_LONGEST_NAME = 40
_LONGEST_TEXT = 160
_TAPS = "T"
"""Id of the lane of all taps; it also shows steps that concern no known participant."""


def mermaid(trace: Trace) -> str:
    """Return the diagram in Mermaid's language."""
    return "\n".join(["sequenceDiagram", *_lines(trace, "participant {id} as {label}")])


def plantuml(trace: Trace) -> str:
    """Return the diagram in PlantUML's language."""
    lines = _lines(trace, 'participant "{label}" as {id}')
    return "\n".join(["@startuml", *lines, "@enduml"])


def label(text: str) -> str:
    """Return the text in a form that neither Mermaid nor PlantUML reads as markup."""
    short = shorten(text, _LONGEST_TEXT)
    for sign, said in _SAID.items():
        short = short.replace(sign, said)
    harmless = "".join(
        char if char in _HARMLESS else f"(U+{ord(char):04X})" for char in short
    )
    # Each of these characters can be markup if it occurs twice in a row. A single one
    # can be markup only at the start of a line, and no label starts a line.
    for sign in "._,+-":
        while sign * 2 in harmless:
            harmless = harmless.replace(sign * 2, f"{sign} {sign}")
    return harmless.strip() or "unknown"


def _lines(trace: Trace, participant: str) -> Iterator[str]:
    """Yield the diagram's lines; `participant` is the template for a lane."""
    lanes = {name: f"P{n}" for n, name in enumerate(lane_names(trace), 1)}
    for name, lane in lanes.items():
        yield participant.format(id=lane, label=label(shorten(name, _LONGEST_NAME)))
    yield participant.format(id=_TAPS, label=label(", ".join(trace.taps) or "taps"))
    title = f"message {trace.message_id} of {trace.channel}"
    yield f"Note over {_TAPS}: {label(title)}"
    for step in trace.evidence.steps:
        yield _line(step, lanes, trace.begin_ms)
    for text, names in trace.evidence.unknown:
        yield f"Note over {_TAPS}: {label(f'not known - {sentence(text, names)}')}"


def _line(step: Step, lanes: dict[str, str], begin_ms: int) -> str:
    after_s = (step.at_ms - begin_ms) / 1000
    text = label(f"{after_s:+.3f} s {step_text(step)}")
    by = lanes.get(step.by, _TAPS)
    if step.to:
        return f"{by}->>{lanes[step.to]}: {text}"
    if step.tap and step.by:
        return f"{by}->>{_TAPS}: {text}"
    return f"Note over {by}: {text}"
