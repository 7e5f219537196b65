"""The state of an MVDS node in an SQLite file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from connectors.storage.database import Format, SqliteFile, StorageUnreadable
from sds_core.mvds.changes import Changes, StoredMessage
from sds_core.mvds.payload import ID_BYTES, Message, Metadata, message_id
from sds_core.mvds.records import Record, RecordType

# The table `record` has at most one row for a peer and a message: the record of a
# MESSAGE replaces the record of its OFFER. The column `position` keeps the order in
# which the node learned of messages or peers.
_FORMAT: Final = Format(
    b"MVDS",
    1,
    """
CREATE TABLE node (
    only_one INTEGER PRIMARY KEY CHECK (only_one = 0),
    epoch INTEGER NOT NULL
);
CREATE TABLE peer_group (group_id BLOB PRIMARY KEY);
CREATE TABLE peer (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id BLOB NOT NULL REFERENCES peer_group (group_id),
    peer BLOB NOT NULL,
    UNIQUE (group_id, peer)
);
CREATE TABLE record (
    peer BLOB NOT NULL,
    message_id BLOB NOT NULL,
    type TEXT NOT NULL,
    send_count INTEGER NOT NULL,
    send_epoch INTEGER NOT NULL,
    PRIMARY KEY (peer, message_id)
);
CREATE TABLE message (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    message_id BLOB NOT NULL UNIQUE,
    group_id BLOB NOT NULL,
    sender BLOB,
    is_delivered INTEGER NOT NULL,
    timestamp INTEGER,
    body BLOB,
    metadata BLOB
);
""",
)


_COLUMNS = attrgetter("peer", "message_id", "type", "send_count", "send_epoch")


_MessageId = Annotated[bytes, msgspec.Meta(min_length=ID_BYTES, max_length=ID_BYTES)]


class _StoredMetadata(msgspec.Struct, array_like=True):
    """Metadata of a message, as MessagePack.

    Add new fields at the end, with defaults, so that older files remain readable.
    """

    parents: tuple[_MessageId, ...]
    ephemeral: bool


class SqliteNodeStorage(SqliteFile):
    """Storage of one node; arguments and errors are those of `SqliteFile`."""

    def __init__(self, path: Path, *, survives_power_loss: bool = True) -> None:
        super().__init__(path, _FORMAT, survives_power_loss=survives_power_loss)

    def load(self) -> Changes | None:
        """Return the whole stored state; None if nothing is stored."""
        try:
            node = self._row(tuple[int], "SELECT epoch FROM node")
            return None if node is None else self._load(*node)
        except msgspec.DecodeError as error:
            raise StorageUnreadable(self.path, str(error)) from error

    def store(self, changes: Changes) -> None:
        """Add changes to the stored state, atomically."""
        with self._writing() as database:
            database.execute(
                "INSERT OR REPLACE INTO node VALUES (0, ?)", (changes.epoch,)
            )
            for group_id, peers in changes.groups.items():
                database.execute("DELETE FROM peer WHERE group_id = ?", (group_id,))
                if peers is None:
                    database.execute(
                        "DELETE FROM peer_group WHERE group_id = ?", (group_id,)
                    )
                    continue
                database.execute(
                    "INSERT OR IGNORE INTO peer_group VALUES (?)", (group_id,)
                )
                database.executemany(
                    "INSERT INTO peer (group_id, peer) VALUES (?, ?)",
                    [(group_id, peer) for peer in peers],
                )
            database.executemany(
                "DELETE FROM record WHERE peer = ? AND message_id = ?",
                [key for key, record in changes.records.items() if record is None],
            )
            database.executemany(
                "INSERT OR REPLACE INTO record VALUES (?, ?, ?, ?, ?)",
                [_COLUMNS(one) for one in changes.records.values() if one is not None],
            )
            database.executemany(
                "DELETE FROM message WHERE message_id = ?",
                [(key,) for key, stored in changes.messages.items() if stored is None],
            )
            database.executemany(
                "INSERT INTO message (message_id, group_id, sender, is_delivered,"
                " timestamp, body, metadata) VALUES (?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (message_id) DO UPDATE SET"
                # A forgotten message can come back, from another sender.
                " group_id = excluded.group_id, sender = excluded.sender,"
                " is_delivered = excluded.is_delivered,"
                " timestamp = excluded.timestamp, body = excluded.body,"
                " metadata = excluded.metadata",
                _message_rows(changes),
            )

    def _load(self, epoch: int) -> Changes:
        groups: dict[bytes, tuple[bytes, ...]] = {
            group_id: ()
            for (group_id,) in self._rows(
                tuple[bytes], "SELECT group_id FROM peer_group"
            )
        }
        for group_id, peer in self._rows(
            tuple[bytes, bytes], "SELECT group_id, peer FROM peer ORDER BY position"
        ):
            if group_id not in groups:
                raise StorageUnreadable(self.path, "the group of a peer is missing")
            groups[group_id] += (peer,)
        records = {
            row[:2]: Record(*row)
            for row in self._rows(
                tuple[bytes, bytes, RecordType, int, int],
                "SELECT peer, message_id, type, send_count, send_epoch FROM record"
                " ORDER BY send_epoch, rowid",
            )
        }
        messages = {
            row[0]: _stored_message(*row[1:])
            for row in self._rows(
                tuple[
                    bytes,
                    bytes,
                    bytes | None,
                    int,
                    int | None,
                    bytes | None,
                    bytes | None,
                ],
                "SELECT message_id, group_id, sender, is_delivered, timestamp, body,"
                " metadata FROM message ORDER BY position",
            )
        }
        self._check(records.values(), messages)
        return Changes(epoch, groups, records, messages)

    def _check(
        self, records: Iterable[Record], messages: dict[bytes, StoredMessage]
    ) -> None:
        """Check what the node relies on, because damage can be a valid value."""
        for key, stored in messages.items():
            if stored.message is not None and message_id(stored.message) != key:
                raise StorageUnreadable(self.path, "a message differs from its id")
            if stored.sender is None and not stored.is_delivered:
                raise StorageUnreadable(self.path, "an own message waits for parents")
        for record in records:
            named = messages.get(record.message_id)
            is_sent = record.type is not RecordType.REQUEST
            if is_sent and (named is None or named.message is None):
                raise StorageUnreadable(self.path, "the message of a record is missing")


def _message_rows(changes: Changes) -> Iterator[tuple[Any, ...]]:
    for key, stored in changes.messages.items():
        if stored is None:
            continue
        message = stored.message
        metadata = None
        if message is not None and message.metadata is not None:
            metadata = msgspec.msgpack.encode(
                _StoredMetadata(message.metadata.parents, message.metadata.ephemeral)
            )
        yield (
            key,
            stored.group_id,
            stored.sender,
            stored.is_delivered,
            message and message.timestamp,
            message and message.body,
            metadata,
        )


def _stored_message(
    group_id: bytes,
    sender: bytes | None,
    is_delivered: int,
    timestamp: int | None,
    body: bytes | None,
    metadata: bytes | None,
) -> StoredMessage:
    message = None
    if timestamp is not None and body is not None:
        read = None
        if metadata is not None:
            stored = msgspec.msgpack.decode(metadata, type=_StoredMetadata)
            read = Metadata(stored.parents, stored.ephemeral)
        message = Message(group_id, timestamp, body, read)
    return StoredMessage(group_id, message, sender, bool(is_delivered))
