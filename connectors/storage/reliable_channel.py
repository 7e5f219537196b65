"""A reliable channel in an SQLite file: its last state, and the journal after it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from connectors.lock import locked
from sds_core.reliable_channel.journal import Stored

_SCHEMA = """
CREATE TABLE IF NOT EXISTS state (
    only_one INTEGER PRIMARY KEY CHECK (only_one = 0),
    state BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS journal (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    entry BLOB NOT NULL
);
"""


class StorageError(Exception):
    """The file cannot be used.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path, detail: str) -> None:
        super().__init__(f"{path}: {detail}")
        self.path = path


class StorageInUse(StorageError):
    """Another process has the channel; two of one sender contradict each other."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "another process uses this channel: end it first")


class SqliteChannelStorage:
    """Storage of one channel; a context manager that closes it.

    What a call has written survives the end of the process and of the machine's power.

    Args:
        path: The file, made if it is missing. Beside it lies a lock file.

    Raises:
        StorageInUse: Another process has it open.
        StorageError: It cannot be opened, or is no such file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with ExitStack() as opened:
            lock = path.with_name(f"{path.name}.lock")
            try:
                opened.enter_context(locked(lock))
            except BlockingIOError as error:
                raise StorageInUse(path) from error
            except OSError as error:
                raise StorageError(path, str(error)) from error
            try:
                self._database = sqlite3.connect(path)
                opened.callback(self._database.close)
                self._database.execute("PRAGMA journal_mode=WAL")
                self._database.execute("PRAGMA synchronous=FULL")
                self._database.executescript(_SCHEMA)
            except sqlite3.Error as error:
                raise StorageError(path, str(error)) from error
            self._opened = opened.pop_all()

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
        self._opened.close()

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
