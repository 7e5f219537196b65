"""The agenda does everything once, in order."""

from __future__ import annotations

from functools import partial

from sds_core.simulation.streams import Agenda


def test_actions_are_ordered_by_time_then_planning() -> None:
    """The order does not depend on how they were put in."""
    agenda = Agenda()
    done: list[tuple[str, int]] = []
    for name, at_ms in (("c", 7), ("a", 5), ("d", 7), ("b", 5), ("late", 10)):
        agenda.add(at_ms, partial(lambda name, at: done.append((name, at)), name))
    for now_ms, action in agenda.until(10):
        action(now_ms)
    assert done == [("a", 5), ("b", 5), ("c", 7), ("d", 7)]


def test_actions_planned_meanwhile_are_done_too() -> None:
    """Even for the current millisecond."""
    agenda = Agenda()
    done: list[int] = []

    def again(now_ms: int) -> None:
        done.append(now_ms)
        if len(done) < 4:
            agenda.add(now_ms + len(done) % 2, again)

    agenda.add(1, again)
    for now_ms, action in agenda.until(100):
        action(now_ms)
    assert done == [1, 2, 2, 3]
