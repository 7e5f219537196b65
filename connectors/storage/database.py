"""Opens an SQLite file of ours, for one process at a time."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import NamedTuple

from connectors.storage.errors import StorageInUse, StorageUnreadable


class Format(NamedTuple):
    """What a file of one kind has.

    Attributes:
        application_id: Four characters that mark the kind, in the file's head.
        version: Version of the schema.
        tables: SQL that makes the tables.
    """

    application_id: bytes
    version: int
    tables: str


def open_database(
    path: Path, form: Format, *, survives_power_loss: bool
) -> sqlite3.Connection:
    """Return a connection that locks the file until it is closed.

    Args:
        path: The file; it is made if it is missing.
        form: Its kind.
        survives_power_loss: Wait for the disk at each transaction.

    Raises:
        StorageInUse: Another process has the file open.
        StorageUnreadable: It is another file, or damaged.
        sqlite3.Error: The disk fails.
    """
    database = sqlite3.connect(path, timeout=0)
    try:
        _set_up(database, path, form, survives_power_loss)
    except sqlite3.OperationalError as error:
        database.close()
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            raise StorageInUse(path) from None
        raise
    except sqlite3.DatabaseError as error:
        database.close()
        raise StorageUnreadable(path, str(error)) from None
    except StorageUnreadable:
        database.close()
        raise
    return database


def _set_up(
    database: sqlite3.Connection, path: Path, form: Format, survives_power_loss: bool
) -> None:
    # Held until the end: two processes would continue the same state.
    database.execute("PRAGMA locking_mode = EXCLUSIVE")
    (found_id,) = database.execute("PRAGMA application_id").fetchone()
    (version,) = database.execute("PRAGMA user_version").fetchone()
    (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    application_id = int.from_bytes(form.application_id, "big")
    if tables and found_id != application_id:
        raise StorageUnreadable(path, "another program made it")
    if tables and version != form.version:
        detail = f"it has version {version}, this program reads {form.version}"
        raise StorageUnreadable(path, detail)
    database.execute("PRAGMA journal_mode = WAL")
    mode = "FULL" if survives_power_loss else "NORMAL"
    database.execute(f"PRAGMA synchronous = {mode}")
    if not tables:
        database.executescript(
            f"BEGIN; PRAGMA application_id = {application_id};"
            f"PRAGMA user_version = {form.version}; {form.tables} COMMIT;"
        )
