"""Interface of a Waku node (`WakuNode` in RELIABLE-CHANNEL-API)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sds_core.reliable_channel import Arrived, SendError, StoreRequest
from sds_core.waku import WakuMessage


class SendFailed(Exception):
    """A node did not accept a message; if `error` is set, every retry would fail."""

    def __init__(self, detail: str, error: SendError | None = None) -> None:
        super().__init__(detail)
        self.error = error


class QueryFailed(Exception):
    """A store did not answer."""


@dataclass(frozen=True, slots=True)
class StoredPage:
    """One page of a store's answer.

    `cursor` selects the next page; None on the last page.
    """

    messages: Sequence[Arrived]
    cursor: bytes | None


class Listener(Protocol):
    """Receives messages from a node, and the state of the node's connections.

    The methods are called in the event loop.
    """

    def arrived(self, message: WakuMessage, message_hash: bytes) -> None:
        """Receive a message of the content topic."""

    def connection_changed(self, *, is_online: bool, has_store: bool) -> None:
        """Receive the state of the node's connections."""


Unsubscribe = Callable[[], None]
"""Ends a subscription; the listener is not called afterwards."""


class WakuNode(Protocol):
    """A node that relays messages and can query a store."""

    def pubsub_topic(self, content_topic: str) -> str:
        """Return the pubsub topic on which messages of a content topic are relayed."""

    async def subscribe(self, content_topic: str, listener: Listener) -> Unsubscribe:
        """Report a content topic's messages to a listener.

        The node also reports the state of its connections. It calls
        `connection_changed` for the first time as soon as it knows the state.
        """

    async def send(self, message: WakuMessage) -> None:
        """Send a message.

        Raises:
            SendFailed: The network did not accept the message.
        """

    async def query(self, content_topic: str, request: StoreRequest) -> StoredPage:
        """Query a store for one page. In a query by time, the newest page comes first.

        Raises:
            QueryFailed: No store answered.
        """
