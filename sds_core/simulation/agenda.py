"""Planned actions of a simulation, by simulation time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush

Action = Callable[[int], None]
"""An action; called with its simulation time in ms."""


class Agenda:
    """A calendar queue: actions of one ms share an entry, only the ms are sorted."""

    __slots__ = ("_days", "_times")

    def __init__(self) -> None:
        self._days: dict[int, list[Action]] = {}
        self._times: list[int] = []

    def add(self, at_ms: int, action: Action) -> None:
        """Plan an action for now or later."""
        day = self._days.get(at_ms)
        if day is None:
            self._days[at_ms] = [action]
            heappush(self._times, at_ms)
        else:
            day.append(action)

    def until(self, end_ms: int) -> Iterator[tuple[int, Action]]:
        """Yield the actions before `end_ms` in order, with those added in the meantime.

        Actions of the same ms come in the order in which they were planned.
        """
        times, days = self._times, self._days
        while times and times[0] < end_ms:
            now_ms = heappop(times)
            # It may grow while it is being worked off.
            for action in days[now_ms]:
                yield now_ms, action
            del days[now_ms]
