"""What is refused is acknowledged, so that its sender does not repeat it for ever."""

from __future__ import annotations

import tracemalloc

import pytest

from sds_core.mvds.events import Acknowledged, Delivered, Refused, RefusedReason
from sds_core.mvds.node import Node
from sds_core.mvds.options import Mode, Options, Resolution
from sds_core.mvds.payload import Message, Metadata, Payload, message_id
from tests.support.mvds.network import CALM, GROUP, Network, Weather

OTHER = b"h" * 32
LOSSY = Weather(loss=0.3, copies=0.2, delay_epochs=3)


def acquainted(alice: Options, bob: Options) -> tuple[Node, Node]:
    """Return two nodes that share a group; `alice` believes that they share another."""
    nodes = Node(b"alice", alice), Node(b"bob", bob)
    nodes[0].add_group(GROUP, [b"bob"])
    nodes[0].add_group(OTHER, [b"bob"])
    nodes[1].add_group(GROUP, [b"alice"])
    return nodes


@pytest.mark.rule("mvds-interactive-4", "mvds-batch-2")
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("weather", [CALM, LOSSY], ids=["calm", "lossy"])
@pytest.mark.parametrize(
    "reason",
    [
        RefusedReason.TOO_LARGE,
        RefusedReason.FOREIGN_GROUP,
        RefusedReason.TOO_MANY_PARENTS,
    ],
)
def test_refused_message_is_not_repeated_for_ever(
    reason: RefusedReason, weather: Weather, mode: Mode
) -> None:
    """Its sender learns that it arrived, and the other application why not."""
    alice, bob = acquainted(
        Options(mode=mode, write_parents=True),
        Options(max_payload_bytes=20_000, max_parents=0),
    )
    network = Network([alice, bob], weather)
    group_id = OTHER if reason is RefusedReason.FOREIGN_GROUP else GROUP
    body = bytes(11_000 if reason is RefusedReason.TOO_LARGE else 10)
    if reason is RefusedReason.TOO_MANY_PARENTS:
        alice.append(group_id, b"its parent", 0)
    refused = alice.append(group_id, body, 1)
    network.run_until_quiet(2_000)
    assert Acknowledged(refused, b"bob") in network.events[b"alice"]
    assert Refused(reason, b"alice", refused) in network.events[b"bob"]
    assert refused not in network.delivered(b"bob")
    assert bob.message(refused) is None


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("weather", [CALM, LOSSY], ids=["calm", "lossy"])
def test_message_of_a_group_that_is_joined_later_arrives(
    weather: Weather, mode: Mode
) -> None:
    """Two nodes seldom add each other at the same moment."""
    alice, bob = acquainted(Options(mode=mode), Options())
    network = Network([alice, bob], weather)
    early = [alice.append(OTHER, b"early", number) for number in range(3)]
    network.run_until_quiet(2_000)
    assert network.delivered(b"bob") == []
    bob.add_group(OTHER, [b"alice"])
    network.run_until_quiet(2_000)
    assert sorted(network.delivered(b"bob")) == sorted(early)


def test_number_of_messages_that_are_fetched_later_is_limited() -> None:
    """Those that were refused last, as many as may be requested of a peer."""
    alice, bob = acquainted(Options(mode=Mode.BATCH), Options(max_requests=2))
    network = Network([alice, bob])
    sent = [alice.append(OTHER, b"early", number) for number in range(3)]
    network.run_until_quiet()
    bob.add_group(OTHER, [b"alice"])
    network.run_until_quiet()
    assert network.delivered(b"bob") == sent[1:]


def test_request_of_a_full_table_is_not_made_later() -> None:
    """The limit holds for both together."""
    _, bob = acquainted(Options(), Options(max_requests=2))
    foreign = [Message(OTHER, number, b"") for number in range(2)]
    bob.receive(b"alice", Payload(messages=tuple(foreign)))
    bob.receive(b"alice", Payload(offers=(b"o" * 32,)))
    bob.add_group(OTHER, [b"alice"])
    assert len(bob.records) == 2


def test_what_another_peer_brought_is_not_requested() -> None:
    """Nor what a peer has left with its groups."""
    _, bob = acquainted(Options(), Options(forward=False))
    bob.add_group(OTHER, [b"carol"])
    foreign = Message(OTHER, 1, b"")
    bob.receive(b"alice", Payload(messages=(foreign,)))
    events = bob.receive(b"carol", Payload(messages=(foreign,)))
    assert events == [Delivered(message_id(foreign), foreign, b"carol")]
    bob.receive(b"alice", Payload(messages=(Message(OTHER, 2, b""),)))
    bob.remove_peer(GROUP, b"alice")
    bob.add_group(OTHER, [b"alice"])
    assert bob.records == ()


def test_refused_ephemeral_message_is_not_acknowledged() -> None:
    """It is sent once anyway."""
    _, bob = acquainted(Options(), Options(resolution=Resolution.EVENTUAL))
    message = Message(OTHER, 1, b"", Metadata((), True))
    events = bob.receive(b"alice", Payload(messages=(message,)))
    assert [type(one) for one in events] == [Refused]
    assert bob.tick().payloads == {}
    bob.add_group(OTHER, [b"alice"])
    assert bob.records == ()


def test_long_ids_of_foreign_groups_take_no_memory() -> None:
    """A peer may send any id of a group that is none of ours."""
    _, bob = acquainted(Options(), Options(max_requests=100))
    tracemalloc.start()
    try:
        for number in range(100):
            message = Message(bytes(10**6), number, b"")
            bob.receive(b"alice", Payload(messages=(message,)))
            del message
        grown_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown_bytes < 10**6


@pytest.mark.rule("mvds-interactive-4")
def test_refused_messages_wait_for_room_among_the_requests() -> None:
    """One after the other, if the peer leaves other requests unanswered."""
    alice, bob = acquainted(Options(mode=Mode.BATCH), Options(max_requests=4))
    network = Network([alice, bob])
    sent = [alice.append(OTHER, b"early", number) for number in range(4)]
    network.run_until_quiet()
    unanswered = tuple(bytes([number]) * 32 for number in range(3))
    bob.receive(b"alice", Payload(offers=unanswered))
    bob.add_group(OTHER, [b"alice"])
    network.run(300)
    assert [one for one in sent if bob.message(one) is None] == []
