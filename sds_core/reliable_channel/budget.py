"""The interface of a rate limit that `Outward` uses."""

from __future__ import annotations

from enum import Enum, auto
from math import inf
from typing import Protocol

from sds_core.reliable_channel.events import DropReason


class Urgency(Enum):
    """What happens to a frame when the budget runs low.

    FIRST: A first sending; queued if the budget is spent. AGAIN: A retry, repair or
    sync message; queued if the limit is approached. DROPPABLE: An ephemeral message;
    dropped if the limit is approached.
    """

    FIRST = auto()
    AGAIN = auto()
    DROPPABLE = auto()


class Budget(Protocol):
    """Limits the number of messages per period."""

    def allows(self, urgency: Urgency, now_ms: int) -> bool:
        """Return whether a message may be sent now."""

    def take(self, urgency: Urgency, now_ms: int) -> bool:
        """Count a message if it may be sent now; return whether it may be sent."""

    def drop_reason(self, now_ms: int) -> DropReason | None:
        """Return why ephemeral messages are dropped now; None if they are sent."""

    def renewed_ms(self, now_ms: int) -> float:
        """Return the next time when messages may be sent, Unix ms; inf if never."""

    def state(self) -> bytes:
        """Return the state for `restore` of the same kind of budget."""

    def restore(self, state: bytes) -> None:
        """Continue with the result of `state`."""


class Unlimited:
    """No limit."""

    def allows(self, urgency: Urgency, now_ms: int) -> bool:
        """Return true."""
        return True

    def take(self, urgency: Urgency, now_ms: int) -> bool:
        """Return true."""
        return True

    def drop_reason(self, now_ms: int) -> DropReason | None:
        """Return None: nothing is dropped."""
        return None

    def renewed_ms(self, now_ms: int) -> float:
        """Return inf: nothing waits."""
        return inf

    def state(self) -> bytes:
        """Return nothing."""
        return b""

    def restore(self, state: bytes) -> None:
        """Do nothing."""
