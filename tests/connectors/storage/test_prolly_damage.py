"""A tree in an SQLite file that is damaged, or whose changes fail half-way."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from connectors.storage.database import StorageError, StorageUnreadable
from connectors.storage.prolly import SqliteTree
from sds_core.prolly.item import Item
from sds_core.prolly.tree import ProllyTree

ITEMS = [Item(10 * n, n.to_bytes(32, "little")) for n in range(1, 1_000)]
VALUE = b"a record of ours"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a file with a tree, values and a note."""
    path = tmp_path / "tree.sqlite"
    with SqliteTree(path, 16) as stored:
        stored.store(
            ProllyTree(ITEMS), dict.fromkeys(ITEMS[:20], VALUE), {"offset": b"7"}
        )
    return path


def run(path: Path, statement: str) -> list[tuple[object, ...]]:
    """Run a statement on a closed file."""
    with closing(sqlite3.connect(path)) as database, database:
        return database.execute(statement).fetchall()


@pytest.mark.parametrize("seed", range(3))
def test_a_changed_bit_never_makes_another_tree(path: Path, seed: int) -> None:
    """The file is refused, or the bit is one that holds nothing of the tree."""
    whole = path.read_bytes()
    chance = random.Random(seed)
    refused = 0
    for _ in range(120):
        damaged = bytearray(whole)
        damaged[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        try:
            with SqliteTree(path, 16) as stored:
                assert stored.tree == ProllyTree(ITEMS)
        except StorageError:
            refused += 1
        for left in path.parent.glob("tree.sqlite-*"):
            left.unlink()
    assert refused > 20


@pytest.mark.parametrize("length", [0, 99, 100, 4_096, 20_000])
def test_a_file_that_is_cut_off_is_no_other_tree(path: Path, length: int) -> None:
    """An empty file is a new one; every other is refused."""
    path.write_bytes(path.read_bytes()[:length])
    if not length:
        with SqliteTree(path, 16) as stored:
            assert len(stored.tree) == 0
        return
    with pytest.raises(StorageError):
        SqliteTree(path, 16)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE bucket SET leaves = 7 WHERE key = (SELECT min(key) FROM bucket)",
        "UPDATE bucket SET merkle = 7 WHERE key = (SELECT min(key) FROM bucket)",
        "UPDATE bucket SET leaves = 'text'",
        "UPDATE tree SET root = 'text'",
        "UPDATE tree SET root = zeroblob(32)",
        "DELETE FROM tree",
        "DELETE FROM bucket",
        "DELETE FROM bucket WHERE key = (SELECT key FROM bucket LIMIT 1 OFFSET 9)",
    ],
)
def test_rows_that_were_changed_are_found(path: Path, statement: str) -> None:
    """Also whole buckets that are missing, by the root."""
    run(path, statement)
    with pytest.raises(StorageUnreadable):
        SqliteTree(path, 16)


def test_values_that_are_no_bytes_are_refused(path: Path) -> None:
    """A number would become as many zeros."""
    run(path, "UPDATE value SET value = 99999999999999")
    run(path, "UPDATE note SET value = 99999999999999")
    with SqliteTree(path, 16) as stored:
        with pytest.raises(StorageUnreadable, match="a value has the wrong type"):
            stored.values([ITEMS[0].message_hash])
        with pytest.raises(StorageUnreadable, match="a value has the wrong type"):
            stored.note("offset")


@pytest.mark.parametrize("table", ["value", "bucket"])
def test_a_prune_that_fails_removes_nothing(path: Path, table: str) -> None:
    """Neither messages nor values."""
    run(
        path,
        f"CREATE TRIGGER full BEFORE DELETE ON {table} "
        "BEGIN SELECT RAISE(ABORT, 'the disk is full'); END",
    )
    with SqliteTree(path, 16) as stored:
        with pytest.raises(StorageError, match="the disk is full"):
            stored.prune(150)
        assert stored.tree == ProllyTree(ITEMS)
    run(path, "DROP TRIGGER full")
    with SqliteTree(path, 16) as stored:
        assert stored.tree == ProllyTree(ITEMS)
        hashes = [one.message_hash for one in ITEMS]
        assert len(stored.values(hashes)) == 20
        stored.prune(150)
        assert stored.tree == ProllyTree(ITEMS[14:])
        assert len(stored.values(hashes)) == 6


def test_a_change_that_fails_can_be_stored_again(path: Path) -> None:
    """What is in memory stays that of the file."""
    run(
        path,
        "CREATE TRIGGER full BEFORE INSERT ON note "
        "BEGIN SELECT RAISE(ABORT, 'the disk is full'); END",
    )
    later = ProllyTree(ITEMS[3:])
    with SqliteTree(path, 16) as stored:
        with pytest.raises(StorageError, match="the disk is full"):
            stored.store(later, {ITEMS[5]: b"other"}, {"offset": b"8"})
        assert stored.values([ITEMS[5].message_hash]) == {ITEMS[5].message_hash: VALUE}
        stored.store(later)
    with SqliteTree(path, 16) as stored:
        assert stored.tree == later
        assert stored.note("offset") == b"7"


def test_only_buckets_that_a_change_touches_are_written(path: Path) -> None:
    """Counted in the file itself."""
    run(path, "CREATE TABLE written (key BLOB)")
    run(
        path,
        "CREATE TRIGGER note_it AFTER INSERT ON bucket "
        "BEGIN INSERT INTO written VALUES (new.key); END",
    )
    ((number,),) = run(path, "SELECT count(*) FROM bucket")
    assert isinstance(number, int)
    assert number > 40
    with SqliteTree(path, 16) as stored:
        stored.store(stored.tree.changed(insert=[Item(5_001, b"\1" * 32)]))
        stored.store(stored.tree.changed(delete=[ITEMS[700]]))
        stored.store(stored.tree)
    ((written,),) = run(path, "SELECT count(*) FROM written")
    assert isinstance(written, int)
    assert 2 <= written <= 4
