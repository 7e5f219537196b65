"""All states of two nodes and one message, in every order of losses.

The network may lose, delay, duplicate and reorder payloads: in each epoch, any subset
of those under way arrives, any is lost, and at most `MOST` stay under way. Either node
may restart from what it has stored. States that differ only in the number of the epoch
are one.
"""

from __future__ import annotations

from collections import deque
from functools import cache
from itertools import permutations, product
from typing import NamedTuple

import pytest

from sds_core.mvds.backoff import exponential
from sds_core.mvds.changes import Changes
from sds_core.mvds.node import Node
from sds_core.mvds.options import Mode, Options
from sds_core.mvds.payload import Payload
from sds_core.mvds.records import Record, RecordType
from tests.support.mvds.network import GROUP

MOST = 2
"""Payloads under way from one epoch to the next."""

WAITS = 2
"""The back-off waits 1, 2, 1, 2, ... epochs: counts that differ by 2 are one."""

Envelope = tuple[bytes, Payload]
"""Sender and payload."""


class Local(NamedTuple):
    """State of one node, its epoch taken away.

    Attributes:
        records: Type, count modulo `WAITS`, and epochs until the next sending.
        acks: Whether it owes an acknowledgement.
        holds: Whether it holds the message.
    """

    records: tuple[tuple[RecordType, int, int], ...]
    acks: bool
    holds: bool


class World(NamedTuple):
    """State of both nodes and the network."""

    alice: Local
    bob: Local
    under_way: tuple[Envelope, ...]


PEERS = {b"alice": b"bob", b"bob": b"alice"}


class Model:
    """Runs the real nodes from one state to the next.

    Args:
        mode: Mode in which `alice` sends the message.
    """

    def __init__(self, mode: Mode) -> None:
        self.options = Options(mode=mode, backoff=exponential(1, 2))
        alice = Node(b"alice", self.options)
        alice.add_group(GROUP, [b"bob"])
        self.message_id = alice.append(GROUP, b"hello", 1)
        self.stored = alice.snapshot().messages
        self.start = World(self.local(alice), Local((), False, False), ())

    def local(self, node: Node) -> Local:
        """The state of a node."""
        records = tuple(
            (one.type, one.send_count % WAITS, one.send_epoch - node.epoch)
            for one in node.records
        )
        holds = node.message(self.message_id) is not None
        return Local(records, bool(node.pending_acks), holds)

    def node(self, peer: bytes, local: Local) -> Node:
        """A real node in a state."""
        to, one = PEERS[peer], self.message_id
        listed = [Record(to, one, *about) for about in local.records]
        assert len(listed) <= 1
        records = {(record.peer, one): record for record in listed}
        messages = self.stored if local.holds else {}
        state = Changes(0, {GROUP: (PEERS[peer],)}, records, messages)
        node = Node.restore(peer, state, self.options)
        if local.acks:
            # An offer of a held message is answered by nothing but an acknowledgement.
            kept = node.records
            node.receive(PEERS[peer], Payload(offers=(self.message_id,)))
            assert kept == node.records
        return node

    def next_worlds(self, world: World) -> set[World]:
        """All states one epoch later."""
        nodes = {
            b"alice": self.node(b"alice", world.alice),
            b"bob": self.node(b"bob", world.bob),
        }
        under_way = list(world.under_way)
        for peer, node in nodes.items():
            payloads = node.tick().payloads
            assert payloads.keys() <= {PEERS[peer]}
            under_way += [(peer, payload) for payload in payloads.values()]
        found = set()
        # Lost, late, arriving, or arriving and late again.
        for fates in product(("lost", "late", "now", "both"), repeat=len(under_way)):
            staying = tuple(
                one
                for one, fate in zip(under_way, fates, strict=True)
                if fate in ("late", "both")
            )
            if len(staying) > MOST:
                continue
            arriving = [
                one
                for one, fate in zip(under_way, fates, strict=True)
                if fate in ("now", "both")
            ]
            for order in permutations(arriving):
                copies = {peer: self.copy(peer, node) for peer, node in nodes.items()}
                for sender, payload in order:
                    copies[PEERS[sender]].receive(sender, payload)
                alice = self.local(copies[b"alice"])
                bob = self.local(copies[b"bob"])
                later = tuple(sorted(staying, key=repr))
                # A node that restarts forgets what it has to acknowledge.
                found |= {
                    World(alice._replace(acks=a), bob._replace(acks=b), later)
                    for a, b in product({alice.acks, False}, {bob.acks, False})
                }
        return found

    def copy(self, peer: bytes, node: Node) -> Node:
        """A node in the same state, which has ticked."""
        return self.node(peer, self.local(node))


@cache
def explored(mode: Mode) -> dict[World, set[World]]:
    """All reachable states, breadth first, and those that follow each."""
    model = Model(mode)
    following: dict[World, set[World]] = {}
    queue = deque([model.start])
    seen = {model.start}
    while queue:
        world = queue.popleft()
        following[world] = model.next_worlds(world)
        for one in following[world] - seen:
            seen.add(one)
            queue.append(one)
    return following


@pytest.mark.rule("mvds-state-2")
@pytest.mark.parametrize("mode", Mode)
def test_delivery_and_an_empty_state_stay_possible_whatever_was_lost(
    mode: Mode,
) -> None:
    """From every reachable state; and no state has a record of type ACK."""
    following = explored(mode)
    done = {
        world
        for world in following
        if world.bob.holds and not (world.alice.records or world.bob.records)
    }
    assert done
    before: dict[World, set[World]] = {world: set() for world in following}
    for world, later in following.items():
        for one in later:
            before[one].add(world)
    can_end = set(done)
    queue = deque(done)
    while queue:
        for one in before[queue.popleft()] - can_end:
            can_end.add(one)
            queue.append(one)
    assert can_end == following.keys()
    types = {
        kind
        for world in following
        for local in (world.alice, world.bob)
        for kind, _, _ in local.records
    }
    expected = {RecordType.MESSAGE} if mode is Mode.BATCH else set(RecordType)
    assert types == expected
    for world in following:
        assert len(world.alice.records) <= 1
        assert len(world.bob.records) <= 1
        # What was delivered stays delivered.
        if world.bob.holds:
            assert all(one.bob.holds for one in following[world])


@pytest.mark.parametrize("mode", Mode)
def test_message_that_was_acknowledged_was_delivered(mode: Mode) -> None:
    """In no state is the sender done while the receiver lacks the message."""
    for world in explored(mode):
        assert world.alice.records or world.bob.holds
