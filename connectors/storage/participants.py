"""An SQLite file with a snapshot of each participant, and the changes after it.

A snapshot of a busy participant has tens of megabytes. The change that a call to a
participant makes is only a little larger than the frame that the call sends or
receives. After each call, only this change is therefore stored. When all changes
together are larger than 4 MiB and larger than the last snapshot, a new snapshot
replaces them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from connectors.storage.database import Format, SqliteFile
from sds_core.message_channel import MessageChannel, Profile

_LEAST_CHANGE_BYTES: Final = 4 * 2**20
"""Changes up to this total size cause no new snapshot, because they load quickly."""

_FORMAT: Final = Format(
    b"SDSp",
    1,
    """
CREATE TABLE participant (
    id INTEGER PRIMARY KEY,
    channel_id TEXT NOT NULL,
    participant_id TEXT NOT NULL,
    snapshot BLOB NOT NULL,
    UNIQUE (channel_id, participant_id)
);
CREATE TABLE change (
    participant INTEGER NOT NULL REFERENCES participant (id),
    record BLOB NOT NULL,
    id INTEGER PRIMARY KEY AUTOINCREMENT
);
CREATE INDEX change_of_participant ON change (participant, id);
""",
)


class _Stored(NamedTuple):
    """Row id of a participant, and sizes of its snapshot and of its later changes."""

    row: int
    snapshot_bytes: int
    change_bytes: int


class ParticipantStore(SqliteFile):
    """The states of participants; arguments and errors are those of `SqliteFile`.

    After each call to a participant, call `append`, and only then send the broadcasts
    that the participant returned. Even after a crash, the stored participant then knows
    everything that others have received from it.
    """

    def __init__(self, path: Path, *, survives_power_loss: bool = False) -> None:
        self._stored: dict[tuple[str, str], _Stored] = {}
        super().__init__(path, _FORMAT, survives_power_loss=survives_power_loss)

    def open(
        self,
        channel_id: str,
        participant_id: str,
        *,
        now_ms: int,
        random: Random,
        profile: Profile,
    ) -> MessageChannel:
        """Return the stored participant, or a new one if none is stored.

        The participant records its changes for `append`. `now_ms` is the current time,
        Unix ms. `random` determines the ids of messages and the times of sync messages.

        Raises:
            SnapshotError: The stored state does not fit the profile, or is damaged.
            StorageUnreadable: The file is damaged.
            StorageError: The file cannot be written.
        """
        stored = self._row(
            tuple[int, bytes],
            "SELECT id, snapshot FROM participant"
            " WHERE channel_id = ? AND participant_id = ?",
            channel_id,
            participant_id,
        )
        if stored is None:
            channel = MessageChannel(
                channel_id,
                participant_id,
                now_ms=now_ms,
                random=random,
                profile=profile,
            )
        else:
            row, snapshot = stored
            changes = self._rows(
                tuple[bytes],
                "SELECT record FROM change WHERE participant = ? ORDER BY id",
                row,
            )
            channel = MessageChannel.restore(
                snapshot,
                changes=(record for (record,) in changes),
                random=random,
                profile=profile,
            )
        channel.record_changes()
        # The snapshot replaces the stored changes, so that changes of two releases are
        # never mixed: each release may replay a change differently.
        self._take_snapshot(channel)
        return channel

    def append(self, channel: MessageChannel) -> None:
        """Store a participant's changes since the last call of `append` or `open`.

        Raises:
            KeyError: The participant was not opened with `open`.
            StorageError: The file cannot be written; the next call stores a snapshot,
                which includes these changes.
        """
        key = (channel.channel_id, channel.participant_id)
        stored = self._stored[key]
        records = channel.take_changes()
        if not records and stored.change_bytes < sys.maxsize:
            return
        change_bytes = stored.change_bytes + sum(map(len, records))
        # If a write fails, this size makes the next call take a snapshot.
        self._stored[key] = stored._replace(change_bytes=sys.maxsize)
        if change_bytes > max(_LEAST_CHANGE_BYTES, stored.snapshot_bytes):
            self._take_snapshot(channel)
            return
        with self._writing() as database:
            database.executemany(
                "INSERT INTO change (participant, record) VALUES (?, ?)",
                ((stored.row, record) for record in records),
            )
        self._stored[key] = stored._replace(change_bytes=change_bytes)

    def _take_snapshot(self, channel: MessageChannel) -> None:
        snapshot = channel.snapshot()
        with self._writing() as database:
            (row,) = database.execute(
                "INSERT INTO participant (channel_id, participant_id, snapshot)"
                " VALUES (?, ?, ?)"
                " ON CONFLICT DO UPDATE SET snapshot = excluded.snapshot RETURNING id",
                (channel.channel_id, channel.participant_id, snapshot),
            ).fetchone()
            database.execute("DELETE FROM change WHERE participant = ?", (row,))
        key = (channel.channel_id, channel.participant_id)
        self._stored[key] = _Stored(row, len(snapshot), 0)
