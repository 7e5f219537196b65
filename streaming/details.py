"""Stores every definite acknowledgement, for ``--report-detail``, in SQLite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from sds_core.observer.sds.acknowledgements import DefiniteAcknowledgement
from streaming.database import Database

_SCHEMA = """
CREATE TABLE IF NOT EXISTS acknowledgements (
    channel TEXT NOT NULL,
    message_id TEXT NOT NULL,
    t0_ms INTEGER NOT NULL,
    latency_ms INTEGER NOT NULL,
    PRIMARY KEY (channel, message_id)
) WITHOUT ROWID
"""


class DetailStore:
    """A table of acknowledgements, one row for each channel and message id.

    A replayed batch overwrites its own rows. Checkpoints since 0.1.0 have this table,
    so names of file, table and columns stay.

    Args:
        path: The file; it and its directory are made if they are missing.
        expected: Whether the file was made before; see `Database`.
    """

    def __init__(self, path: Path, expected: bool = False) -> None:
        self._database = Database(path, _SCHEMA, expected)

    def record(
        self, acknowledgements: Mapping[str, Iterable[DefiniteAcknowledgement]]
    ) -> None:
        """Store acknowledgements by channel; they are durable when this returns."""
        rows = [
            (channel, one.message_id, one.t0_ms, one.latency_ms)
            for channel, acknowledged in acknowledgements.items()
            for one in acknowledged
        ]
        if not rows:
            return
        with self._database.transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO acknowledgements VALUES (?, ?, ?, ?)", rows
            )

    def forget(self, channels: Iterable[str]) -> None:
        """Remove all acknowledgements of some channels."""
        with self._database.transaction() as connection:
            connection.executemany(
                "DELETE FROM acknowledgements WHERE channel = ?",
                [(channel,) for channel in channels],
            )

    def latencies(self) -> dict[str, list[tuple[str, int]]]:
        """Message id and latency, ms, of each acknowledgement, by channel.

        Those of a channel are in the order of the messages' first copies.
        """
        found: dict[str, list[tuple[str, int]]] = {}
        with self._database.transaction() as connection:
            rows = connection.execute(
                "SELECT channel, message_id, latency_ms FROM acknowledgements "
                "ORDER BY channel, t0_ms, message_id"
            )
            for channel, message_id, latency_ms in rows:
                found.setdefault(channel, []).append((message_id, latency_ms))
        return found
