"""Sequence diagrams: what a stranger sends cannot break their language."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.trace.diagram import label, mermaid, plantuml
from sds_core.trace.trace import Trace
from tests.support.trace.causes import KINDS, run_of
from tests.support.trace.hostile import hostile_trace

_LABEL = r"[A-Za-z0-9 ._,()+\-]+"
_STEP = rf"(P\d+|T)->>(P\d+|T): {_LABEL}|Note over (P\d+|T): {_LABEL}"
MERMAID = re.compile(rf"sequenceDiagram|participant (P\d+|T) as {_LABEL}|{_STEP}")
PLANTUML = re.compile(rf'@startuml|participant "{_LABEL}" as (P\d+|T)|{_STEP}|@enduml')
LANGUAGES = [
    pytest.param(mermaid, MERMAID, id="mermaid"),
    pytest.param(plantuml, PLANTUML, id="plantuml"),
]


@pytest.mark.parametrize(("draw", "line"), LANGUAGES)
def test_hostile_names_stay_in_their_labels(
    draw: Callable[[Trace], str], line: re.Pattern[str]
) -> None:
    """Every line is a declaration, an arrow or a note of ours."""
    lines = draw(hostile_trace()).split("\n")
    assert [one for one in lines if not line.fullmatch(one)] == []
    assert len(lines) > 30


@given(st.text(max_size=200))
def test_any_text_becomes_a_harmless_label(text: str) -> None:
    """No sign that either language reads, and no two in a row."""
    found = label(text)
    assert re.fullmatch(_LABEL, found)
    assert not re.search(r"([._,+\-])\1", found)


@pytest.mark.parametrize(("draw", "line"), LANGUAGES)
def test_each_participant_of_a_step_is_declared(
    draw: Callable[[Trace], str], line: re.Pattern[str]
) -> None:
    """Lanes are declared once, before the first arrow."""
    run = run_of("lost to everybody")
    case = next(KINDS["lost to everybody"].cases(run))
    (trace,) = run.trace(case.channel, [case.message_id])
    text = draw(trace)
    lanes = re.findall(r"^participant .*?\b(P\d+|T)\b", text, re.MULTILINE)
    assert len(lanes) == len(set(lanes)) > 3
    used = re.findall(r"^(?:Note over )?(P\d+|T)(?:->>(P\d+|T))?:", text, re.MULTILINE)
    assert used
    assert {one for pair in used for one in pair if one} <= set(lanes)
    assert "its causal history names the message" in text
    assert all(line.fullmatch(one) for one in text.split("\n"))
