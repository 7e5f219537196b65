"""Participants in one SQLite file: for each, a snapshot and the later changes.

A snapshot of a busy participant has tens of megabytes. A change that one call makes is
only a little larger than the frame of the call, so each call appends only its change.
When the changes are larger than the last snapshot and than 4 MiB, a new snapshot
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
"""Total size of changes up to which no new snapshot is taken: they load quickly."""

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
    """Row of a participant, and lengths of the snapshot and of the later changes."""

    row: int
    snapshot_bytes: int
    change_bytes: int


class ParticipantStore(SqliteFile):
    """A file with the state of participants; arguments and errors as for `SqliteFile`.

    Call `append` after each call to a participant, before its broadcasts are sent. Even
    after a crash, the stored participant then knows everything that others have
    received from it.
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
        """Return the stored or a new participant; the participant records its changes.

        The time is in Unix ms. `random` determines the times and ids of sync messages.

        Raises:
            SnapshotError: The stored state does not fit the profile, or is damaged.
            StorageUnreadable: The file is damaged.
            StorageError: The file cannot be written.
        """
        with self._reading() as database:
            stored = database.execute(
                "SELECT id, snapshot FROM participant"
                " WHERE channel_id = ? AND participant_id = ?",
                (channel_id, participant_id),
            ).fetchone()
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
                changes = database.execute(
                    "SELECT record FROM change WHERE participant = ? ORDER BY id",
                    (row,),
                )
                channel = MessageChannel.restore(
                    snapshot,
                    changes=(record for (record,) in changes),
                    random=random,
                    profile=profile,
                )
        channel.record_changes()
        # Start with a snapshot: another release may replay the stored changes
        # differently than the release that wrote them.
        self._take_snapshot(channel)
        return channel

    def append(self, channel: MessageChannel) -> None:
        """Store the changes of a participant since the last call.

        Raises:
            KeyError: `open` did not return the participant.
            StorageError: The file cannot be written; the next call stores a snapshot,
                which includes these changes.
        """
        records = channel.take_changes()
        if not records:
            return
        key = (channel.channel_id, channel.participant_id)
        stored = self._stored[key]
        change_bytes = stored.change_bytes + sum(map(len, records))
        if change_bytes > max(_LEAST_CHANGE_BYTES, stored.snapshot_bytes):
            self._take_snapshot(channel)
            return
        # If this fails, the next call takes a snapshot.
        self._stored[key] = stored._replace(change_bytes=sys.maxsize)
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
