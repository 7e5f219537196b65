"""A reliable channel in an SQLite file: its last state, and the journal after it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from connectors.storage.database import Format, open_database
from connectors.storage.errors import StorageError
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


class SqliteChannelStorage:
    """Storage of one channel; a context manager that closes it.

    What a call has written survives the end of the process and of the machine's power.

    Args:
        path: The file; it is made if it is missing. One process may have it open.

    Raises:
        StorageInUse: Another process has the file open.
        StorageUnreadable: It is another file, or damaged.
        StorageError: It cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._database = open_database(path, _FORMAT, survives_power_loss=True)
        except sqlite3.Error as error:
            raise StorageError(path, str(error)) from error

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file, and let other processes use it."""
        self._database.close()

    def load(self) -> Stored | None:
        """Return what was stored; None if nothing was."""
        row = self._database.execute("SELECT state FROM state").fetchone()
        return None if row is None else Stored(row[0], self._entries())

    def append(self, entry: bytes) -> None:
        """Add an entry to the journal.

        Raises:
            StorageError: It cannot be written.
        """
        with self._writing() as database:
            database.execute("INSERT INTO journal (entry) VALUES (?)", (entry,))

    def replace(self, state: bytes) -> None:
        """Store a state, and empty the journal; both or neither.

        Raises:
            StorageError: It cannot be written.
        """
        with self._writing() as database:
            database.execute("INSERT OR REPLACE INTO state VALUES (0, ?)", (state,))
            database.execute("DELETE FROM journal")

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._database:
                yield self._database
        except sqlite3.Error as error:
            raise StorageError(self.path, str(error)) from error

    def _entries(self) -> Iterator[bytes]:
        rows = self._database.execute("SELECT entry FROM journal ORDER BY number")
        return (entry for (entry,) in rows)
