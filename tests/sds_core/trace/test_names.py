"""Pseudonyms: no name of a participant is left anywhere."""

from __future__ import annotations

import json

from sds_core.trace.diagram import mermaid, plantuml
from sds_core.trace.document import trace_object
from sds_core.trace.names import Pseudonyms
from sds_core.trace.trace import Trace
from tests.support.trace.causes import KINDS, run_of
from tests.support.trace.golden import printed
from tests.support.trace.hostile import NAMES, hostile_trace


def outputs(trace: Trace) -> str:
    """Return the trace in every form."""
    document = json.dumps(trace_object(trace))
    return "\n".join([document, mermaid(trace), plantuml(trace), printed(trace)])


def test_no_name_is_left_in_any_form() -> None:
    """Neither in steps, nor in incidents, their reasons or what is unknown."""
    names = tuple(f"secret-{number}" for number in range(len(NAMES)))
    trace = hostile_trace(names)
    assert outputs(trace).count("secret") > 100
    replaced = outputs(Pseudonyms().replaced(trace))
    assert "secret" not in replaced
    assert replaced.count("participant-1") > 10


def test_a_participant_has_the_same_name_everywhere() -> None:
    """In several traces too; and a trace without names says the same otherwise."""
    kind = KINDS["not delivered to one"]
    run = run_of("not delivered to one")
    cases = list(kind.cases(run))[:2]
    traces = run.trace(cases[0].channel, [one.message_id for one in cases])
    names = Pseudonyms()
    first, second = (names.replaced(one) for one in traces)
    assert first.evidence.people[0].name == "participant-1"
    (lacking,) = first.evidence.incidents[0].lacking
    assert [*second.evidence.incidents[0].lacking] == [lacking]
    assert len(first.evidence.steps) == len(traces[0].evidence.steps)
    assert lacking in trace_object(first)["incidents"][0]["why"]


def test_hostile_names_print_as_one_line_each() -> None:
    """No control character, and no line that a name has made."""
    text = printed(hostile_trace())
    assert all(line.isprintable() for line in text.splitlines())
    assert not [one for one in text.splitlines() if one.startswith("P1->>")]
