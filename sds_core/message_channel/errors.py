"""Errors that a participant raises if its application makes an invalid call.

    ParticipantError
    ├── EmptyContent (a ValueError)
    ├── MessageIdTaken (a ValueError)
    ├── FrameTooLarge (a ValueError)
    └── SnapshotError (a ValueError)

An invalid frame from the network raises no error, but causes an `Ignored` event.
"""

from __future__ import annotations


class ParticipantError(Exception):
    """Base of all errors that this package raises."""


class EmptyContent(ParticipantError, ValueError):
    """The content of a new message is empty.

    A frame without content would be a sync message (SDS, "Message").
    """

    def __init__(self) -> None:
        super().__init__("content is empty; use sync() to send a sync message")


class MessageIdTaken(ParticipantError, ValueError):
    """The application chose an id that a known message already has."""

    def __init__(self, message_id: str) -> None:
        super().__init__(
            f"message id {message_id!r:.80} is taken by another message; omit the id "
            "to get a new id"
        )
        self.message_id = message_id


class FrameTooLarge(ParticipantError, ValueError):
    """The frame would be longer than the profile allows, so peers could refuse it."""

    def __init__(self, actual_bytes: int, limit_bytes: int) -> None:
        super().__init__(
            f"the frame has {actual_bytes} bytes, but at most {limit_bytes} are "
            "allowed; split the content"
        )
        self.actual_bytes = actual_bytes
        self.limit_bytes = limit_bytes


class SnapshotError(ParticipantError, ValueError):
    """A participant cannot be restored from a snapshot and the changes after it."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"the snapshot cannot be restored: {detail}")
        self.detail = detail
