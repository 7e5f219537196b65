"""Changes of a node's state, for storage.

If a node must resume after a restart, the application stores the changes after each
call, before it sends payloads (connectors/storage/mvds.py). The state lacks
acknowledgements that wait for the next payload. If a peer gets no acknowledgement, the
peer resends the message.
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
        message: The message; None if a full store dropped it.
        sender: First peer that sent the message; None for our own message.
        is_delivered: Whether the application received the message; False while the
            message waits for parents.
    """

    group_id: bytes
    message: Message | None
    sender: bytes | None
    is_delivered: bool


@dataclass(frozen=True, slots=True)
class Changes:
    """New values by key; None if a key was removed. New keys are in insertion order.

    A node's whole state is stored as the changes from an empty node.

    Attributes:
        groups: Peers of each changed group, by its id.
        records: Changed records by peer and message id.
        messages: Changed messages by id.
    """

    epoch: int
    groups: Mapping[bytes, tuple[bytes, ...] | None] = field(default_factory=dict)
    records: Mapping[tuple[bytes, bytes], Record | None] = field(default_factory=dict)
    messages: Mapping[bytes, StoredMessage | None] = field(default_factory=dict)


class Storage(Protocol):
    """Where the state of one node is stored."""

    def load(self) -> Changes | None:
        """Return the whole state; None if nothing is stored."""

    def store(self, changes: Changes) -> None:
        """Add changes to the stored state, atomically."""


class ChangeLog:
    """Keys of the changes since the last `take`; empty while `is_on` is False."""

    def __init__(self) -> None:
        self.is_on = False
        self._clear()

    def _clear(self) -> None:
        self.epoch = False
        self.groups: dict[bytes, None] = {}
        self.records: dict[tuple[bytes, bytes], None] = {}
        self.messages: dict[bytes, None] = {}

    def mark_epoch(self) -> None:
        """Record that the epoch changed."""
        self.epoch = self.is_on

    def mark_group(self, group_id: bytes) -> None:
        """Record that the peers of a group changed."""
        if self.is_on:
            self.groups[group_id] = None

    def mark_record(self, peer: bytes, message_id: bytes) -> None:
        """Remember that a record changed."""
        if self.is_on:
            self.records[peer, message_id] = None

    def mark_message(self, message_id: bytes) -> None:
        """Record that a message changed."""
        if self.is_on:
            self.messages[message_id] = None

    def take(
        self,
    ) -> tuple[Iterable[bytes], Iterable[tuple[bytes, bytes]], Iterable[bytes]] | None:
        """Return the changed groups, records and messages; None if nothing changed."""
        if not (self.epoch or self.groups or self.records or self.messages):
            return None
        keys = (self.groups, self.records, self.messages)
        self._clear()
        return keys
