"""Errors that a channel raises when the application calls it.

    ReliableChannelError
    ├── NotStarted
    ├── MessageIdRefused (a ValueError)
    └── StateError (a ValueError)

If something fails after a call has returned, the channel reports an event. The modules
for segmentation and encryption define further subclasses of `ReliableChannelError`.
"""

from __future__ import annotations


class ReliableChannelError(Exception):
    """Base class of all errors of a channel."""


class NotStarted(ReliableChannelError):
    """The channel is not started, so it cannot send."""

    def __init__(self, channel_id: str) -> None:
        super().__init__(
            f"channel {channel_id!r:.80} has not been started: call start()"
        )
        self.channel_id = channel_id


class MessageIdRefused(ReliableChannelError, ValueError):
    """The application chose a message id that is not allowed. Nothing is sent."""

    def __init__(self, message_id: str, detail: str) -> None:
        super().__init__(f"id {message_id!r:.80} is refused: {detail}")
        self.message_id = message_id
        self.detail = detail


class StateError(ReliableChannelError, ValueError):
    """A channel cannot resume from a stored state."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"the channel cannot resume from the stored state: {detail}")
        self.detail = detail
