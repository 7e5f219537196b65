"""docs/trace.md has what the code has."""

from __future__ import annotations

from docs import make_trace_agreement
from docs.make_trace import PART, text
from docs.make_trace_agreement import PART as AGREEMENT
from sds_core.trace.document import trace_object
from tests.support.trace.agreement import SCENARIOS
from tests.support.trace.hostile import hostile_trace


def test_the_made_part_of_the_page_is_current() -> None:
    """``python -m docs.make_trace`` writes it."""
    assert PART.current() == text()


def test_no_trace_differs_from_its_report_in_any_scenario() -> None:
    """``python -m docs.make_trace_agreement`` measures it; each scenario has a row."""
    current = AGREEMENT.current()
    assert make_trace_agreement.text([], current) == current
    assert current.count(" | 0 |") == len(SCENARIOS)


def test_the_page_has_every_field_of_the_document() -> None:
    """In code, in the table of fields."""
    page = PART.path.read_text("utf-8")
    document = trace_object(hostile_trace())
    fields = {*document, *document["participants"][0], *document["steps"][0]}
    fields |= {*document["conclusions"][0], *document["taps"][0]}
    assert {name for name in fields if f"`{name}`" not in page} == set()
