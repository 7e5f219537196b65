"""A reliable channel's calls to its node, and the channel's subscriptions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

from connectors.reliable_channel.node import (
    Listener,
    QueryFailed,
    SendFailed,
    Unsubscribe,
    WakuNode,
)
from sds_core.reliable_channel import (
    Dispatch,
    Dispatched,
    DispatchFailed,
    Input,
    Output,
    StoreAnswered,
    StoreFailed,
    StoreRequest,
)
from sds_core.waku import WakuMessage

_log = logging.getLogger("sds-monitor")

_Answer = TypeVar("_Answer")


class NodeCalls:
    """Pending calls to a node; each takes at most `timeout_s`.

    `take` receives the result of each call.

    Attributes:
        under_way: For each pending call, the input that `take` receives if the call is
            cancelled.
    """

    def __init__(
        self,
        node: WakuNode,
        channel_id: str,
        content_topic: str,
        timeout_s: float,
        take: Callable[[Input], None],
    ) -> None:
        self._node = node
        self._channel_id = channel_id
        self._content_topic = content_topic
        self._timeout_s = timeout_s
        self._take = take
        self.under_way: dict[asyncio.Task[None], Input | None] = {}

    def begin(self, output: Output) -> None:
        """Start the dispatches and queries that an output requests."""
        for dispatch in output.dispatches:
            given_up = DispatchFailed(dispatch.number, None, "the channel was stopped")
            self.run(self._dispatch(dispatch), given_up)
        for request in output.queries:
            self.run(self._query(request), StoreFailed(request.number))

    def run(
        self, work: Coroutine[Any, Any, None], given_up: Input | None = None
    ) -> asyncio.Task[None]:
        """Begin a call. If `give_up` cancels it, `take` receives `given_up`."""
        task = asyncio.get_running_loop().create_task(work)
        self.under_way[task] = given_up
        task.add_done_callback(self.under_way.pop)
        return task

    def give_up(self, calls: Iterable[asyncio.Task[None]]) -> None:
        """Cancel calls, except the call that runs this method."""
        for call in set(calls) - {asyncio.current_task()}:
            call.cancel()
            given_up = self.under_way[call]
            if given_up is not None:
                self._take(given_up)

    async def answer(self, call: Awaitable[_Answer]) -> _Answer:
        """Wait for the node's answer to a call, and return the answer.

        Raises:
            TimeoutError: The node did not answer within `timeout_s`.
            Exception: The node raised an error.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                return await call
        except TimeoutError as error:
            message = f"the node did not answer within {self._timeout_s} s"
            raise TimeoutError(message) from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise ConnectionAbortedError("the node cancelled its own call") from error

    async def _dispatch(self, dispatch: Dispatch) -> None:
        ended: Input = Dispatched(dispatch.number)
        try:
            await self.answer(self._node.send(dispatch.message))
        except SendFailed as error:
            ended = DispatchFailed(dispatch.number, error.error, str(error))
        except Exception as error:
            # Without a `DispatchFailed`, the channel would never retry the frame.
            self._log_failure("send", error)
            ended = DispatchFailed(dispatch.number, None, repr(error))
        self._take(ended)

    async def _query(self, request: StoreRequest) -> None:
        ended: Input = StoreFailed(request.number)
        try:
            page = await self.answer(self._node.query(self._content_topic, request))
            ended = StoreAnswered(request.number, list(page.messages), page.cursor)
        except QueryFailed:
            pass
        except Exception as error:
            self._log_failure("query", error)
        self._take(ended)

    def _log_failure(self, call: str, error: Exception) -> None:
        _log.warning("channel %r: %s failed", self._channel_id, call, exc_info=error)


class Subscription:
    """Forwards messages and states of the node until the subscription ends.

    A channel may be stopped and started again before its node has subscribed. The
    channel then has two subscriptions for a while, and the node reports everything to
    both. The first subscription has ended and forwards nothing, so the channel receives
    everything only once.
    """

    def __init__(self, node: WakuNode, content_topic: str, listener: Listener) -> None:
        self._node = node
        self._content_topic = content_topic
        self._listener = listener
        self._unsubscribe: Unsubscribe | None = None
        self._is_ended = False

    async def open(self) -> None:
        """Subscribe. If the node raises an error, the error is not caught."""
        self._unsubscribe = await self._node.subscribe(self._content_topic, self)
        if self._is_ended:
            self.end()

    def end(self) -> None:
        """Stop forwarding; unsubscribe now, or as soon as the node has subscribed."""
        self._is_ended = True
        unsubscribe, self._unsubscribe = self._unsubscribe, None
        if unsubscribe is not None:
            try:
                unsubscribe()
            except Exception:
                # The node's error must not keep the channel from stopping.
                _log.exception("unsubscribing from the node failed")

    def arrived(self, message: WakuMessage, message_hash: bytes) -> None:
        """Forward a message of the content topic."""
        if not self._is_ended:
            self._listener.arrived(message, message_hash)

    def connection_changed(self, *, is_online: bool, has_store: bool) -> None:
        """Forward the state of the node's connections."""
        if not self._is_ended:
            self._listener.connection_changed(is_online=is_online, has_store=has_store)
