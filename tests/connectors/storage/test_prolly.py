"""A Prolly tree in an SQLite file."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given

from connectors.storage.database import StorageInUse, StorageUnreadable
from connectors.storage.prolly import OtherFanOutStored, SqliteTree
from sds_core.prolly.item import Item
from sds_core.prolly.stored import (
    DamagedBucket,
    changed_buckets,
    tree_of,
)
from sds_core.prolly.tree import ProllyTree
from tests.support.prolly.strategies import FAN_OUTS, SETS

ITEMS = [Item(10 * n, n.to_bytes(32, "little")) for n in range(1, 2_000)]


def opened(path: Path) -> SqliteTree:
    """The file of a test."""
    return SqliteTree(path / "tree.sqlite", 16)


@pytest.mark.rule("sync-future-store")
def test_a_tree_is_there_again(tmp_path: Path) -> None:
    """With its values and notes; each change is on what was there."""
    with opened(tmp_path) as stored:
        assert len(stored.tree) == 0
        tree = stored.tree.changed(insert=ITEMS[:1_500])
        stored.store(tree, {ITEMS[3]: b"three"}, {"offset": b"1"})
        stored.store(
            tree.changed(insert=ITEMS[1_500:], delete=ITEMS[:2]), notes={"offset": b"2"}
        )
    with opened(tmp_path) as stored:
        assert stored.tree == ProllyTree(ITEMS[2:])
        assert stored.note("offset") == b"2"
        assert stored.note("nothing") is None
        wanted = [ITEMS[3].message_hash, ITEMS[4].message_hash]
        assert stored.values(wanted) == {ITEMS[3].message_hash: b"three"}


def test_a_change_rewrites_the_buckets_that_it_touches(tmp_path: Path) -> None:
    """Of some hundred buckets, two at most."""
    with opened(tmp_path) as stored:
        stored.store(ProllyTree(ITEMS))
        changes = changed_buckets(
            stored.tree, stored.tree.changed(insert=[Item(7_771, b"\1" * 32)])
        )
        assert len(changes.added) <= 2
        assert len(changes.removed) <= 1


def test_old_messages_are_pruned_with_their_values(tmp_path: Path) -> None:
    """From before a time."""
    with opened(tmp_path) as stored:
        stored.store(ProllyTree(ITEMS), dict.fromkeys(ITEMS, b"x"))
        stored.prune(1_000)
        stored.prune(1_000)
    with opened(tmp_path) as stored:
        assert set(stored.tree) == {one for one in ITEMS if one.timestamp_ns >= 1_000}
        hashes = [one.message_hash for one in ITEMS]
        assert len(stored.values(hashes)) == len(stored.tree)
        stored.prune(10**12)
        assert len(stored.tree) == 0


def test_deleted_messages_have_no_values(tmp_path: Path) -> None:
    """A peer that asks for them by their hashes gets nothing."""
    with opened(tmp_path) as stored:
        stored.store(ProllyTree(ITEMS), dict.fromkeys(ITEMS, b"x"))
        stored.store(stored.tree.changed(delete=ITEMS[::2]))
    with opened(tmp_path) as stored:
        found = stored.values([one.message_hash for one in ITEMS])
        assert set(found) == {one.message_hash for one in ITEMS[1::2]}


def test_a_failed_change_changes_nothing(tmp_path: Path) -> None:
    """Neither tree nor notes."""
    with opened(tmp_path) as stored:
        stored.store(ProllyTree(ITEMS[:10]), notes={"offset": b"1"})
        values: dict[Item, bytes] = {ITEMS[0]: None}  # type: ignore[dict-item]
        with pytest.raises(Exception, match="NOT NULL"):
            stored.store(ProllyTree(ITEMS), values, {"offset": b"2"})
        assert stored.tree == ProllyTree(ITEMS[:10])
    with opened(tmp_path) as stored:
        assert stored.tree == ProllyTree(ITEMS[:10])
        assert stored.note("offset") == b"1"


def test_a_tree_of_another_fan_out_is_refused(tmp_path: Path) -> None:
    """With both."""
    with opened(tmp_path) as stored:
        stored.store(ProllyTree(ITEMS))
    with pytest.raises(OtherFanOutStored, match="fan-out 16, not 8"):
        SqliteTree(tmp_path / "tree.sqlite", 8)


def test_one_process_has_the_file(tmp_path: Path) -> None:
    """Another one is refused."""
    with opened(tmp_path), pytest.raises(StorageInUse):
        opened(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE bucket SET merkle = zeroblob(32)",
        "UPDATE bucket SET leaves = zeroblob(80)",
        "UPDATE bucket SET leaves = x'00'",
        "DELETE FROM bucket WHERE key = (SELECT max(key) FROM bucket)",
        "DELETE FROM bucket WHERE key = (SELECT min(key) FROM bucket)",
        "DROP TABLE bucket",
    ],
)
def test_damage_is_found_at_the_start(tmp_path: Path, change: str) -> None:
    """By the hashes."""
    with opened(tmp_path) as stored:
        stored.store(ProllyTree(ITEMS))
    with sqlite3.connect(tmp_path / "tree.sqlite") as database:
        database.execute(change)
    database.close()
    with pytest.raises(StorageUnreadable):
        opened(tmp_path)


def test_another_file_is_refused(tmp_path: Path) -> None:
    """It is not changed."""
    path = tmp_path / "tree.sqlite"
    path.write_bytes(b"something else")
    with pytest.raises(StorageUnreadable):
        opened(tmp_path)
    assert path.read_bytes() == b"something else"


@given(before=SETS, after=SETS, fan_out=FAN_OUTS)
def test_buckets_of_two_trees_differ_as_the_trees_do(
    before: set[Item], after: set[Item], fan_out: int
) -> None:
    """A store that follows the changes holds the second tree."""
    first, second = ProllyTree(before, fan_out), ProllyTree(after, fan_out)
    nothing = ProllyTree(fan_out=fan_out)
    buckets = {one.key: one for one in changed_buckets(nothing, first).added}
    changes = changed_buckets(first, second)
    for key in changes.removed:
        del buckets[key]
    buckets |= {one.key: one for one in changes.added}
    stored = [buckets[key] for key in sorted(buckets)]
    assert tree_of(stored, fan_out) == second


@given(messages=SETS, fan_out=FAN_OUTS)
def test_buckets_out_of_order_are_damage(messages: set[Item], fan_out: int) -> None:
    """They would make another tree."""
    nothing = ProllyTree(fan_out=fan_out)
    buckets = sorted(changed_buckets(nothing, ProllyTree(messages, fan_out)).added)
    if len(buckets) > 1:
        with pytest.raises(DamagedBucket):
            tree_of([*buckets[1:], buckets[0]], fan_out)
