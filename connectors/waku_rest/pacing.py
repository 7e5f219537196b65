"""Waits and retries that end when the mirror ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    wait_random_exponential,
)

_log = logging.getLogger("sds-monitor")

_Result = TypeVar("_Result")

_LONGEST_S = 30.0

_MOST_REQUESTED_S = 300.0
"""Maximum wait that a node can request, s."""


class Trouble:
    """Remembers since when an operation fails; a repeated call has no effect."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._since_ms: int | None = None
        self._until_ms: int | None = None

    @property
    def is_on(self) -> bool:
        """Whether a failure has begun, and its end is not logged yet."""
        return self._since_ms is not None

    @property
    def is_passing(self) -> bool:
        """Whether the failure has ended and the end is not logged yet."""
        return self._until_ms is not None

    def begins(self, message: object | None = None) -> None:
        """Record that the operation fails.

        The first call records the time, and logs `message` as a warning.
        """
        self._until_ms = None
        if self._since_ms is not None:
            return
        self._since_ms = self._now_ms()
        if message is not None:
            _log.warning("%s", message)

    def passes(self) -> None:
        """Record the time at which the failure ended, to log it later."""
        if self.is_on and not self.is_passing:
            self._until_ms = self._now_ms()

    def ends(self, message: str, more: str = "") -> None:
        """Log the end of the failure and its duration; append `more` to the line."""
        if self._since_ms is None:
            return
        until_ms = self._now_ms() if self._until_ms is None else self._until_ms
        # If the clock was set back during the failure, the difference is negative.
        seconds = max(0, until_ms - self._since_ms) / 1000
        self._since_ms = self._until_ms = None
        _log.info("%s after %s s%s", message, f"{seconds:,.0f}", more)


class Ending(asyncio.Event):
    """Signals to all tasks that the mirror must end."""

    async def pause(self, seconds: float) -> None:
        """Wait for some seconds, or until the mirror ends."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.wait(), seconds)


async def persist(
    attempt: Callable[[], Awaitable[_Result]],
    errors: type[Exception] | tuple[type[Exception], ...],
    ending: Ending,
    failed: Callable[[BaseException], None],
    longest_s: float = _LONGEST_S,
) -> _Result:
    """Call `attempt` until it succeeds, with growing and random waits between calls.

    Only `errors` are retried; `failed` is called with each of them. If `ending` is set,
    an error is raised without a retry. A wait takes at most `longest_s` seconds, unless
    a node requests a longer wait.
    """
    exponential = wait_random_exponential(multiplier=0.5, max=longest_s)

    def wait(state: RetryCallState) -> float:
        requested_s = getattr(_error_of(state), "retry_after_s", None)
        return max(exponential(state), min(requested_s or 0.0, _MOST_REQUESTED_S))

    retrying = AsyncRetrying(
        retry=retry_if_exception_type(errors),
        wait=wait,
        stop=lambda _: ending.is_set(),
        after=lambda state: failed(_error_of(state)),
        sleep=ending.pause,
        reraise=True,
    )
    return await retrying(attempt)


def _error_of(state: RetryCallState) -> BaseException:
    error = state.outcome.exception() if state.outcome else None
    assert error is not None  # noqa: S101 - called only after failures
    return error
