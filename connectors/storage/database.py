"""The SQLite files of this project; only one process at a time can open a file.

StorageError (attribute path)
├── StorageInUse        another process has the file open
└── StorageUnreadable   the file is damaged or of another kind
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import msgspec

from connectors.storage.disk import cause_of, error_of_disk, primary_code

_Row = TypeVar("_Row", bound=tuple[Any, ...])


class StorageError(Exception):
    """The file cannot be used.

    Attributes:
        is_of_disk: Whether the disk is full or fails.
    """

    def __init__(self, path: Path, text: str, *, is_of_disk: bool = False) -> None:
        super().__init__(f"{path}: {text}")
        self.path = path
        self.is_of_disk = is_of_disk


class StorageInUse(StorageError):
    """Another process has the file open."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            path, "another process has the file open; end that process first"
        )


class StorageUnreadable(StorageError, ValueError):
    """The file is damaged, or another program or version created it."""

    def __init__(self, path: Path, detail: str) -> None:
        super().__init__(path, f"cannot be read: {detail}")
        self.detail = detail


class Format(NamedTuple):
    """Format of one kind of file.

    Attributes:
        application_id: Four characters in the file's header that identify the kind of
            file.
        tables: SQL that creates the tables.
    """

    application_id: bytes
    version: int
    tables: str


class SqliteFile:
    """An SQLite file with one kind of state. As a context manager, it closes the file.

    Opening a file may raise any error of this module. If SQLite reports an error later,
    methods that write raise `StorageError`, and methods that read raise
    `StorageUnreadable`.

    Args:
        path: The file; it is created if it is missing.
        survives_power_loss: Whether each change waits until it is on the disk. If
            False, the last changes may be lost in a power failure, but not if only the
            process ends.
    """

    def __init__(self, path: Path, form: Format, *, survives_power_loss: bool) -> None:
        self.path = path
        try:
            self._database = _opened(path, form, survives_power_loss)
        except sqlite3.Error as error:
            raise _told(error, path) from error

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file, so that other processes can use it."""
        self._database.close()

    def _rows(
        self, row: type[_Row], query: str, *parameters: bytes | str | int
    ) -> Iterator[_Row]:
        """Yield the rows that a query finds, with values of the types in `row`."""
        try:
            for values in self._database.execute(query, parameters):
                # If `bytes` is not built in, msgspec decodes text as Base64.
                yield msgspec.convert(values, row, builtin_types=(bytes,))
        except msgspec.ValidationError as error:
            # In a damaged file, a blob may be a number or text.
            detail = f"a value has the wrong type: {error}"
            raise StorageUnreadable(self.path, detail) from error
        except (sqlite3.Error, UnicodeDecodeError) as error:
            # The text of an SQLite error may quote a damaged name that is not UTF-8.
            raise StorageUnreadable(self.path, str(error)) from error

    def _row(
        self, row: type[_Row], query: str, *parameters: bytes | str | int
    ) -> _Row | None:
        """Return the first of `_rows`; None if the query finds no row."""
        return next(self._rows(row, query, *parameters), None)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._database:
                yield self._database
        except sqlite3.Error as error:
            raise _told(error, self.path) from error
        except UnicodeDecodeError as error:
            raise StorageUnreadable(self.path, str(error)) from error


def _told(error: sqlite3.Error, path: Path) -> StorageError:
    is_of_disk = error_of_disk(error, path) is not None
    return StorageError(path, cause_of(error, path), is_of_disk=is_of_disk)


def _opened(path: Path, form: Format, survives_power_loss: bool) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=0)
    try:
        _set_up(database, path, form, survives_power_loss)
    except sqlite3.OperationalError as error:
        database.close()
        if primary_code(error) == sqlite3.SQLITE_BUSY:
            raise StorageInUse(path) from None
        raise
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        database.close()
        raise StorageUnreadable(path, str(error)) from None
    except StorageUnreadable:
        database.close()
        raise
    return database


def _set_up(
    database: sqlite3.Connection, path: Path, form: Format, survives_power_loss: bool
) -> None:
    # SQLite holds the lock until the file is closed, because two processes must not
    # use the same state.
    database.execute("PRAGMA locking_mode = EXCLUSIVE")
    (stored_id,) = database.execute("PRAGMA application_id").fetchone()
    (version,) = database.execute("PRAGMA user_version").fetchone()
    (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    application_id = int.from_bytes(form.application_id, "big")
    if tables and stored_id != application_id:
        raise StorageUnreadable(path, "the file is not a database of the expected kind")
    if tables and version != form.version:
        detail = (
            f"the file has version {version}, but this program reads version "
            f"{form.version}"
        )
        raise StorageUnreadable(path, detail)
    database.execute("PRAGMA journal_mode = WAL")
    mode = "FULL" if survives_power_loss else "NORMAL"
    database.execute(f"PRAGMA synchronous = {mode}")
    if not tables:
        database.executescript(
            f"BEGIN; PRAGMA application_id = {application_id};"
            f"PRAGMA user_version = {form.version}; {form.tables} COMMIT;"
        )
