"""How a message travels in either mode."""

from __future__ import annotations

import pytest

from sds_core.mvds.events import Acknowledged, Delivered
from sds_core.mvds.node import Node
from sds_core.mvds.options import Mode, Options
from sds_core.mvds.payload import Message, Payload, message_id
from sds_core.mvds.records import RecordType
from tests.support.mvds.network import CALM, GROUP, Network, group_of, pair

BATCH = Options(mode=Mode.BATCH)
HELLO = Message(GROUP, 1, b"hello")
HELLO_ID = message_id(HELLO)


def types(node: Node) -> list[RecordType]:
    """Types of the records in a node's state."""
    return [record.type for record in node.records]


class TestInteractive:
    @pytest.mark.rule("mvds-interactive-1", "mvds-payload-offers")
    def test_message_is_offered_first(self) -> None:
        """The OFFER is in the next payload, and in the state."""
        alice, _ = pair()
        sent = alice.append(GROUP, b"hello", 1)
        assert types(alice) == [RecordType.OFFER]
        assert alice.tick().payloads == {b"bob": Payload(offers=(sent,))}
        assert types(alice) == [RecordType.OFFER]

    @pytest.mark.rule("mvds-interactive-2", "mvds-payload-requests")
    def test_offer_is_answered_by_a_request(self) -> None:
        """The REQUEST is in the next payload, and in the state."""
        _, bob = pair()
        assert bob.receive(b"alice", Payload(offers=(HELLO_ID,))) == []
        assert types(bob) == [RecordType.REQUEST]
        assert bob.tick().payloads == {b"alice": Payload(requests=(HELLO_ID,))}
        assert types(bob) == [RecordType.REQUEST]

    @pytest.mark.rule("mvds-interactive-3")
    def test_request_replaces_the_offer_by_the_message(self) -> None:
        """The MESSAGE is in the next payload, and alone in the state."""
        alice, _ = pair()
        alice.append(GROUP, b"hello", 1)
        alice.tick()
        alice.receive(b"bob", Payload(requests=(HELLO_ID,)))
        assert types(alice) == [RecordType.MESSAGE]
        assert alice.tick().payloads == {b"bob": Payload(messages=(HELLO,))}
        assert types(alice) == [RecordType.MESSAGE]

    @pytest.mark.rule("mvds-interactive-4")
    def test_message_ends_the_request_and_is_acknowledged(self) -> None:
        """The ACK is in the next payload; nothing stays in the state."""
        _, bob = pair()
        bob.receive(b"alice", Payload(offers=(HELLO_ID,)))
        events = bob.receive(b"alice", Payload(messages=(HELLO,)))
        assert events == [Delivered(HELLO_ID, HELLO, b"alice")]
        assert bob.records == ()
        assert bob.tick().payloads == {b"alice": Payload(acks=(HELLO_ID,))}
        assert bob.records == ()

    @pytest.mark.rule("mvds-interactive-5")
    def test_acknowledgement_ends_the_message(self) -> None:
        """Nothing is sent any more."""
        alice, _ = pair()
        alice.append(GROUP, b"hello", 1)
        alice.receive(b"bob", Payload(requests=(HELLO_ID,)))
        events = alice.receive(b"bob", Payload(acks=(HELLO_ID,)))
        assert events == [Acknowledged(HELLO_ID, b"bob")]
        assert alice.records == ()
        assert alice.tick().payloads == {}

    def test_delivery_takes_four_records_without_loss(self) -> None:
        """One of each type."""
        alice, bob = pair()
        network = Network([alice, bob])
        alice.append(GROUP, b"hello", 1)
        network.run_until_quiet()
        assert network.delivered(b"bob") == [HELLO_ID]
        assert network.sent == {"offers": 1, "requests": 1, "messages": 1, "acks": 1}


class TestBatch:
    @pytest.mark.rule("mvds-batch-1", "mvds-payload-messages")
    def test_message_is_sent_at_once(self) -> None:
        """It is in the next payload, and in the state."""
        alice, _ = pair(BATCH)
        alice.append(GROUP, b"hello", 1)
        assert types(alice) == [RecordType.MESSAGE]
        assert alice.tick().payloads == {b"bob": Payload(messages=(HELLO,))}
        assert types(alice) == [RecordType.MESSAGE]

    @pytest.mark.rule("mvds-batch-2", "mvds-payload-acks")
    def test_message_is_acknowledged(self) -> None:
        """Although it was not requested."""
        _, bob = pair(BATCH)
        assert bob.receive(b"alice", Payload(messages=(HELLO,))) == [
            Delivered(HELLO_ID, HELLO, b"alice")
        ]
        assert bob.tick().payloads == {b"alice": Payload(acks=(HELLO_ID,))}

    @pytest.mark.rule("mvds-batch-3")
    def test_acknowledgement_ends_the_message(self) -> None:
        """For the peer that sent it; for others the MESSAGE stays."""
        alice, *_ = group_of([b"alice", b"bob", b"carol"], lambda _: BATCH)
        alice.append(GROUP, b"hello", 1)
        alice.receive(b"bob", Payload(acks=(HELLO_ID,)))
        assert [record.peer for record in alice.records] == [b"carol"]
        assert alice.tick().payloads == {b"carol": Payload(messages=(HELLO,))}

    def test_delivery_takes_two_records_without_loss(self) -> None:
        """The message and its acknowledgement."""
        alice, bob = pair(BATCH)
        network = Network([alice, bob])
        alice.append(GROUP, b"hello", 1)
        network.run_until_quiet()
        assert network.delivered(b"bob") == [HELLO_ID]
        assert network.sent == {"messages": 1, "acks": 1}


@pytest.mark.rule("mvds-flow-2", "mvds-flow-both")
def test_messages_of_one_node_may_have_different_modes() -> None:
    """Each may choose another than that of the node."""
    for mode in Mode:
        alice, _ = pair(Options(mode=mode))
        offered = alice.append(GROUP, b"offered", 1, mode=Mode.INTERACTIVE)
        alice.append(GROUP, b"sent", 2, mode=Mode.BATCH)
        alice.append(GROUP, b"usual", 3)
        (payload,) = alice.tick().payloads.values()
        assert payload.offers[0] == offered
        assert payload.messages[0].body == b"sent"
        assert len(payload.offers) == (2 if mode is Mode.INTERACTIVE else 1)


@pytest.mark.rule("mvds-flow-all")
def test_all_records_for_a_peer_are_in_one_payload() -> None:
    """Of all types, and none for another peer."""
    alice, *_ = group_of([b"alice", b"bob", b"carol"])
    offered = alice.append(GROUP, b"offered", 1)
    alice.append(GROUP, b"sent", 2, mode=Mode.BATCH)
    other_id = b"o" * 32
    events = alice.receive(b"bob", Payload(offers=(other_id,), messages=(HELLO,)))
    assert len(events) == 1
    payloads = alice.tick().payloads
    assert payloads[b"bob"] == Payload(
        acks=(HELLO_ID,),
        offers=(offered,),
        requests=(other_id,),
        messages=(Message(GROUP, 2, b"sent"),),
    )
    assert payloads[b"carol"] == Payload(
        offers=(offered, HELLO_ID), messages=(Message(GROUP, 2, b"sent"),)
    )


def test_node_with_nothing_to_send_sends_nothing() -> None:
    """No empty payloads, which are half of those of deployed nodes."""
    alice, bob = pair()
    network = Network([alice, bob], CALM)
    alice.append(GROUP, b"hello", 1)
    network.run_until_quiet()
    assert alice.tick().payloads == bob.tick().payloads == {}
    bob.receive(b"alice", Payload())
    assert bob.tick().payloads == {}


@pytest.mark.rule("mvds-payload-group")
def test_groups_are_independent() -> None:
    """A message goes to the peers of its group only, which are known per group."""
    other = b"h" * 32
    alice = Node(b"alice", BATCH)
    alice.add_group(GROUP, [b"bob"])
    alice.add_group(other, [b"carol"])
    alice.append(GROUP, b"hello", 1)
    assert list(alice.tick().payloads) == [b"bob"]


@pytest.mark.rule("mvds-flow-every")
def test_each_epoch_has_payloads_with_what_is_new() -> None:
    """Reactions to what arrived in the epoch before, and new records."""
    alice, bob = pair(BATCH)
    for epoch in range(1, 6):
        sent = [node.append(GROUP, b"%d" % epoch, epoch) for node in (alice, bob)]
        payloads = alice.tick().payloads, bob.tick().payloads
        for (payload,), own in zip(map(dict.values, payloads), sent, strict=True):
            assert list(map(message_id, payload.messages)) == [own]
            assert len(payload.acks) == (1 if epoch > 1 else 0)
        alice.receive(b"bob", payloads[1][b"alice"])
        bob.receive(b"alice", payloads[0][b"bob"])
