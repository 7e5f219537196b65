"""Waiting after failures, but not after the mirror's end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from connectors.waku_rest.errors import NodeRefused
from connectors.waku_rest.pacing import Ending, persist

SHORT_S = 0.01


def failing(times: int, error: Exception) -> Callable[[], Awaitable[str]]:
    """Something that fails a few times, then succeeds."""
    left = [error] * times

    async def attempt() -> str:
        if left:
            raise left.pop()
        return "done"

    return attempt


def test_action_is_retried_until_it_succeeds() -> None:
    """Each failure is reported."""
    told: list[BaseException] = []
    error = ConnectionError("away")
    work = persist(
        failing(5, error), ConnectionError, Ending(), told.append, longest_s=SHORT_S
    )
    assert asyncio.run(work) == "done"
    assert told == [error] * 5


def test_unexpected_errors_are_not_retried() -> None:
    """They are neither of the node nor of the disk."""
    told: list[BaseException] = []
    work = persist(failing(1, KeyError("bug")), OSError, Ending(), told.append)
    with pytest.raises(KeyError):
        asyncio.run(work)
    assert told == []


def test_wait_is_as_long_as_the_node_requests() -> None:
    """Even if that is longer than the default wait."""
    error = NodeRefused("http://node", "GET /", 429, "", retry_after_s=0.3)
    begun_s = time.monotonic()
    asyncio.run(
        persist(
            failing(2, error), NodeRefused, Ending(), lambda _: None, longest_s=SHORT_S
        )
    )
    assert time.monotonic() - begun_s >= 0.6


def test_end_of_the_mirror_interrupts_the_wait() -> None:
    """One more try follows, then the error is raised."""
    told: list[BaseException] = []

    async def work() -> None:
        ending = Ending()
        error = NodeRefused("http://node", "GET /", 429, "", retry_after_s=3_600.0)

        def note(error: BaseException) -> None:
            told.append(error)
            asyncio.get_running_loop().call_soon(ending.set)

        with pytest.raises(NodeRefused):
            await persist(failing(9, error), NodeRefused, ending, note)

    asyncio.run(asyncio.wait_for(work(), 30))
    assert len(told) == 2


def test_waiting_ends_with_the_mirror() -> None:
    """At once if the mirror has ended already."""

    async def work() -> None:
        ending = Ending()
        await ending.pause(SHORT_S)
        assert not ending.is_set()
        asyncio.get_running_loop().call_later(SHORT_S, ending.set)
        await ending.pause(3_600)
        assert ending.is_set()
        await ending.pause(3_600)

    asyncio.run(asyncio.wait_for(work(), 30))
