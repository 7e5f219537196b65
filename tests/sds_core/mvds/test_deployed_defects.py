"""Defects of deployed nodes that this one does not share.

Each test names where the defect is; both Go implementations are meant by "both lines".
"""

from __future__ import annotations

import pytest

from sds_core.mvds.backoff import linear
from sds_core.mvds.events import Acknowledged, Delivered, Duplicate
from sds_core.mvds.options import Mode, Options, Resolution
from sds_core.mvds.payload import Message, Metadata, Payload, message_id
from sds_core.mvds.records import RecordType
from tests.support.mvds.network import GROUP, Network, Weather, group_of, pair

HELLO = Message(GROUP, 1, b"hello")
HELLO_ID = message_id(HELLO)


@pytest.mark.rule("mvds-interactive-3")
def test_request_ends_the_offer() -> None:
    """Both lines, in memory: the OFFER stays and is sent until the ACK."""
    alice, _ = pair(Options(backoff=linear))
    alice.append(GROUP, b"hello", 1)
    alice.tick()
    alice.receive(b"bob", Payload(requests=(HELLO_ID,)))
    sent = [payload for _ in range(30) for payload in alice.tick().payloads.values()]
    assert len(sent) > 3
    assert all(payload == Payload(messages=(HELLO,)) for payload in sent)


def test_restored_node_answers_a_request_of_its_offer() -> None:
    """Both lines, in SQLite: the OFFER's key keeps the MESSAGE from being stored."""
    alice, _ = pair()
    alice.append(GROUP, b"hello", 1)
    alice.tick()
    restored = type(alice).restore(b"alice", alice.snapshot())
    restored.receive(b"bob", Payload(requests=(HELLO_ID,)))
    restored = type(alice).restore(b"alice", restored.snapshot())
    assert restored.tick().payloads == {b"bob": Payload(messages=(HELLO,))}


@pytest.mark.rule("mvds-retransmission-ack")
def test_every_copy_of_a_message_is_acknowledged() -> None:
    """vacp2p/mvds in SQLite: a copy violates the key, so it is never acknowledged."""
    _, bob = pair()
    for copy in range(4):
        (event,) = bob.receive(b"alice", Payload(messages=(HELLO,)))
        assert isinstance(event, Delivered if copy == 0 else Duplicate)
        assert bob.tick().payloads == {b"alice": Payload(acks=(HELLO_ID,))}
        # Once for each copy: nothing is left to be sent.
        assert bob.tick().payloads == {}


def test_acknowledgement_of_an_unknown_message_is_skipped_alone() -> None:
    """Both lines, in SQLite: the rest of the payload's acknowledgements are lost."""
    alice, _ = pair()
    alice.append(GROUP, b"hello", 1)
    payload = Payload(acks=(b"?" * 32, HELLO_ID, HELLO_ID))
    assert alice.receive(b"bob", payload) == [Acknowledged(HELLO_ID, b"bob")]
    assert alice.receive(b"bob", payload) == []


def test_message_without_metadata_is_passed_on() -> None:
    """vacp2p/mvds, interactive: it dereferences the missing metadata and crashes."""
    bob, *_ = group_of([b"bob", b"alice", b"carol"])
    bob.receive(b"alice", Payload(messages=(HELLO,)))
    assert bob.tick().payloads[b"carol"] == Payload(offers=(HELLO_ID,))


def test_ephemeral_message_is_sent_once() -> None:
    """vacp2p/mvds: it is collected for removal, never removed, and sent for ever."""
    alice, _ = pair()
    alice.append(GROUP, b"now", 1, ephemeral=True)
    payloads = [alice.tick().payloads for _ in range(300)]
    (message,) = payloads[0][b"bob"].messages
    assert message == Message(GROUP, 1, b"now", Metadata(ephemeral=True))
    assert not any(payloads[1:])


def test_record_waits_for_its_epoch() -> None:
    """vacp2p/mvds in memory: all records are sent in every epoch."""
    alice, _ = pair(Options(mode=Mode.BATCH, backoff=linear))
    alice.append(GROUP, b"hello", 1)
    assert [bool(alice.tick().payloads) for _ in range(4)] == [True, False, True, False]


def test_retransmission_does_not_slow_down_as_the_epoch_grows() -> None:
    """vacp2p/mvds before its PR 86: the next epoch was added to the last, not set."""
    alice, _ = pair(Options(mode=Mode.BATCH, backoff=linear))
    for _ in range(1_000):
        alice.tick()
    alice.append(GROUP, b"hello", 1)
    epochs = [alice.epoch for _ in range(20) if alice.tick().payloads]
    assert epochs == [1001, 1003, 1007, 1013]


def test_offer_of_a_known_message_is_answered() -> None:
    """Both lines: it is skipped, so the peer repeats the offer for ever."""
    alice, bob, _ = nodes = group_of([b"alice", b"bob", b"carol"])
    network = Network(nodes)
    alice.append(GROUP, b"hello", 1)
    network.run_until_quiet(20)
    assert [node.records for node in nodes] == [()] * 3
    assert bob.receive(b"alice", Payload(offers=(HELLO_ID,))) == []
    assert bob.tick().payloads == {b"alice": Payload(acks=(HELLO_ID,))}


def test_ancestors_of_ancestors_are_waited_for() -> None:
    """Both lines: consistent resolution looks at the parents only."""
    options = Options(resolution=Resolution.CONSISTENT)
    _, bob = pair(options)
    grandparent = Message(GROUP, 1, b"first")
    parent = Message(GROUP, 2, b"second", Metadata((message_id(grandparent),)))
    child = Message(GROUP, 3, b"third", Metadata((message_id(parent),)))
    delivered = [
        event.message.body
        for message in (child, parent, grandparent)
        for event in bob.receive(b"alice", Payload(messages=(message,)))
        if isinstance(event, Delivered)
    ]
    assert delivered == [b"first", b"second", b"third"]


def test_parent_that_is_named_twice_is_waited_for_once() -> None:
    """vacp2p/mvds in memory: the tracker takes a dependency twice."""
    _, bob = pair(Options(resolution=Resolution.CONSISTENT))
    child = Message(GROUP, 2, b"child", Metadata((HELLO_ID, HELLO_ID)))
    for _ in range(2):
        bob.receive(b"alice", Payload(messages=(child,)))
    assert [record.type for record in bob.records] == [RecordType.REQUEST]
    events = bob.receive(b"alice", Payload(messages=(HELLO,)))
    delivered = [one.message.body for one in events if isinstance(one, Delivered)]
    assert delivered == [b"hello", b"child"]


def test_acknowledgements_are_not_repeated_within_a_payload() -> None:
    """status-im/mvds: one is queued for each copy, up to 12 in recorded payloads."""
    _, bob = pair()
    for _ in range(7):
        bob.receive(b"alice", Payload(messages=(HELLO, HELLO)))
    assert bob.tick().payloads == {b"alice": Payload(acks=(HELLO_ID,))}


def test_interactive_and_restored_nodes_deliver_in_spite_of_loss() -> None:
    """Both lines, in SQLite: interactive mode never delivers at all."""
    alice, _ = nodes = pair()
    network = Network(nodes, Weather(loss=0.5), seed=3)
    sent = alice.append(GROUP, b"hello", 1)
    for _ in range(100):
        # Acknowledgements wait for the next epoch and are lost in a restart.
        network.run(3)
        for peer, node in network.nodes.items():
            network.nodes[peer] = type(node).restore(peer, node.snapshot())
    assert network.delivered(b"bob") == [sent]
    assert network.nodes[b"alice"].records == ()
