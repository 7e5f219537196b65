"""The cause of an incident can be named from its trace."""

from __future__ import annotations

import pytest

from tests.support.trace.causes import KINDS, cases_of, named_cause
from tests.support.trace.golden import COLUMNS, golden_file, golden_text

MANY = 4
"""Of each kind; ``python -m tests.support.trace.causes`` tries ten."""


@pytest.mark.parametrize("name", KINDS)
def test_the_cause_is_named_from_the_json_alone(name: str) -> None:
    """It is the one that the simulator's truth has, with whom it concerns."""
    cases = list(cases_of(name, MANY))
    assert len(cases) == MANY
    assert [named_cause(document) for _, document in cases] == [
        case.cause for case, _ in cases
    ]


@pytest.mark.parametrize("name", KINDS)
def test_the_trace_of_each_kind_is_the_golden_one(name: str) -> None:
    """It fits into 80 columns; ``python -m tests.support.trace.golden`` writes it."""
    text = golden_text(name)
    assert max(map(len, text.splitlines())) <= COLUMNS
    assert text == golden_file(name).read_text("utf-8")
