"""What one node lost, another node may have relayed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from sds_core.mirror.coverage import Coverage

NODES = ("a", "b", "c")
PATIENCE_MS = 3

Event = tuple[int, str, bool]
"""Time, node, and whether it was heard; else it broke."""

Span = tuple[int, int]
"""From one time to another."""


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Nodes that are heard and break, one after another; in the end all break."""
    steps = draw(
        st.lists(
            st.tuples(st.integers(1, 4), st.sampled_from(NODES), st.booleans()),
            max_size=30,
        )
    )
    now_ms, events = 100, []
    for step_ms, node, is_heard in [*steps, *((1, node, False) for node in NODES)]:
        now_ms += step_ms
        events.append((now_ms, node, is_heard))
    return events


def heard_spans(events: list[Event], node: str) -> list[Span]:
    """Where a node was heard without a break; an open one comes last."""
    spans: list[Span] = []
    is_open = False
    for at_ms, name, is_heard in events:
        if name != node:
            continue
        if is_heard and is_open:
            spans[-1] = (spans[-1][0], at_ms)
        elif is_heard:
            spans.append((at_ms, at_ms))
        is_open = is_heard
    return spans if is_open else [*spans, (-1, -1)]


def reported(events: list[Event]) -> Iterator[tuple[int, Event, bool]]:
    """Each break: its place, and whether the coverage tells of a loss."""
    coverage = Coverage(NODES, PATIENCE_MS)
    for place, event in enumerate(events):
        at_ms, node, is_heard = event
        if is_heard:
            coverage.answered(node, at_ms)
        else:
            yield place, event, coverage.interrupted(node, at_ms)


@given(histories())
def test_break_is_a_loss_unless_another_node_covers_it(
    events: list[Event],
) -> None:
    """Compared with a full search over all spans of all nodes."""
    for place, (at_ms, node, _), is_lost in reported(events):
        before = events[:place]
        own = heard_spans(before, node)[-1:]
        if not own or own[0][0] < 0:
            assert not is_lost
            continue
        from_ms = own[0][1]
        others = [heard_spans(before, name)[-1:] for name in NODES if name != node]
        assert is_lost != any(
            0 <= since_ms <= from_ms and at_ms - PATIENCE_MS <= until_ms
            for ((since_ms, until_ms),) in filter(None, others)
        )


@given(histories())
def test_every_uncovered_moment_is_reported(events: list[Event]) -> None:
    """Once each node has broken off, in any order and with any patience."""
    covered: set[int] = set()
    first_ms = min((at_ms for at_ms, _, is_heard in events if is_heard), default=None)
    for node in NODES:
        for since_ms, until_ms in heard_spans(events, node):
            covered.update(range(since_ms, until_ms))
    told: set[int] = set()
    last_ms: dict[str, int] = {}
    losses = {place for place, _, is_lost in reported(events) if is_lost}
    in_hole: set[str] = set()
    for place, (at_ms, node, is_heard) in enumerate(events):
        if place in losses:
            in_hole.add(node)
        if node in in_hole:
            # It reaches to the node's next answer.
            told.update(range(last_ms[node], at_ms))
        if is_heard:
            last_ms[node] = at_ms
            in_hole.discard(node)
    if first_ms is not None:
        assert set(range(first_ms, max(last_ms.values()))) <= covered | told


def test_loss_is_reported_once_until_the_node_answers_again() -> None:
    """For any number of failures meanwhile."""
    coverage = Coverage(["a"], 0)
    coverage.answered("a", 10)
    assert [coverage.interrupted("a", 20), coverage.interrupted("a", 30)] == [
        True,
        False,
    ]
    coverage.answered("a", 40)
    assert coverage.interrupted("a", 50)


def test_time_before_a_new_mirror_is_no_loss() -> None:
    """For a restarted mirror it may be one."""
    assert not Coverage(["a"], 0).interrupted("a", 10)
    going_on = Coverage(["a", "b"], 1_000, goes_on=True)
    going_on.answered("b", 5)
    assert going_on.interrupted("a", 10)
    assert not going_on.interrupted("a", 20)


def test_mirror_is_alive_while_any_node_answered_recently() -> None:
    """Not before the first answer, even after a restart."""
    coverage = Coverage(["a", "b"], 0, goes_on=True)
    assert not coverage.has_answer_since(5)
    coverage.answered("b", 10)
    assert coverage.has_answer_since(10)
    assert not coverage.has_answer_since(11)
    coverage.interrupted("b", 10)
    assert not coverage.has_answer_since(10)


def test_every_node_is_tracked_separately() -> None:
    """A node that was added later covers no earlier time."""
    heard: defaultdict[str, list[bool]] = defaultdict(list)
    coverage = Coverage(NODES, 0)
    coverage.answered("a", 10)
    coverage.answered("b", 11)
    heard["a"].append(coverage.interrupted("a", 11))
    coverage.answered("c", 11)
    coverage.answered("b", 20)
    coverage.answered("c", 20)
    heard["b"].append(coverage.interrupted("b", 20))
    assert heard == {"a": [True], "b": [False]}
