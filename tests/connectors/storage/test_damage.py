"""Files whose damage SQLite does not report, or reports in text that is not UTF-8."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from connectors.storage.database import StorageUnreadable
from connectors.storage.mvds import SqliteNodeStorage
from connectors.storage.participants import ParticipantStore
from connectors.storage.prolly import SqliteTree
from connectors.storage.reliable_channel import SqliteChannelStorage
from sds_core.mvds.node import Node
from sds_core.prolly.item import Item
from sds_core.prolly.tree import ProllyTree
from tests.support.frames import START_MS
from tests.support.message_channel.stored_speaker import opened

GROUP = bytes(32)


def use_tree(path: Path) -> None:
    """Open a tree."""
    SqliteTree(path, 16).close()


def use_participant(path: Path) -> None:
    """Open a participant, and store a message of it."""
    with ParticipantStore(path) as store:
        alice = opened(store)
        alice.send(b"hi", START_MS)
        store.append(alice)


def use_node(path: Path) -> None:
    """Load a node, and store a message of it."""
    with SqliteNodeStorage(path) as storage:
        stored = storage.load()
        node = Node(b"alice") if stored is None else Node.restore(b"alice", stored)
        node.record_changes()
        node.add_group(GROUP, [b"bob"])
        node.append(GROUP, b"hi", timestamp=5)
        storage.store(node.take_changes())


def use_channel(path: Path) -> None:
    """Load a channel's state and journal, and add an entry."""
    with SqliteChannelStorage(path) as storage:
        stored = storage.load()
        if stored is None:
            storage.replace(b"state")
        else:
            list(stored.entries)
        storage.append(b"entry")


@pytest.mark.parametrize("use", [use_tree, use_participant, use_node, use_channel])
def test_damaged_schema(tmp_path: Path, use: Callable[[Path], None]) -> None:
    """The error of SQLite quotes a byte that is not UTF-8."""
    path = tmp_path / "stored.sqlite"
    use(path)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"TABLE", b"T\xffBLE", 1))
    with pytest.raises(StorageUnreadable, match=r"stored\.sqlite: cannot be read"):
        use(path)


def test_damaged_index(tmp_path: Path) -> None:
    """SQLite finds the damage when it writes; the tree stays as it was."""
    path = tmp_path / "tree.sqlite"
    items = [Item(n, n.to_bytes(32, "little")) for n in range(1, 9)]
    with SqliteTree(path, 16) as stored:
        stored.store(ProllyTree(items))
    path.write_bytes(path.read_bytes().replace(b"substr(", b"subst\xff(", 1))
    with SqliteTree(path, 16) as stored:
        with pytest.raises(StorageUnreadable):
            stored.prune(5)
        assert stored.tree == ProllyTree(items)


@pytest.mark.parametrize(
    ("use", "statement", "said"),
    [
        (use_participant, "UPDATE participant SET snapshot = 5", "wrong type"),
        (use_participant, "UPDATE change SET record = 5", "wrong type"),
        (use_channel, "UPDATE state SET state = 5", "wrong type"),
        (use_channel, "UPDATE journal SET entry = 'text'", "wrong type"),
        (use_node, "DELETE FROM peer_group", "the group of a peer is missing"),
        (use_node, "UPDATE node SET epoch = 'text'", "wrong type"),
        (use_node, "UPDATE peer_group SET group_id = 5", "wrong type"),
        (use_node, "UPDATE peer SET peer = 5", "wrong type"),
        (use_node, "UPDATE record SET send_epoch = 'text'", "wrong type"),
        (use_node, "UPDATE message SET body = 5", "wrong type"),
        (use_node, "UPDATE message SET body = x'6869ff'", "differs from its id"),
        (use_node, "UPDATE message SET message_id = x'00'", "differs from its id"),
        (use_node, "UPDATE message SET is_delivered = 0", "own message waits"),
        (use_node, "UPDATE message SET body = NULL", "message of a record is missing"),
        (use_node, "DELETE FROM message", "message of a record is missing"),
        (use_node, "UPDATE message SET metadata = x'9291c40100c2'", "length >= 32"),
    ],
)
def test_damaged_rows(
    tmp_path: Path, use: Callable[[Path], None], statement: str, said: str
) -> None:
    """Values of another type and missing rows are refused."""
    path = tmp_path / "stored.sqlite"
    use(path)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement)
    with pytest.raises(StorageUnreadable, match=said):
        use(path)
