"""Puts the records for one peer into a payload of limited length."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from sds_core.mvds.options import Options
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
    """Collects the records of one payload.

    Methods that add a record return False if the record does not fit.
    """

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


class Outbox:
    """Acknowledgements and ephemeral messages that wait to be sent, by peer.

    Unlike the records of the node's state (2/MVDS, "State"), acknowledgements and
    ephemeral messages are neither stored nor retransmitted.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        # Inner dictionaries are used as ordered sets.
        self._acks: dict[bytes, dict[bytes, None]] = {}
        self._ephemeral: dict[bytes, list[Message]] = {}

    def peers(self) -> list[bytes]:
        """Return the peers for which acknowledgements or ephemeral messages wait.

        If both wait for a peer, the peer occurs twice.
        """
        return [*self._acks, *self._ephemeral]

    def acks(self) -> dict[bytes, tuple[bytes, ...]]:
        """Return the ids of the messages that are still to be acknowledged, by peer."""
        return {peer: tuple(ids) for peer, ids in self._acks.items()}

    def add_ack(self, peer: bytes, message_id: bytes) -> bool:
        """Queue an acknowledgement; return False if the peer's queue is full."""
        acks = self._acks.setdefault(peer, {})
        if message_id not in acks and len(acks) >= self._options.max_acks:
            return False
        acks[message_id] = None
        return True

    def add_ephemeral(self, peers: Iterable[bytes], message: Message) -> None:
        """Queue an ephemeral message for peers."""
        for peer in peers:
            self._ephemeral.setdefault(peer, []).append(message)

    def remove(self, peer: bytes) -> None:
        """Drop all acknowledgements and messages that wait for a peer."""
        self._acks.pop(peer, None)
        self._ephemeral.pop(peer, None)

    def remove_ephemeral(self, peer: bytes, group_id: bytes) -> None:
        """Drop the ephemeral messages of one group that wait for a peer."""
        messages = self._ephemeral.pop(peer, [])
        if kept := [one for one in messages if one.group_id != group_id]:
            self._ephemeral[peer] = kept

    def pack(self, peer: bytes, packer: Packer) -> None:
        """Move acknowledgements and messages for a peer into the peer's payload.

        Those that do not fit continue to wait. The acknowledgements leave room for a
        message of maximum length.
        """
        room_bytes = packer.left_bytes - self._options.max_message_bytes
        acks = self._acks.pop(peer, {})
        ready = list(acks)[: room_bytes // ID_RECORD_BYTES]
        for one in ready:
            packer.ack(one)
            del acks[one]
        if acks:
            self._acks[peer] = acks
        messages = self._ephemeral.pop(peer, [])
        sent = 0
        while sent < len(messages) and packer.message(messages[sent]):
            sent += 1
        if messages[sent:]:
            self._ephemeral[peer] = messages[sent:]
