"""One SQLite file beside the checkpoint."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path


class Database:
    """A file with tables.

    Args:
        path: The file; it and its directory are made if they are missing.
        schema: SQL that makes the tables if they are missing.
    """

    def __init__(self, path: Path, schema: str) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        with self.transaction() as connection:
            # With a write-ahead log a reader, such as an open SQLite shell, does not
            # block the job's writes.
            connection.execute("PRAGMA journal_mode=WAL")
            connection.executescript(schema)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A connection for one transaction, committed when the block ends.

        An error in the block rolls the transaction back. Each block opens a connection
        of its own, since a connection belongs to one thread: the sink's thread changes
        when the query restarts, and the web server has several threads.
        """
        with closing(sqlite3.connect(self._path)) as connection, connection:
            yield connection
