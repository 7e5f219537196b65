"""Waiting: until the next turn, after a failure, and no longer than the mirror runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    wait_random_exponential,
)

_Result = TypeVar("_Result")

_LONGEST_S = 30.0

_MOST_ASKED_S = 300.0
"""A node that asks for more is asked again all the same: it may have been mended."""


class Ending:
    """Tells everything that runs when the mirror is to end."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def is_set(self) -> bool:
        """Whether the mirror is to end."""
        return self._event.is_set()

    def set(self) -> None:
        """End the mirror, in order."""
        self._event.set()

    async def wait(self, seconds: float) -> None:
        """Wait so long, or until the end."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._event.wait(), seconds)


async def persist(
    attempt: Callable[[], Awaitable[_Result]],
    errors: type[Exception] | tuple[type[Exception], ...],
    ending: Ending,
    failed: Callable[[BaseException], None],
    longest_s: float = _LONGEST_S,
) -> _Result:
    """Try until it succeeds, waiting longer from time to time, with jitter.

    Args:
        attempt: What to try.
        errors: Those after which it is tried again.
        ending: After which it is tried no more: the error is raised.
        failed: Is told of each error.
        longest_s: Between two attempts, unless a node asks for more.
    """
    exponential = wait_random_exponential(multiplier=0.5, max=longest_s)

    def wait(state: RetryCallState) -> float:
        asked_s = getattr(_error_of(state), "retry_after_s", None)
        return max(exponential(state), min(asked_s or 0.0, _MOST_ASKED_S))

    def note(state: RetryCallState) -> None:
        failed(_error_of(state))

    retrying = AsyncRetrying(
        retry=retry_if_exception_type(errors),
        wait=wait,
        stop=lambda _: ending.is_set(),
        after=note,
        sleep=ending.wait,
        reraise=True,
    )
    return await retrying(attempt)


def _error_of(state: RetryCallState) -> BaseException:
    error = state.outcome.exception() if state.outcome else None
    assert error is not None  # noqa: S101 - asked after failures alone
    return error
