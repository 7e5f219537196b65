"""A node of MVDS in an SQLite file: it continues after any end of the process."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from connectors.storage.database import StorageError, StorageInUse, StorageUnreadable
from connectors.storage.mvds import SqliteNodeStorage
from sds_core.mvds.changes import Changes, Storage, StoredMessage
from sds_core.mvds.events import Delivered
from sds_core.mvds.node import Node
from sds_core.mvds.options import Mode, Options, Resolution
from sds_core.mvds.payload import (
    Message,
    Metadata,
    Payload,
    decode,
    encode,
    message_id,
)
from sds_core.mvds.records import RecordType
from tests.support.mvds.network import GROUP, Network, Weather, group_of, pair


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a file that does not exist yet."""
    return tmp_path / "node.sqlite"


def stored(path: Path) -> Changes | None:
    """What a file has."""
    with SqliteNodeStorage(path) as storage:
        return storage.load()


def store_changes(node: Node, storage: Storage) -> None:
    """Store what changed in a node."""
    changes = node.take_changes()
    if changes is not None:
        storage.store(changes)


class Restarting:
    """A node that is stored after each call, and can be killed at any moment.

    Args:
        node: The node.
        storage: Its storage.
        random: Decides when it is killed.
        kills: Probability of a kill at each moment.
    """

    def __init__(
        self, node: Node, storage: SqliteNodeStorage, random: Random, kills: float
    ) -> None:
        self.node = node
        self.storage = storage
        self.random = random
        self.kills = kills
        self.delivered: list[bytes] = []
        self.restarts = 0
        node.record_changes()
        storage.store(node.snapshot())

    def tick(self) -> dict[bytes, Payload]:
        """Its payloads; none if it is killed before or after it stored the epoch."""
        if self.is_killed():
            return {}
        step = self.node.tick()
        if self.is_killed():
            return {}
        self.save()
        return {} if self.is_killed() else step.payloads

    def receive(self, sender: bytes, value: bytes) -> None:
        """Take a payload; it may be killed before or after it stored that."""
        events = self.node.receive(sender, decode(value))
        if self.is_killed():
            return
        self.save()
        # The application stores its own work in the same moment.
        self.delivered += [
            one.message_id for one in events if isinstance(one, Delivered)
        ]
        self.is_killed()

    def save(self) -> None:
        """Store what changed."""
        store_changes(self.node, self.storage)

    def is_killed(self) -> bool:
        """Whether it is killed now; it is then restored from what is stored."""
        if self.random.random() >= self.kills:
            return False
        state = self.storage.load()
        assert state is not None
        self.node = Node.restore(self.node.peer_id, state, self.node.options)
        self.node.record_changes()
        self.restarts += 1
        return True


class TestRestart:
    @pytest.mark.parametrize("mode", Mode)
    @pytest.mark.parametrize("seed", range(4))
    def test_all_messages_are_delivered_once_whenever_nodes_are_killed(
        self, mode: Mode, seed: int, tmp_path: Path
    ) -> None:
        """Their ids stay, epochs never fall, and nothing is left to send."""
        random = Random(seed)
        options = Options(mode=mode, write_parents=True, resolution=Resolution.EVENTUAL)
        peers = {}
        for node in group_of([b"alice", b"bob", b"carol"], lambda _: options):
            storage = SqliteNodeStorage(
                tmp_path / node.peer_id.decode(), survives_power_loss=False
            )
            peers[node.peer_id] = Restarting(node, storage, random, 0.05)
        sent: dict[bytes, bytes] = {}
        epochs = dict.fromkeys(peers, 0)
        for epoch in range(2_000):
            if epoch < 30 and epoch % 3 == 0:
                author = random.choice(list(peers.values()))
                one = author.node.append(GROUP, b"%d" % epoch, epoch)
                author.save()
                sent[one] = author.node.peer_id
            under_way = [
                (peer, receiver, encode(payload))
                for peer, player in peers.items()
                for receiver, payload in player.tick().items()
                if random.random() < 0.7
            ]
            for sender, receiver, value in under_way:
                peers[receiver].receive(sender, value)
            for peer, player in peers.items():
                assert player.node.epoch >= epochs[peer]
                epochs[peer] = player.node.epoch
            if epoch > 30 and not any(one.node.records for one in peers.values()):
                break
        assert not any(one.node.records for one in peers.values())
        for peer, player in peers.items():
            others = [message for message, author in sent.items() if author != peer]
            assert sorted(player.delivered) == sorted(others)
            assert all(player.node.message(message) for message in sent)
            player.storage.close()
        assert sum(one.restarts for one in peers.values()) > 10

    def test_node_continues_after_kill_9(self, path: Path) -> None:
        """Whatever it said that it sent is there, at an epoch that is not earlier."""
        module = "tests.support.mvds.stored_speaker"
        last = {"epoch": 0, "sent": []}
        for lines in (1, 7, 20):
            program = subprocess.Popen(
                [sys.executable, "-m", module, str(path)],
                stdout=subprocess.PIPE,
                text=True,
            )
            assert program.stdout is not None
            said = [program.stdout.readline() for _ in range(lines)]
            program.kill()
            said += program.stdout.readlines()
            program.stdout.close()
            program.wait()
            found = [json.loads(line) for line in said if line.endswith("\n")]
            assert found[0]["epoch"] > last["epoch"]
            last = found[-1]
            state = stored(path)
            assert state is not None
            assert state.epoch >= last["epoch"]
            node = Node.restore(b"alice", state)
            assert all(node.message(bytes.fromhex(one)) for one in last["sent"])
            assert len(node.records) >= len(last["sent"])

    def test_interactive_mode_works_from_the_file(self, path: Path) -> None:
        """The OFFER's row becomes the row of the MESSAGE."""
        alice, _ = pair()
        sent = alice.append(GROUP, b"hello", 1)
        with SqliteNodeStorage(path) as storage:
            alice.record_changes()
            storage.store(alice.snapshot())
            alice.tick()
            alice.receive(b"bob", Payload(requests=(sent,)))
            changes = alice.take_changes()
            assert changes is not None
            storage.store(changes)
        state = stored(path)
        assert state is not None
        restored = Node.restore(b"alice", state)
        assert [record.type for record in restored.records] == [RecordType.MESSAGE]
        assert restored.tick().payloads == {
            b"bob": Payload(messages=(Message(GROUP, 1, b"hello"),))
        }


class TestContent:
    def test_stored_state_is_that_of_the_node(self, path: Path) -> None:
        """After every change, with groups, records, and messages in their order."""
        options = Options(
            max_messages=3,
            max_known_ids=6,
            max_sends=4,
            write_parents=True,
            resolution=Resolution.CONSISTENT,
        )
        nodes = group_of([b"alice", b"bob", b"carol"], lambda _: options)
        alice = nodes[0]
        network = Network(nodes, Weather(loss=0.4), seed=5)
        with SqliteNodeStorage(path, survives_power_loss=False) as storage:
            alice.record_changes()
            storage.store(alice.snapshot())
            for number in range(30):
                nodes[number % 3].append(GROUP, b"%d" % number, number)
                network.run(1)
                if number == 15:
                    alice.remove_peer(GROUP, b"carol")
                changes = alice.take_changes()
                assert changes is not None
                storage.store(changes)
                found, state = storage.load(), alice.snapshot()
                assert found == state
                assert found is not None
                assert list(found.messages) == list(state.messages)

    def test_all_values_of_a_message_are_kept(self, path: Path) -> None:
        """A negative timestamp, an empty body, parents."""
        alice, _ = pair()
        messages = (
            Message(GROUP, -(2**63), b""),
            Message(GROUP, 0, b"x", Metadata((b"p" * 32,))),
            Message(GROUP, 1, b"y", Metadata()),
        )
        alice.receive(b"bob", Payload(messages=messages))
        with SqliteNodeStorage(path) as storage:
            storage.store(alice.snapshot())
        assert stored(path) == alice.snapshot()

    def test_own_message_that_was_forgotten_comes_back_from_a_peer(
        self, path: Path
    ) -> None:
        """The peer is its sender, also if its id was forgotten in the same call."""
        options = Options(
            max_messages=1, max_known_ids=2, resolution=Resolution.CONSISTENT
        )
        with SqliteNodeStorage(path) as storage:
            node = Node(b"a", options)
            node.record_changes()
            node.add_group(GROUP, [b"b"])
            for timestamp in (1, 2):
                node.append(GROUP, b"own", timestamp)
                node.tick()
                store_changes(node, storage)
            back = Message(GROUP, 1, b"own", Metadata((bytes(32),)))
            node.receive(b"b", Payload(messages=(Message(GROUP, 3, b"new"), back)))
            store_changes(node, storage)
        state = stored(path)
        assert state is not None
        assert state.messages == node.snapshot().messages
        assert state.messages[message_id(back)] == StoredMessage(
            GROUP, back, b"b", is_delivered=False
        )

    def test_new_file_has_no_state(self, path: Path) -> None:
        """The application makes a new node then."""
        assert stored(path) is None

    def test_group_that_was_removed_is_gone(self, path: Path) -> None:
        """With its peers."""
        with SqliteNodeStorage(path) as storage:
            storage.store(Changes(1, {GROUP: (b"bob",), b"h": ()}))
            storage.store(Changes(2, {GROUP: None}))
            assert storage.load() == Changes(2, {b"h": ()})


class TestFile:
    def test_file_is_for_one_process(self, path: Path) -> None:
        """Two nodes with one state would contradict each other."""
        with SqliteNodeStorage(path), pytest.raises(StorageInUse):
            SqliteNodeStorage(path)

    def test_damaged_value_is_named(self, path: Path) -> None:
        """It is not read as something else."""
        alice, _ = pair()
        alice.append(GROUP, b"hello", 1)
        with SqliteNodeStorage(path) as storage:
            storage.store(alice.snapshot())
        database = sqlite3.connect(path)
        with database:
            database.execute("UPDATE record SET type = 'ack'")
        database.close()
        with pytest.raises(StorageUnreadable, match="ack"):
            stored(path)

    def test_other_file_is_refused(self, path: Path) -> None:
        """It is left as it is."""
        path.write_bytes(b"something else" * 100)
        with pytest.raises(StorageUnreadable):
            SqliteNodeStorage(path)

    def test_changes_are_stored_together_or_not_at_all(self, path: Path) -> None:
        """Whatever the disk refuses."""
        alice, _ = pair()
        with SqliteNodeStorage(path) as storage:
            storage.store(alice.snapshot())
            before = storage.load()
            broken = Changes(9, {GROUP: (b"bob", b"bob")})
            with pytest.raises(StorageError):
                storage.store(broken)
            assert storage.load() == before
