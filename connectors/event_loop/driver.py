"""Runs an SDS participant in asyncio, with a clock and a timer.

async with ChannelDriver(channel, broadcast=…, on_event=…, store=…) as driver:
    await driver.send(b"The kettle is on.")
    …                                   # and driver.receive(…) for each frame
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import Self, TypeVar

from connectors.event_loop.clock import SteadyClock
from sds_core.message_channel import Broadcast, Event, MessageChannel, Sent, Step

_log = logging.getLogger("sds-monitor")

_Event = TypeVar("_Event")


def unix_ms() -> int:
    """Return the time, Unix ms."""
    return time.time_ns() // 1_000_000


class NotStored(RuntimeError):
    """A change of the participant's state could not be stored, so the driver has ended.

    The state in memory has a change that the stored state lacks. Before you send
    anything else, restore the participant from the stored state.
    """

    def __init__(self) -> None:
        super().__init__(
            "the driver ended, because a change could not be stored: restore the "
            "participant from the stored state"
        )


def pass_on(events: Iterable[_Event], on_event: Callable[[_Event], None]) -> None:
    """Call `on_event` for each event, even if it raises errors for others.

    The state already has the changes of all events, so an event that is not passed on
    never comes again. The first error is raised at the end, and further ones are
    logged.
    """
    first: Exception | None = None
    for event in events:
        try:
            on_event(event)
        except Exception as error:
            if first is None:
                first = error
            else:
                _log.exception("the handler of events failed again")
    if first is not None:
        raise first


class Driver:
    """Base class of drivers.

    A driver is a context manager. Within the `async with` block, an asyncio task
    processes deadlines.
    """

    _timer: asyncio.Task[None] | None = None
    _unstored: Exception | None = None

    async def __aenter__(self) -> Self:
        """Start the timer."""
        self._timer = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the timer; if an error has already ended the timer, raise the error."""
        tasks = self._tasks()
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        if error is None:
            self._close()
            if results and isinstance(results[-1], Exception):
                raise results[-1]

    async def wait_closed(self) -> None:
        """Wait until the driver ends; if an error ended the driver, raise the error."""
        if self._timer is not None:
            await self._timer

    def _tasks(self) -> list[asyncio.Task[None]]:
        return [] if self._timer is None else [self._timer]

    def _check(self) -> None:
        if self._unstored is not None:
            raise NotStored from self._unstored

    def _keep(self, store: Callable[[], None]) -> None:
        """Call `store`; if it fails, every later call of the driver raises `NotStored`.

        This call raises the error of `store`.
        """
        self._check()
        try:
            store()
        except Exception as error:
            self._unstored = error
            raise

    def _close(self) -> None:
        """Called when the `async with` block ends without an error."""

    async def _run(self) -> None:
        """Process deadlines until the task is cancelled."""
        raise NotImplementedError


class ChannelDriver(Driver):
    """Calls a participant at its deadlines, and passes on the participant's results.

    After each call of the participant, the driver first calls `store`. Then it calls
    `on_event` for each event. Then it calls `broadcast` for each frame, in order.

    Args:
        channel: The participant; other code may only read it.
        broadcast: Sends one frame to all participants. If `broadcast` raises an error
            during a call of the driver, this call raises the error. At a deadline, the
            error ends the driver (see `wait_closed`).
        on_event: Takes one event. If `on_event` raises an error, the driver first
            passes on the other events and the frames of the call. It then raises the
            error, as for `broadcast`.
        store: Stores the participant's changes, for example `ParticipantStore.append`.
            If `store` raises an error, all later calls of the driver raise `NotStored`.
        clock_ms: Returns the time, Unix ms; by default, a `SteadyClock`. If another
            clock is set back, the driver's time stands still until the clock reaches
            its earlier time again.
    """

    def __init__(
        self,
        channel: MessageChannel,
        *,
        broadcast: Callable[[Broadcast], Awaitable[None]],
        on_event: Callable[[Event], None] = lambda _: None,
        store: Callable[[MessageChannel], None] = lambda _: None,
        clock_ms: Callable[[], int] | None = None,
    ) -> None:
        self._participant = channel
        self._broadcast = broadcast
        self._on_event = on_event
        self._store = store
        self._last_ms = 0
        self._clock_ms = clock_ms or SteadyClock()
        # Because of this lock, all frames of one step are sent before the first frame
        # of the next step.
        self._sending = asyncio.Lock()
        self._deadline_moved = asyncio.Event()

    async def send(self, content: bytes) -> str:
        """Send a message; return its id.

        Raises:
            EmptyContent: The content is empty.
            FrameTooLarge: The frame would be longer than the profile allows.
        """
        return await self._sent(self._channel.send(content, self._now_ms()))

    async def send_ephemeral(self, content: bytes) -> str:
        """Send an ephemeral message, which is never resent; return its id.

        The errors are those of `send`.
        """
        return await self._sent(self._channel.send_ephemeral(content, self._now_ms()))

    async def receive(self, value: bytes, *, retrieval_hint: bytes = b"") -> None:
        """Process a frame of the channel; the frame may be invalid."""
        step = self._channel.receive(
            value, self._now_ms(), retrieval_hint=retrieval_hint
        )
        await self._perform(step)

    def note_retrieval_hint(self, message_id: str, hint: bytes) -> None:
        """Store the retrieval hint of one of this participant's messages."""
        self._channel.note_retrieval_hint(message_id, hint)
        self._keep(lambda: self._store(self._participant))

    async def mark_dependencies_met(self, message_ids: Iterable[str]) -> None:
        """Mark messages that the application received from another source as received.

        Raises:
            ValueError: An id is empty, too long, or not valid Unicode text.
        """
        step = self._channel.mark_dependencies_met(message_ids, self._now_ms())
        await self._perform(step)

    async def _run(self) -> None:
        # If the participant was restored, this call processes the deadlines that passed
        # while no driver ran.
        await self._perform(self._channel.advance(self._now_ms()))
        while True:
            now_ms = self._now_ms()
            if self._channel.next_deadline_ms <= now_ms:
                await self._perform(self._channel.advance(now_ms))
                continue
            self._deadline_moved.clear()
            delay_s = (self._channel.next_deadline_ms - now_ms) / 1_000
            try:
                async with asyncio.timeout(delay_s):
                    await self._deadline_moved.wait()
            except TimeoutError:
                continue

    @property
    def _channel(self) -> MessageChannel:
        self._check()
        return self._participant

    async def _sent(self, step: Step) -> str:
        await self._perform(step)
        return next(one.message_id for one in step.events if isinstance(one, Sent))

    async def _perform(self, step: Step) -> None:
        self._deadline_moved.set()
        self._keep(lambda: self._store(self._participant))
        try:
            pass_on(step.events, self._on_event)
        finally:
            if step.broadcasts:
                async with self._sending:
                    for broadcast in step.broadcasts:
                        await self._broadcast(broadcast)

    def _now_ms(self) -> int:
        # The times that the participant gets must not decrease.
        self._last_ms = max(self._last_ms, self._clock_ms())
        return self._last_ms
