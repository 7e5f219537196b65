"""One SQLite file beside the checkpoint."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sds_core.text import one_line, printable
from streaming.damage import DamagedCheckpoint, do_without

_CHECKED_BYTES = 64 * 1024 * 1024
"""A larger file is not read whole at the start: that would take seconds. It can be
gigabytes if a destination of the history was away for long."""

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
"""The last one: a table has other columns than our statements."""


class Database:
    """A file with tables.

    Args:
        path: The file; it and its directory are made if they are missing.
        schema: SQL that makes the tables if they are missing.
        expected: Whether the file was made before, and must have its tables.

    Raises:
        DamagedCheckpoint: The file is damaged. Methods raise it too, where they find
            damage.
    """

    def __init__(self, path: Path, schema: str, expected: bool = False) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._open(schema, expected)
        except sqlite3.OperationalError as error:
            # A directory of the file's name, or a header that forbids writing.
            code = error.sqlite_errorcode & 0xFF
            if code == sqlite3.SQLITE_CANTOPEN or (
                code == sqlite3.SQLITE_READONLY and os.access(path, os.W_OK)
            ):
                raise self.damaged(error) from error
            raise

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A connection for one transaction, committed when the block ends.

        An error in the block rolls the transaction back. Each block opens a connection
        of its own, since a connection belongs to one thread: the sink's thread changes
        when the query restarts, and the web server has several threads.
        """
        try:
            with closing(sqlite3.connect(self._path)) as connection, connection:
                yield connection
        except sqlite3.DatabaseError as error:
            # The lowest byte of an extended error code is the code.
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE:
                raise self.damaged(error) from error
            raise
        except UnicodeDecodeError as error:
            raise self.damaged(error) from error

    def damaged(self, reason: object) -> DamagedCheckpoint:
        """Return the error for a file that cannot be read."""
        # SQLite quotes the file, also over several lines.
        problem = f"is damaged ({printable(one_line(str(reason)))[:160]})"
        return DamagedCheckpoint(self._path, problem, do_without(self._path))

    def _open(self, schema: str, expected: bool) -> None:
        with self.transaction() as connection:
            if expected:
                self._check(connection)
            # With a write-ahead log a reader, such as an open SQLite shell, does not
            # block the job's writes.
            connection.execute("PRAGMA journal_mode=WAL")
            connection.executescript(schema)

    def _check(self, connection: sqlite3.Connection) -> None:
        if not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise self.damaged("it has no tables")
        # Pages that a killed process, or a power loss, left to be written.
        connection.execute("PRAGMA wal_checkpoint")
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
        if self._path.stat().st_size % page_bytes:
            # SQLite would read zeros instead of what is missing.
            raise self.damaged("it ends within a page")
        if self._path.stat().st_size <= _CHECKED_BYTES:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise self.damaged(found)
