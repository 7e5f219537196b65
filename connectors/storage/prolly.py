"""A Prolly tree in an SQLite file, with a value for each message.

The file contains the buckets of the tree's lowest level. A change of the tree rewrites
only the changed buckets. When the file is opened, the higher levels are built from the
lowest level.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from connectors.storage.database import (
    Format,
    SqliteFile,
    StorageError,
    StorageUnreadable,
)
from sds_core.prolly.difference import unequal_on
from sds_core.prolly.item import Item, first_key_at, pack, unpack
from sds_core.prolly.node import keys_below
from sds_core.prolly.stored import StoredBucket, changed_buckets, tree_of
from sds_core.prolly.tree import ProllyTree

_FORMAT: Final = Format(
    b"PROL",
    1,
    """
CREATE TABLE tree (
    only_one INTEGER PRIMARY KEY CHECK (only_one = 0),
    fan_out INTEGER NOT NULL,
    root BLOB NOT NULL
);
CREATE TABLE bucket (
    key BLOB PRIMARY KEY,
    merkle BLOB NOT NULL,
    leaves BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE value (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE INDEX value_by_hash ON value (substr(key, 9));
CREATE TABLE note (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
""",
)


class OtherFanOutStored(StorageUnreadable):
    """The fan-out of the stored tree is not the expected fan-out."""

    def __init__(self, path: Path, stored: int, expected: int) -> None:
        super().__init__(path, f"its tree has the fan-out {stored}, not {expected}")


class SqliteTree(SqliteFile):
    """A tree in a file; for other arguments and errors, see `SqliteFile`.

    Raises:
        OtherFanOutStored: The stored tree has a fan-out other than `fan_out`.

    Attributes:
        tree: The tree that is stored on disk.
    """

    def __init__(
        self, path: Path, fan_out: int, *, survives_power_loss: bool = False
    ) -> None:
        super().__init__(path, _FORMAT, survives_power_loss=survives_power_loss)
        try:
            self.tree = self._load(fan_out)
        except BaseException:
            self.close()
            raise

    def store(
        self,
        tree: ProllyTree,
        values: Mapping[Item, bytes] | None = None,
        notes: Mapping[str, bytes] | None = None,
    ) -> None:
        """Replace the stored tree by a tree that was derived from it, atomically.

        The values of messages that the new tree lacks are removed. `values` has the
        values of messages that are new in the tree. `notes` has further values by name;
        they are stored in the same transaction as the tree.
        """
        with self._writing() as database:
            changed, _ = unequal_on(1, self.tree, tree)
            keys = (key for bucket in changed for key in keys_below(bucket))
            database.executemany(
                "DELETE FROM value WHERE key = ?",
                [(key,) for key in keys if unpack(key) not in tree],
            )
            self._write_tree(tree)
            database.executemany(
                "INSERT OR REPLACE INTO value VALUES (?, ?)",
                [(pack(item), value) for item, value in (values or {}).items()],
            )
            database.executemany(
                "INSERT OR REPLACE INTO note VALUES (?, ?)", list((notes or {}).items())
            )
        self.tree = tree

    def prune(self, start_ns: int) -> None:
        """Remove messages before `start_ns`, Unix ns, with their values, atomically."""
        first = next(iter(self.tree), None)
        if first is None or first.timestamp_ns >= start_ns:
            return
        last = self.tree.last()
        assert last is not None  # noqa: S101 - it has a first one
        tree = self.tree.between(start_ns, last.timestamp_ns + 1)
        with self._writing() as database:
            self._write_tree(tree)
            database.execute(
                "DELETE FROM value WHERE key < ?", (first_key_at(start_ns),)
            )
        self.tree = tree

    def values(self, message_hashes: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the stored values by message hash, without hashes that have none."""
        query = "SELECT value FROM value WHERE substr(key, 9) = ?"
        values = {key: self._bytes(query, key) for key in message_hashes}
        return {key: value for key, value in values.items() if value is not None}

    def note(self, name: str) -> bytes | None:
        """Return the note `name`; None if this note was never stored."""
        return self._bytes("SELECT value FROM note WHERE name = ?", name)

    def _bytes(self, query: str, key: bytes | str) -> bytes | None:
        row = self._row(tuple[bytes], query, key)
        return None if row is None else row[0]

    def _write_tree(self, tree: ProllyTree) -> None:
        changes = changed_buckets(self.tree, tree)
        database = self._database
        database.execute("UPDATE tree SET root = ?", (tree.root.merkle,))
        database.executemany(
            "DELETE FROM bucket WHERE key = ?", [(key,) for key in changes.removed]
        )
        database.executemany(
            "INSERT OR REPLACE INTO bucket VALUES (?, ?, ?)", changes.added
        )

    def _load(self, fan_out: int) -> ProllyTree:
        try:
            with self._database:
                self._database.execute(
                    "INSERT OR IGNORE INTO tree VALUES (0, ?, ?)",
                    (fan_out, ProllyTree().root.merkle),
                )
            stored, root = self._database.execute(
                "SELECT fan_out, root FROM tree"
            ).fetchone()
            if stored != fan_out:
                raise OtherFanOutStored(self.path, stored, fan_out)
            rows = self._database.execute("SELECT * FROM bucket ORDER BY key")
            tree = tree_of((StoredBucket(*row) for row in rows), fan_out)
        except StorageError:
            raise
        except (sqlite3.DatabaseError, ValueError, TypeError) as error:
            # In a damaged file, a blob may be a number, which raises a TypeError.
            raise StorageUnreadable(self.path, str(error)) from error
        if tree.root.merkle != root:
            raise StorageUnreadable(
                self.path, "the stored messages do not match the stored root hash"
            )
        return tree
