"""A reliable channel in an SQLite file: last stored state and later changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from connectors.storage.database import Format, SqliteFile
from sds_core.reliable_channel.journal import Stored

_FORMAT: Final = Format(
    b"SDSr",
    1,
    """
CREATE TABLE state (
    only_one INTEGER PRIMARY KEY CHECK (only_one = 0),
    state BLOB NOT NULL
);
CREATE TABLE journal (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    entry BLOB NOT NULL
);
""",
)


class SqliteChannelStorage(SqliteFile):
    """Storage of one channel; errors are those of `SqliteFile`.

    Completed writes survive the end of the process and a power failure.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, _FORMAT, survives_power_loss=True)

    def load(self) -> Stored | None:
        """Return the stored content; None if nothing is stored.

        The journal is read while the caller iterates over the result's `entries`, which
        may also raise `StorageUnreadable`.
        """
        row = self._row(tuple[bytes], "SELECT state FROM state")
        return None if row is None else Stored(row[0], self._entries())

    def append(self, entry: bytes) -> None:
        """Add an entry to the journal."""
        with self._writing() as database:
            database.execute("INSERT INTO journal (entry) VALUES (?)", (entry,))

    def replace(self, state: bytes) -> None:
        """Store a state and empty the journal, atomically."""
        with self._writing() as database:
            database.execute("INSERT OR REPLACE INTO state VALUES (0, ?)", (state,))
            database.execute("DELETE FROM journal")

    def _entries(self) -> Iterator[bytes]:
        query = "SELECT entry FROM journal ORDER BY number"
        return (entry for (entry,) in self._rows(tuple[bytes], query))
