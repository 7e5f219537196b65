"""SQLite beside the checkpoint, for what leaves the job once and is asked for later."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path


class Database:
    """One file with its tables.

    Args:
        path: The file; its directory is made if it is missing.
        schema: SQL that makes the tables where they are missing.
    """

    def __init__(self, path: Path, schema: str) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        with self.transaction() as connection:
            # A reader, were it a shell that somebody left open, holds up no batch.
            connection.execute("PRAGMA journal_mode=WAL")
            connection.executescript(schema)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A connection; what was written is durable when the block has ended.

        One connection a block: the sink's thread changes when the query restarts,
        and the web server has threads of its own.
        """
        with closing(sqlite3.connect(self._path)) as connection, connection:
            yield connection
