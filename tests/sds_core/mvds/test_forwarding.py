"""Received messages are passed on to the other peers of the group."""

from __future__ import annotations

from itertools import pairwise

import pytest

from sds_core.mvds.events import Acknowledged
from sds_core.mvds.node import Node
from sds_core.mvds.options import Mode, Options, Resolution
from sds_core.mvds.payload import Message, Metadata, Payload, message_id
from tests.support.mvds.network import GROUP, Network, group_of

HELLO = Message(GROUP, 1, b"hello")
HELLO_ID = message_id(HELLO)


def line(*peers: bytes, options: Options | None = None) -> list[Node]:
    """Nodes of which each knows only its neighbours."""
    nodes = [Node(peer, options) for peer in peers]
    for left, right in pairwise(nodes):
        left.add_group(GROUP, [right.peer_id])
        right.add_group(GROUP, [left.peer_id])
    return nodes


@pytest.mark.parametrize("mode", Mode)
def test_message_reaches_peers_that_its_author_does_not_know(mode: Mode) -> None:
    """Over any number of others; all acknowledge, and no record is left."""
    nodes = line(b"a", b"b", b"c", b"d", b"e", options=Options(mode=mode))
    network = Network(nodes)
    sent = nodes[0].append(GROUP, b"hello", 1)
    network.run_until_quiet()
    for node in nodes[1:]:
        assert network.delivered(node.peer_id) == [sent]


@pytest.mark.parametrize("mode", Mode)
def test_received_message_is_offered_even_in_batch_mode(mode: Mode) -> None:
    """The others may have it from its author, as deployed nodes expect too."""
    bob, *_ = group_of([b"bob", b"alice", b"carol"], lambda _: Options(mode=mode))
    bob.receive(b"alice", Payload(messages=(HELLO,)))
    assert bob.tick().payloads == {
        b"alice": Payload(acks=(HELLO_ID,)),
        b"carol": Payload(offers=(HELLO_ID,)),
    }


@pytest.mark.parametrize("forward", [True, False])
def test_forwarding_squares_the_number_of_offers(forward: bool) -> None:
    """If all know each other and nothing is lost: every receiver offers to the rest."""
    nodes = group_of([b"a", b"b", b"c", b"d", b"e"], lambda _: Options(forward=forward))
    network = Network(nodes)
    nodes[0].append(GROUP, b"hello", 1)
    network.run_until_quiet()
    assert network.sent["offers"] == (4 * 4 if forward else 4)
    assert network.sent["messages"] == 4


def test_forwarding_can_be_switched_off() -> None:
    """The document does not mention it."""
    bob, *_ = group_of([b"bob", b"alice", b"carol"], lambda _: Options(forward=False))
    bob.receive(b"alice", Payload(messages=(HELLO,)))
    assert list(bob.tick().payloads) == [b"alice"]


def test_message_is_not_offered_to_who_offered_it() -> None:
    """Their offer is answered by an acknowledgement, and no longer by a request."""
    bob, *_ = group_of([b"bob", b"alice", b"carol"])
    bob.receive(b"carol", Payload(offers=(HELLO_ID,)))
    bob.receive(b"alice", Payload(messages=(HELLO,)))
    assert bob.records == ()
    assert bob.tick().payloads == {
        b"carol": Payload(acks=(HELLO_ID,)),
        b"alice": Payload(acks=(HELLO_ID,)),
    }


@pytest.mark.parametrize(
    "payload", [Payload(offers=(HELLO_ID,)), Payload(messages=(HELLO,))]
)
def test_peer_that_offers_or_sends_a_message_is_not_sent_it(payload: Payload) -> None:
    """It holds the message, as if it had acknowledged it."""
    alice, *_ = group_of([b"alice", b"bob", b"carol"])
    alice.append(GROUP, b"hello", 1)
    events = alice.receive(b"bob", payload)
    assert Acknowledged(HELLO_ID, b"bob") in events
    assert [record.peer for record in alice.records] == [b"carol"]
    assert alice.tick().payloads[b"bob"] == Payload(acks=(HELLO_ID,))


@pytest.mark.parametrize("is_offered", [True, False])
def test_requested_parent_is_offered_to_who_did_not_offer_it(is_offered: bool) -> None:
    """The peer that sent a child may itself lack the parent."""
    options = Options(resolution=Resolution.EVENTUAL)
    bob, *_ = group_of([b"bob", b"alice", b"carol"], lambda _: options)
    child = Message(GROUP, 2, b"child", Metadata((HELLO_ID,)))
    bob.receive(b"alice", Payload(messages=(child,)))
    assert bob.tick().payloads[b"alice"].requests == (HELLO_ID,)
    if is_offered:
        bob.receive(b"alice", Payload(offers=(HELLO_ID,)))
    bob.receive(b"carol", Payload(messages=(HELLO,)))
    answer = bob.tick().payloads[b"alice"]
    assert answer.offers == (() if is_offered else (HELLO_ID,))
    assert answer.acks == ((HELLO_ID,) if is_offered else ())


def test_message_is_passed_on_in_its_own_group_only() -> None:
    """Peers of other groups do not learn of it."""
    bob = Node(b"bob")
    bob.add_group(GROUP, [b"alice"])
    bob.add_group(b"h" * 32, [b"alice", b"carol"])
    bob.receive(b"alice", Payload(messages=(HELLO,)))
    assert list(bob.tick().payloads) == [b"alice"]
