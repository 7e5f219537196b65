"""Changes of a node's state, which an application can store.

If a node must resume after a restart, the application stores the changes after each
call, and only then sends payloads (connectors/storage/mvds.py). The state lacks waiting
acknowledgements: if a peer gets no acknowledgement, it resends the message, and the
node acknowledges it again.
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
        sender: Peer that sent the message first; None if the message is our own.
        is_delivered: Whether the message was delivered to the application; False while
            it waits for parents.
    """

    group_id: bytes
    message: Message | None
    sender: bytes | None
    is_delivered: bool


@dataclass(frozen=True, slots=True)
class Changes:
    """New value of each changed key; the value is None if the key was removed.

    New keys are in order of insertion. A whole state is stored as the changes from an
    empty node.

    Attributes:
        groups: Peers of each changed group, by group id.
        records: Changed records by peer and message id.
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
        """Apply changes to the stored state, all or none."""


class ChangeLog:
    """Keys of the values that changed since the last `take`, if `is_on` is True."""

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
        """Record that an OFFER, REQUEST or MESSAGE record changed."""
        if self.is_on:
            self.records[peer, message_id] = None

    def mark_message(self, message_id: bytes) -> None:
        """Record that a message changed."""
        if self.is_on:
            self.messages[message_id] = None

    def take(
        self,
    ) -> tuple[Iterable[bytes], Iterable[tuple[bytes, bytes]], Iterable[bytes]] | None:
        """Return keys of changed groups, records and messages.

        If nothing changed, return None. If only the epoch changed, return no keys.
        """
        if not (self.epoch or self.groups or self.records or self.messages):
            return None
        keys = (self.groups, self.records, self.messages)
        self._clear()
        return keys
