"""The interface of a host of participants, in Python or in Node."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from sds_core.message_channel import Cause


class Said(NamedTuple):
    """One frame that a participant broadcasts.

    Attributes:
        by: name of the participant; for a repair not the frame's own sender.
        cause: why.
        value: the bytes.
        hint: the transport's hash of it, as the sender and every receiver know it.
    """

    by: str
    cause: Cause
    value: bytes
    hint: bytes


class What(StrEnum):
    """Events that both libraries report to their application."""

    DELIVERED = "delivered"
    ACKNOWLEDGED = "acknowledged"
    POSSIBLY_ACKNOWLEDGED = "possibly acknowledged"
    MISSING = "missing"
    SYNC_RECEIVED = "sync received"
    ANSWERED = "answered"
    # Only js tells these two.
    REQUEST_QUEUED = "request queued"
    ANSWER_QUEUED = "answer queued"


class Note(NamedTuple):
    """One event of one participant, about one message.

    Attributes:
        by: name of the participant.
        what: happened.
        message_id: to which message.
        due_ms: T_req or T_resp of what was queued, Unix ms.
    """

    by: str
    what: What
    message_id: str
    due_ms: int | None = None


class Outcome(NamedTuple):
    """Broadcasts and notes of one call to a host, in order."""

    said: Sequence[Said]
    notes: Sequence[Note]


class Host(Protocol):
    """Some participants of one channel, in virtual time; all times Unix ms.

    `at_ms` is never earlier than that of the call before, and no later than `next_ms`.
    """

    @property
    def next_ms(self) -> float:
        """When the next action is planned; infinity if none is."""

    def run_until(self, at_ms: int) -> Outcome:
        """Run all actions planned up to and including this time."""

    def say(self, at_ms: int, name: str, text: str) -> Outcome:
        """Have a participant send a content message."""

    def say_ephemeral(self, at_ms: int, name: str, text: str) -> Outcome:
        """Have a participant send an ephemeral message."""

    def receive(self, at_ms: int, name: str, value: bytes, hint: bytes) -> Outcome:
        """Hand a frame to a participant."""

    def leave(self, at_ms: int, name: str) -> None:
        """Close a participant's application for good."""

    def log(self, name: str) -> list[str]:
        """Return the ids of a participant's local log, in its order."""
