"""Provides the agenda of a simulation, and a random stream for each purpose.

Draws for one purpose do not change the draws for other purposes. For example, if a
scenario gets an additional tap, the participants still receive the same frames.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from random import Random
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

Action = Callable[[int], None]
"""Function that is called with the current simulation time, ms."""


class Agenda:
    """Calendar queue, which yields planned actions in order of time.

    One list holds all actions that are planned for the same millisecond, so only the
    times need sorting.
    """

    __slots__ = ("_days", "_times")

    def __init__(self) -> None:
        self._days: dict[int, list[Action]] = {}
        self._times: list[int] = []

    def add(self, at_ms: int, action: Action) -> None:
        """Plan an action for the current time or a later time."""
        day = self._days.get(at_ms)
        if day is None:
            self._days[at_ms] = [action]
            heappush(self._times, at_ms)
        else:
            day.append(action)

    def until(self, end_ms: int) -> Iterator[tuple[int, Action]]:
        """Yield each action before `end_ms` with its time, in order of time.

        Actions can be added between two values.
        """
        times, days = self._times, self._days
        while times and times[0] < end_ms:
            now_ms = heappop(times)
            # The list may grow during this loop, because an action may add actions for
            # the current time.
            for action in days[now_ms]:
                yield now_ms, action
            del days[now_ms]


ScalarT = TypeVar("ScalarT", bound=np.generic)

_BLOCK = 8_192


class Streams:
    """Provides the random streams of one seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def scalar(self, *purpose: str) -> Random:
        """Return the random stream of a purpose, to draw single values."""
        # `Random` is not cryptographically secure, but a simulation needs only
        # repeatable numbers.
        return Random(self._entropy(purpose))  # noqa: S311

    def vector(self, *purpose: str) -> Generator:
        """Return the random stream of a purpose, to draw single values or arrays."""
        return Generator(PCG64(self._entropy(purpose)))

    def _entropy(self, purpose: tuple[str, ...]) -> int:
        name = "\0".join((str(self._seed), *purpose)).encode()
        return int.from_bytes(hashlib.sha256(name).digest())


class Draws(Generic[ScalarT]):
    """Values of one distribution, drawn in blocks for speed."""

    __slots__ = ("_block", "_draw", "_used")

    def __init__(self, draw: Callable[[int], NDArray[ScalarT]]) -> None:
        self._draw = draw
        self._block: NDArray[ScalarT] = draw(0)
        self._used = 0

    def take(self, count: int) -> NDArray[Any]:
        """Return the next `count` values; the caller must not change the values."""
        start = self._used
        end = start + count
        if end > len(self._block):
            rest = self._block[start:]
            fresh = self._draw(max(_BLOCK, count))
            self._block = np.concatenate((rest, fresh))
            start, end = 0, count
        self._used = end
        return self._block[start:end]
