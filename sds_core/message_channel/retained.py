"""Whole messages that answer repair requests (SDS-R, "Augmented History")."""

from __future__ import annotations

from typing import NamedTuple

from sds_core.message_channel.profile import Profile
from sds_core.message_channel.sized_dict import SizedDict


class Retained(NamedTuple):
    """A stored message; `value` is its frame as it was on the wire."""

    value: bytes
    sender_id: str
    stored_ms: int


class RetainedMessages:
    """The newest messages, within limits on age, number and total bytes."""

    __slots__ = ("_limit", "_limit_bytes", "_messages", "_retention_ms")

    def __init__(self, profile: Profile) -> None:
        self._limit = profile.repair_retained_limit
        self._retention_ms = profile.repair_retention_ms
        self._limit_bytes = profile.repair_retained_bytes_limit
        self._messages: SizedDict[Retained] = SizedDict(
            lambda stored: len(stored.value)
        )

    def get(self, message_id: str, now_ms: int) -> Retained | None:
        """Return a message; None if it is not stored, or was stored too long ago."""
        stored = self._messages.get(message_id)
        if stored is None or self._is_too_old(stored, now_ms):
            return None
        return stored

    def add(self, message_id: str, value: bytes, sender_id: str, now_ms: int) -> None:
        """Store a message."""
        messages = self._messages
        messages[message_id] = Retained(value, sender_id, now_ms)
        while messages.is_over(self._limit, self._limit_bytes) or self._is_too_old(
            messages[messages.oldest()], now_ms
        ):
            del messages[messages.oldest()]

    def remove(self, message_id: str) -> None:
        """Remove a message, if it is stored."""
        self._messages.pop(message_id, None)

    def state(self) -> dict[str, Retained]:
        """Return all messages, oldest first, for a snapshot."""
        return dict(self._messages)

    def restore(self, state: dict[str, Retained]) -> None:
        """Restore the messages that `state` returned."""
        self._messages.update(state)

    def _is_too_old(self, stored: Retained, now_ms: int) -> bool:
        return (
            self._retention_ms is not None
            and now_ms - stored.stored_ms > self._retention_ms
        )
