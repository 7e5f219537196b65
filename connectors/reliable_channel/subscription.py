"""One subscription of a channel, from `start` to `stop`."""

from __future__ import annotations

import logging

from connectors.reliable_channel.node import Listener, Unsubscribe, WakuNode
from sds_core.waku import WakuMessage

_log = logging.getLogger("sds-monitor")


class Subscription:
    """Passes on what the node says, until it is ended.

    A channel may be stopped, and started again, before its node has subscribed. Then
    the node says everything twice for a while: each subscription is a listener of its
    own, so that the channel hears only the last one.
    """

    def __init__(self, node: WakuNode, content_topic: str, listener: Listener) -> None:
        self._node = node
        self._content_topic = content_topic
        self._listener = listener
        self._unsubscribe: Unsubscribe | None = None
        self._is_ended = False

    async def open(self) -> None:
        """Subscribe; raises what the node raises."""
        self._unsubscribe = await self._node.subscribe(self._content_topic, self)
        if self._is_ended:
            self.end()

    def end(self) -> None:
        """Hear nothing more, and unsubscribe, now or when the node has subscribed."""
        self._is_ended = True
        unsubscribe, self._unsubscribe = self._unsubscribe, None
        if unsubscribe is not None:
            try:
                unsubscribe()
            except Exception:
                # The node's error must not keep the channel from stopping.
                _log.exception("a node failed to unsubscribe")

    def arrived(self, message: WakuMessage, message_hash: bytes) -> None:
        """Take a message of the content topic."""
        if not self._is_ended:
            self._listener.arrived(message, message_hash)

    def connection_changed(self, *, is_online: bool, has_store: bool) -> None:
        """Take the state of the node's connections."""
        if not self._is_ended:
            self._listener.connection_changed(is_online=is_online, has_store=has_store)
