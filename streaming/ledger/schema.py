"""Tables of the ledger, and the data that is needed to undo a batch.

The columns `name` and `prefix` have the name of a view or group and its kind's prefix.
"""

from __future__ import annotations

import sqlite3

import msgspec

from sds_core.observer.blob import check_version

VERSION = 1
"""Version of the tables, which is stored in the ledger as ``user_version``.

The version is 0 in a new ledger, until older files, if any exist, are imported.
"""

_TYPE_BYTES = 5

OUTBOX_TYPE = f"substr(finding, 3, {_TYPE_BYTES})"
"""SQL expression for the type of a row of the outbox; see `outbox_type`."""


def outbox_type(finding: type[msgspec.Struct]) -> bytes:
    """Return the value of `OUTBOX_TYPE` for the rows with a type of finding.

    It is the beginning of the type's tag. A finding is encoded as an array of at most
    15 values, so one byte for the array and one for the tag's length precede the tag.
    """
    return str(finding.__struct_config__.tag).encode()[:_TYPE_BYTES]


SCHEMA = f"""
CREATE TABLE IF NOT EXISTS batch (number INTEGER NOT NULL, position TEXT NOT NULL);

CREATE TABLE IF NOT EXISTS incidents (
    prefix TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    message_id TEXT NOT NULL,
    found_ms INTEGER NOT NULL,
    standing INTEGER NOT NULL,
    tap_hole INTEGER NOT NULL,
    incident BLOB NOT NULL,
    PRIMARY KEY (prefix, name, kind, message_id)
);
CREATE INDEX IF NOT EXISTS incidents_by_time ON incidents (prefix, found_ms);
CREATE TABLE IF NOT EXISTS forgotten (
    prefix TEXT PRIMARY KEY,
    before_ms INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS outbox (
    told INTEGER PRIMARY KEY AUTOINCREMENT,
    prefix TEXT NOT NULL,
    name TEXT NOT NULL,
    finding BLOB NOT NULL,
    tap_hole INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS outbox_by_type ON outbox (prefix, {OUTBOX_TYPE}, told);
DROP INDEX IF EXISTS outbox_by_kind;
CREATE TABLE IF NOT EXISTS delivered (
    prefix TEXT NOT NULL,
    destination TEXT NOT NULL,
    told INTEGER NOT NULL,
    PRIMARY KEY (prefix, destination)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS verdicts (
    prefix TEXT NOT NULL,
    name TEXT NOT NULL,
    minute_ms INTEGER NOT NULL,
    verdict TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (prefix, name, minute_ms)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS observed (
    prefix TEXT PRIMARY KEY,
    observed_ms INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS minutes (
    prefix TEXT NOT NULL,
    end_ms INTEGER NOT NULL,
    name TEXT NOT NULL,
    figures BLOB NOT NULL,
    PRIMARY KEY (prefix, end_ms, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS baseline (
    prefix TEXT NOT NULL,
    name TEXT NOT NULL,
    end_ms INTEGER NOT NULL,
    figures BLOB NOT NULL,
    PRIMARY KEY (prefix, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fields (
    prefix TEXT PRIMARY KEY,
    names TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS acknowledgements (
    prefix TEXT NOT NULL,
    name TEXT NOT NULL,
    message_id TEXT NOT NULL,
    t0_ms INTEGER NOT NULL,
    latency_ms INTEGER NOT NULL,
    PRIMARY KEY (prefix, name, message_id, t0_ms)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS views (key TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS requests (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL,
    digest BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS remainders (
    prefix TEXT PRIMARY KEY,
    views INTEGER NOT NULL,
    totals BLOB NOT NULL,
    other BLOB
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS parts (
    prefix TEXT NOT NULL,
    name TEXT NOT NULL,
    view TEXT NOT NULL,
    minute_ms INTEGER NOT NULL,
    part BLOB NOT NULL,
    PRIMARY KEY (prefix, name, view)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS labels (
    prefix TEXT PRIMARY KEY,
    names TEXT NOT NULL
) WITHOUT ROWID;
"""

_UNDONE = (
    "incidents",
    "outbox",
    "minutes",
    "baseline",
    "acknowledgements",
    "remainders",
    "parts",
)
"""Tables in which the changes of a batch can be undone.

Batches also write the tables ``labels`` and ``views``, which need no undo. A label that
a batch gave to a name stays valid, and a repeated batch may set names of views again.
"""


def prepare(connection: sqlite3.Connection) -> None:
    """Create missing tables, and a table ``undo_T`` for each table T in `_UNDONE`.

    For the newest batch, ``undo_T`` has the earlier content of the rows of T that the
    batch has changed or deleted, and the keys of the rows that the batch has added.
    """
    connection.executescript(SCHEMA)
    for table in _UNDONE:
        columns, key = _columns(connection, table)
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS undo_{table} ({columns}, existed INTEGER, "
            f"PRIMARY KEY ({key})) WITHOUT ROWID"
        )


def watch(connection: sqlite3.Connection) -> None:
    """Create temporary triggers that record the changes of a connection in ``undo_T``.

    Statements that change these tables must not use OR REPLACE, because no trigger
    would record the replaced row.
    """
    for table in _UNDONE:
        columns, key = _columns(connection, table)
        old, new = (
            ", ".join(f"{row}.{name}" for name in names.split(", "))
            for row, names in (("old", columns), ("new", key))
        )
        for event, note in (
            ("AFTER INSERT", f"({key}, existed) VALUES ({new}, FALSE)"),
            ("BEFORE UPDATE", f"({columns}, existed) VALUES ({old}, TRUE)"),
            ("BEFORE DELETE", f"({columns}, existed) VALUES ({old}, TRUE)"),
        ):
            connection.execute(
                f"CREATE TEMP TRIGGER {table}_{event[-6:]} {event} ON main.{table} "
                f"BEGIN INSERT INTO undo_{table} {note} ON CONFLICT DO NOTHING; END"
            )


def undo(connection: sqlite3.Connection) -> None:
    """Restore the rows that the newest batch changed, and remove rows that it added."""
    for table in _UNDONE:
        columns, key = _columns(connection, table)
        connection.execute(
            f"DELETE FROM {table} WHERE ({key}) IN "  # noqa: S608 - ours
            f"(SELECT {key} FROM undo_{table} WHERE NOT existed)"
        )
        connection.execute(
            f"INSERT OR REPLACE INTO {table} ({columns}) "  # noqa: S608 - ours
            f"SELECT {columns} FROM undo_{table} WHERE existed"
        )
    keep(connection)


def stored_version(connection: sqlite3.Connection) -> int:
    """Return the version of a ledger; 0 for a new ledger.

    Raises:
        sds_core.observer.blob.UnknownBlobVersion: A newer release wrote the ledger.
    """
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    check_version(version, VERSION)
    return version


def has_forgotten(connection: sqlite3.Connection) -> bool:
    """Whether the newest batch has changed the sums over forgotten views."""
    return connection.execute("SELECT 1 FROM undo_remainders").fetchone() is not None


def keep(connection: sqlite3.Connection) -> None:
    """Keep the newest batch: drop the data that could undo it."""
    for table in _UNDONE:
        connection.execute(f"DELETE FROM undo_{table}")  # noqa: S608 - ours


def _columns(connection: sqlite3.Connection, table: str) -> tuple[str, str]:
    rows = connection.execute(f"PRAGMA table_info({table})").fetchall()
    return ", ".join(row[1] for row in rows), ", ".join(
        row[1] for row in rows if row[5]
    )
