"""Deadlines of messages."""

from __future__ import annotations

from sds_core.observer.mvds.awaited import Awaited


def test_message_is_looked_at_after_the_earliest_of_its_deadlines() -> None:
    """Once, whichever was added first."""
    for deadlines in ((100, 50), (50, 100)):
        awaited = Awaited()
        for deadline_ms in deadlines:
            awaited.add(deadline_ms, 7)
        assert awaited.take(50) is None
        assert awaited.take(51) == (50, 7)
        assert awaited.take(1_000) is None
