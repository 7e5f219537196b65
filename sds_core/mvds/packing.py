"""Puts the records for one peer into a payload that is not too long."""

from __future__ import annotations

from typing import TypeVar

from sds_core.mvds.parents import parents_of
from sds_core.mvds.payload import (
    ID_RECORD_BYTES,
    MAX_RECORDS,
    Message,
    Payload,
    message_record_bytes,
)

_Item = TypeVar("_Item")


class Packer:
    """Collects the records of one payload; methods return False if one does not fit.

    Args:
        max_bytes: Length of the longest payload.
    """

    __slots__ = (
        "_acks",
        "_left_records",
        "_messages",
        "_offers",
        "_requests",
        "left_bytes",
    )

    def __init__(self, max_bytes: int) -> None:
        self.left_bytes = max_bytes
        self._left_records = MAX_RECORDS
        self._acks: list[bytes] = []
        self._offers: list[bytes] = []
        self._requests: list[bytes] = []
        self._messages: list[Message] = []

    def ack(self, message_id: bytes) -> bool:
        """Add an ACK."""
        return self._add(self._acks, message_id, ID_RECORD_BYTES, 1)

    def offer(self, message_id: bytes) -> bool:
        """Add an OFFER."""
        return self._add(self._offers, message_id, ID_RECORD_BYTES, 1)

    def request(self, message_id: bytes) -> bool:
        """Add a REQUEST."""
        return self._add(self._requests, message_id, ID_RECORD_BYTES, 1)

    def message(self, message: Message) -> bool:
        """Add a MESSAGE."""
        records = 1 + len(parents_of(message))
        return self._add(
            self._messages, message, message_record_bytes(message), records
        )

    def payload(self) -> Payload:
        """Return the payload; empty if nothing was added."""
        return Payload(
            tuple(self._acks),
            tuple(self._offers),
            tuple(self._requests),
            tuple(self._messages),
        )

    def _add(
        self, items: list[_Item], item: _Item, size_bytes: int, records: int
    ) -> bool:
        if size_bytes > self.left_bytes or records > self._left_records:
            return False
        self.left_bytes -= size_bytes
        self._left_records -= records
        items.append(item)
        return True
