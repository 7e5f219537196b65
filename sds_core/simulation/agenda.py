"""What is to be done when, in simulation time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush

Action = Callable[[int], None]
"""Something to do; it is given the time."""


class Agenda:
    """A calendar queue: many things fall on one ms, and only its ms are sorted."""

    __slots__ = ("_days", "_times")

    def __init__(self) -> None:
        self._days: dict[int, list[Action]] = {}
        self._times: list[int] = []

    def add(self, at_ms: int, action: Action) -> None:
        """Plan an action, not before the time that it is now."""
        day = self._days.get(at_ms)
        if day is None:
            self._days[at_ms] = [action]
            heappush(self._times, at_ms)
        else:
            day.append(action)

    def until(self, end_ms: int) -> Iterator[tuple[int, Action]]:
        """Take out, in order, all that is planned before `end_ms` or gets planned.

        What falls on the same ms comes in the order in which it was planned.
        """
        times, days = self._times, self._days
        while times and times[0] < end_ms:
            now_ms = heappop(times)
            # It may grow while it is being worked off.
            for action in days[now_ms]:
                yield now_ms, action
            del days[now_ms]
