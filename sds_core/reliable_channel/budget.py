"""A rate limit that `Outward` uses, here without a limit."""

from __future__ import annotations

from enum import Enum, auto
from math import inf

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


class Budget:
    """Limits the number of messages per period; this base class has no limit."""

    def allows(self, urgency: Urgency, now_ms: int) -> bool:
        """Return whether a message may be sent now."""
        return True

    def take(self, urgency: Urgency, now_ms: int) -> bool:
        """Count a message if it may be sent now; return whether it may be sent."""
        return True

    def drop_reason(self, now_ms: int) -> DropReason | None:
        """Return why ephemeral messages are dropped now; None if they are sent."""
        return None

    def renewed_ms(self, now_ms: int) -> float:
        """Return the next time when messages may be sent, Unix ms; inf if never."""
        return inf

    def state(self) -> bytes:
        """Return the state for `restore` of the same kind of budget."""
        return b""

    def restore(self, state: bytes) -> None:
        """Continue with the result of `state`."""
