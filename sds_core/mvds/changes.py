"""Changes of a node's state. An application can store these changes.

If a node must resume after a restart, its application stores the changes after each
call of the node's methods, before it sends the returned payloads
(connectors/storage/mvds.py).

Unsent acknowledgements are not stored. If a restart loses an acknowledgement, the peer
resends the message, and the node acknowledges this copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sds_core.mvds.payload import Message
from sds_core.mvds.records import Record


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message that a node knows.

    Attributes:
        message: The message; None if it was dropped because the store was full.
        sender: Peer from which the node first received the message; None if the node
            created the message itself.
        is_delivered: Whether the message was delivered to the application; False while
            it waits for parents.
    """

    group_id: bytes
    message: Message | None
    sender: bytes | None
    is_delivered: bool


@dataclass(frozen=True, slots=True)
class Changes:
    """The new values of the changed parts of a node's state.

    A value of None means that the group, record or message was removed. New groups,
    records and messages are in the order in which they were added.

    If the object holds a whole state, all parts of the state count as changed.

    Attributes:
        groups: Peers of each changed group, by group id.
        records: Changed records; the key is the peer and the message id.
        messages: Changed messages by id.
    """

    epoch: int
    groups: Mapping[bytes, tuple[bytes, ...] | None] = field(default_factory=dict)
    records: Mapping[tuple[bytes, bytes], Record | None] = field(default_factory=dict)
    messages: Mapping[bytes, StoredMessage | None] = field(default_factory=dict)


class Storage(Protocol):
    """Storage for the state of one node."""

    def load(self) -> Changes | None:
        """Return the whole stored state; None if nothing is stored."""

    def store(self, changes: Changes) -> None:
        """Apply all changes to the stored state; on an error, apply none."""


class ChangeLog:
    """Collects the keys of changed groups, records and messages until `take` is called.

    If `is_on` is False, nothing is collected.
    """

    def __init__(self) -> None:
        self.is_on = False
        self._clear()

    def _clear(self) -> None:
        self.epoch = False
        self.groups: dict[bytes, None] = {}
        self.records: dict[tuple[bytes, bytes], None] = {}
        self.messages: dict[bytes, None] = {}

    def mark_epoch(self) -> None:
        """Mark the epoch as changed."""
        self.epoch = self.is_on

    def mark_group(self, group_id: bytes) -> None:
        """Mark a group's list of peers as changed."""
        if self.is_on:
            self.groups[group_id] = None

    def mark_record(self, peer: bytes, message_id: bytes) -> None:
        """Mark an OFFER, REQUEST or MESSAGE record as changed."""
        if self.is_on:
            self.records[peer, message_id] = None

    def mark_message(self, message_id: bytes) -> None:
        """Mark a message as changed."""
        if self.is_on:
            self.messages[message_id] = None

    def take(
        self,
    ) -> tuple[Iterable[bytes], Iterable[tuple[bytes, bytes]], Iterable[bytes]] | None:
        """Return the keys of changed groups, records and messages; clear the log.

        If nothing changed, return None. If only the epoch changed, return three empty
        collections.
        """
        if not (self.epoch or self.groups or self.records or self.messages):
            return None
        keys = (self.groups, self.records, self.messages)
        self._clear()
        return keys
