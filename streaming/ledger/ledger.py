"""The ledger: one SQLite file in a checkpoint, with all that the driver stores.

Each other module of this package has the SQL statements for its own tables. Only this
module handles batches that Spark repeats:

- One commit stores all rows of a batch, with the batch's number and position.
- If Spark repeats a stored batch with the same number and position, the repeated batch
  adds nothing.
- If Spark plans a stored batch again with another position, the stored changes of the
  batch are undone first.

Commands, the exporter of the history and the recorder of verdicts write outside
batches. A batch and a writer outside batches wait for each other; readers do not wait.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from connectors.storage.disk import (
    error_of_disk,
    is_writable,
    make_directory,
    primary_code,
    with_remedy,
)
from sds_core.text import one_line, printable
from streaming.damage import DamagedCheckpoint, do_without
from streaming.directories import DirectoryUnwritable
from streaming.ledger import schema

_log = logging.getLogger("sds-monitor")

_CHECKED_BYTES = 64 * 1024 * 1024
"""Maximum size, bytes, of a file that is read completely at startup.

Reading a larger file would take seconds.
"""

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
"""SQLite's error codes for a damaged file.

``SQLITE_ERROR`` means that a table lacks a needed column.
"""

_UNUSABLE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
"""SQLite's error codes for a file that it cannot open or cannot write."""

_BUSY_S = 60.0
"""How long a connection waits for another writer at most, seconds.

A batch may write for some seconds.
"""

_LOG_BYTES = 4 * 1024 * 1024
"""Minimum size, bytes, of a write-ahead log that `Ledger.tidy` copies into the file.

SQLite's default is about the same.
"""


class Ledger:
    """The SQLite file of one checkpoint.

    If the file or its directory is missing, it is created. `expected` means that an
    earlier start created the file; if it has no tables, it is damaged.

    `transaction` and `batch` are used in ``with`` statements. When the outermost block
    ends, its changes are durable.

    Raises:
        DirectoryUnwritable: The file or its directory cannot be written to.
        DamagedCheckpoint: The file is damaged. Methods raise `DamagedCheckpoint` too.
        sds_core.observer.blob.UnknownBlobVersion: A newer release wrote the ledger.
    """

    def __init__(self, path: Path, expected: bool = False) -> None:
        self._path = path
        # While a thread is in a transaction or batch, the attribute `connection` has
        # the connection of this thread.
        self._thread = threading.local()
        self._lock = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        self._has_grown = self._has_failed = False
        make_directory(path.parent)
        with self.transaction() as connection:
            # Before the file is changed, raise an error if a newer release wrote it.
            schema.stored_version(connection)
            if expected:
                check_database(connection, path)
            # With a write-ahead log, readers do not block a batch.
            connection.execute("PRAGMA journal_mode=WAL")
            schema.prepare(connection)

    def close(self) -> None:
        """Close the connection that batches use; all methods still work."""
        with self._lock:
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A connection for one transaction, which is committed when the block ends.

        If the thread is already in a batch or transaction, the block becomes a part of
        that batch or transaction. An error in the block rolls the transaction back.
        """
        joined: sqlite3.Connection | None = getattr(self._thread, "connection", None)
        if joined is not None:
            yield joined
            return
        with told_damage(self._path), closing(self._connect()) as connection:
            with connection, self._joining(connection) as committed:
                yield connection
            for call in committed:
                call()

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """A connection for queries that all see the data of the same commit."""
        with self.transaction() as connection:
            if not connection.in_transaction:
                connection.execute("BEGIN")
            yield connection

    def after_commit(self, call: Callable[[], None]) -> None:
        """Call a function after this thread's transaction is committed.

        If the thread is in no transaction, the function is called at once. Callers drop
        their caches in such a function. If they dropped a cache earlier, another thread
        could fill it with the old content before the commit.
        """
        committed: list[Callable[[], None]] | None
        committed = getattr(self._thread, "committed", None)
        if committed is None:
            call()
        else:
            committed.append(call)

    def rows(self, query: str, *values: object) -> list[Any]:
        """Return the rows of a query."""
        with self.transaction() as connection:
            return connection.execute(query, values).fetchall()

    def value(self, query: str, *values: object) -> Any:
        """Return the only value that a query finds; None if it finds no row."""
        rows = self.rows(query, *values)
        return rows[0][0] if rows else None

    def write(self, statement: str, *values: object) -> None:
        """Execute a statement that writes."""
        with self.transaction() as connection:
            connection.execute(statement, values)

    def write_all(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Execute a statement that writes, once for each row."""
        if rows:
            with self.transaction() as connection:
                connection.executemany(statement, rows)

    @contextmanager
    def batch(self, number: int, position: str) -> Iterator[bool]:
        """Commit all that this thread writes in the block, as one batch.

        Yields whether the batch is new. If the batch is not new, its rows are already
        stored, and the block must write only rows that may be written twice. A batch
        that changes nothing is not committed.

        `position` is a text of all values that determine the batch's rows.

        Raises:
            ValueError: A later batch, or this batch with another position, is stored.
                This happens only if `begin` was not called at startup.
        """
        with self._lock, told_damage(self._path):
            connection = self._open_writer()
            with connection:
                # A query that the job has abandoned may write the same batch at this
                # time, so the file is locked before the newest batch is read.
                connection.execute("BEGIN IMMEDIATE")
                newest = _newest(connection)
                is_new = newest != (number, position)
                if is_new and newest is not None and newest[0] >= number:
                    message = (
                        f"batch {number} cannot be stored: the ledger has batch "
                        f"{newest[0]}, which is later, or has other records"
                    )
                    raise ValueError(message)
                if is_new:
                    schema.keep(connection)
                before = connection.total_changes
                with self._joining(connection) as committed:
                    yield is_new
                if connection.total_changes == before:
                    connection.rollback()
                    return
                if is_new:
                    connection.execute("DELETE FROM batch")
                    connection.execute(
                        "INSERT INTO batch VALUES (?, ?)", (number, position)
                    )
        self._has_grown = True
        for call in committed:
            call()

    def has(self, number: int, position: str) -> bool:
        """Whether the newest committed batch has this number and position."""
        with self.transaction() as connection:
            return _newest(connection) == (number, position)

    def begin(self, committed: int | None, position: str | None) -> None:
        """Undo the newest batch, unless Spark has committed it or repeats it unchanged.

        Call this method at startup, before stored values are read into memory.
        `committed` is the number of the newest batch that Spark has committed.
        `position` is the position of the next batch; None if no batch is planned.

        If views were forgotten in an uncommitted batch, the batch is undone even if
        Spark repeats it unchanged. Until Spark repeats the batch, its state still
        contains these views, so they must not yet count as forgotten.

        Raises:
            DamagedCheckpoint: The ledger has several batches that Spark has not
                committed, but only one batch can be undone.
        """
        following = 0 if committed is None else committed + 1
        with self.transaction() as connection:
            newest = _newest(connection)
            if newest is None or newest[0] < following:
                return
            if newest[0] > following:
                reason = (
                    f"the ledger has batch {newest[0]}, although Spark has not even "
                    f"committed batch {following}"
                )
                raise self.damaged(reason)
            if newest != (following, position) or schema.has_forgotten(connection):
                schema.undo(connection)
                connection.execute("DELETE FROM batch")

    def tidy(self) -> None:
        """If the write-ahead log is large, copy it into the file.

        Call this method often. If copying fails, no data is lost, and the next call
        tries again.
        """
        log = self._path.with_name(f"{self._path.name}-wal")
        if not self._has_grown or log.stat().st_size < _LOG_BYTES:
            return
        try:
            with self.transaction() as connection:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        except DirectoryUnwritable:
            raise
        except OSError as error:
            if not self._has_failed:
                _log.warning("%s", with_remedy(str(error)))
            self._has_failed = True
            return
        self._has_grown = self._has_failed = False

    @contextmanager
    def decoding(self, what: str) -> Iterator[None]:
        """Raise `DamagedCheckpoint` if the block cannot decode a value of the file."""
        try:
            yield
        # The errors that msgspec and invalid text cause are ValueErrors.
        except (ValueError, TypeError) as error:
            reason = f"{what} cannot be decoded: {error}"
            raise self.damaged(reason) from error

    def damaged(self, reason: object) -> DamagedCheckpoint:
        """See `damaged_database`."""
        return damaged_database(self._path, reason)

    @contextmanager
    def _joining(
        self, connection: sqlite3.Connection
    ) -> Iterator[list[Callable[[], None]]]:
        self._thread.connection, self._thread.committed = connection, []
        try:
            yield self._thread.committed
        finally:
            del self._thread.connection, self._thread.committed

    def _open_writer(self) -> sqlite3.Connection:
        # The connection stays open, because SQLite copies the write-ahead log into the
        # file each time that the last connection is closed. After a restart of the
        # query, another thread uses the connection, so the thread is not checked.
        if self._writer is None:
            writer = self._connect(check_same_thread=False)
            writer.execute("PRAGMA wal_autocheckpoint=0")
            schema.watch(writer)
            self._writer = writer
        return self._writer

    def _connect(self, check_same_thread: bool = True) -> sqlite3.Connection:
        # If a transaction starts as a reader and then writes, it cannot wait for other
        # writers, but fails. Each transaction thus starts as a writer.
        connection = sqlite3.connect(
            self._path,
            _BUSY_S,
            isolation_level="IMMEDIATE",
            check_same_thread=check_same_thread,
        )
        # By default, some builds of SQLite do not wait for the disk at each commit.
        connection.execute("PRAGMA synchronous=FULL")
        return connection


def _newest(connection: sqlite3.Connection) -> tuple[int, str] | None:
    newest: tuple[int, str] | None
    newest = connection.execute("SELECT number, position FROM batch").fetchone()
    return newest


@contextmanager
def told_damage(path: Path) -> Iterator[None]:
    """Turn an error of SQLite about a file into an error with a remedy.

    Raises:
        DirectoryUnwritable: The file or its directory cannot be written to.
        DamagedCheckpoint: The file is damaged.
        OSError: The disk is full, or fails.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = primary_code(error)
        # If stored text is not UTF-8, Python raises an error without a code of SQLite.
        is_text = code is None and "decode to UTF-8" in str(error)
        if is_text or code in _DAMAGE:
            raise damaged_database(path, error) from error
        if code in _UNUSABLE and not is_writable(path):
            checkpoint = path.parent.parent
            raise DirectoryUnwritable("checkpoint", checkpoint, str(error)) from error
        if (failed := error_of_disk(error, path)) is not None:
            raise failed from error
        if code in _UNUSABLE:
            # The path is a directory, or the header of the file forbids writing.
            raise damaged_database(path, error) from error
        raise
    except UnicodeDecodeError as error:
        raise damaged_database(path, error) from error


def damaged_database(path: Path, reason: object) -> DamagedCheckpoint:
    """Return the error for an SQLite file that is damaged."""
    # SQLite's error text may quote the file's content, and may have several lines.
    problem = f"is damaged ({printable(one_line(str(reason)))[:160]})"
    return DamagedCheckpoint(path, problem, do_without(path))


def check_ledger(path: Path) -> None:
    """Check the ledger of a checkpoint that no job uses.

    Raises the same errors as `Ledger`.
    """
    with told_damage(path), closing(sqlite3.connect(path)) as connection:
        schema.stored_version(connection)
        check_database(connection, path)


def check_database(connection: sqlite3.Connection, path: Path) -> None:
    """Raise `DamagedCheckpoint` if an SQLite file, which a job created, is damaged."""
    if not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise damaged_database(path, "the database has no tables")
    # If a process was killed or the power failed, pages may be left in the write-ahead
    # log. They are copied into the file.
    connection.execute("PRAGMA wal_checkpoint")
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    if path.stat().st_size % page_bytes:
        # SQLite would read zeros in place of the missing bytes.
        raise damaged_database(path, "the last page of the database is incomplete")
    if path.stat().st_size <= _CHECKED_BYTES:
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise damaged_database(path, found)
