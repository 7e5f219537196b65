"""A trace as picture and table: what the file of `trace --html` has."""

from __future__ import annotations

import re

import pytest

from connectors.web.lanes import Lanes
from connectors.web.report import report_html
from connectors.web.trace_blocks import MOST_LANES, blocks_of, trace_report
from sds_core.observer.tracing import MOST_STEPS, Step, StepLog
from sds_core.trace.words import facts_of, findings_of
from tests.support.trace.hostile import NAMES, hostile_trace


def lanes_of(names: tuple[str, ...]) -> Lanes:
    """The picture of a trace with these names."""
    (picture, *_) = blocks_of(hostile_trace(names), "event-1")
    assert isinstance(picture, Lanes)
    return picture


def test_page_has_each_step_as_a_mark_and_as_a_row() -> None:
    """Marks lead to the rows; no name becomes markup, and the page has no script."""
    traces = [hostile_trace(), hostile_trace(NAMES[::-1])]
    text = report_html(trace_report(traces))
    for number, one in enumerate(traces, 1):
        rows = range(1, len(one.evidence.steps) + 1)
        ids = [f"event-{number}-{row}" for row in rows]
        assert re.findall(rf'id="(event-{number}-\d+)"', text) == ids
        assert re.findall(rf'href="#(event-{number}-\d+)"', text) == ids
        assert len([*facts_of(one), *findings_of(one)]) > 0
    assert "<script" not in text
    assert "\u202e" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert text.count("src=") == text.count("http:") == 0


def test_order_is_that_of_time() -> None:
    """Marks never stand upon each other, and all lie within the picture."""
    picture = lanes_of(NAMES)
    assert picture.places == sorted(set(picture.places))
    assert 0 < picture.places[0] < picture.places[-1] < 100
    labels = [place for place, _, zoom in picture.labels if zoom == 1]
    assert 1 < len(labels) < 7


def test_lanes_are_limited() -> None:
    """Names that a stranger makes up share the last lane."""
    many = tuple(f"p{number}" for number in range(2 * MOST_LANES))
    picture = lanes_of(many)
    people = [name for name in picture.names if "(tap)" not in name]
    assert people[-2:] == [f"{MOST_LANES} others", "the monitor"]
    assert len(people) == MOST_LANES + 2
    assert max(lane for one in picture.events for lane in one.lanes) < len(
        picture.names
    )


def test_places_are_computed_once_for_a_picture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise a trace of 4,500 steps took ten seconds of the monitor."""
    calls = []
    places = Lanes.places
    monkeypatch.setattr(
        Lanes, "places", property(lambda one: calls.append(one) or places.fget(one))
    )
    report_html(trace_report([hostile_trace()]))
    assert 0 < len(calls) < 4


def test_steps_are_limited() -> None:
    """Late ones too: a stranger can make up participants that lack a message."""
    log = StepLog({})
    more = [Step(n, "lacked_last", "lacks it", f"p{n}") for n in range(3 * MOST_STEPS)]
    for step in more[: MOST_STEPS + 7]:
        log.add(step)
    steps, omitted = log.steps(more)
    assert len(steps) == 2 * MOST_STEPS
    assert omitted == 7 + 2 * MOST_STEPS
