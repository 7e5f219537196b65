"""Our node in the place of each recorded peer of status-im/mvds.

It is given what the peer appended and the payloads to the peer in the order of their
times, and ticks whenever the peer sent something: the peer ticked once a second. The
network lost payloads after the tap, which no record shows; so that the node does not
get more messages than the peer, a copy of a MESSAGE is left out if the truth says that
it did not arrive: all of those that the peer never received, and all before the one
that arrived first. That one arrives when the truth says.

Exact are therefore the messages that are stored, and when. What else the peer received
is not known: later copies, and other records, are all given to our node, although the
network lost some. So our node does whatever the peer did, and more; that the peer did
nothing else is not asserted. Excepted is what the tap missed: it lost one payload in a
hundred.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache, partial

import pytest

from sds_core.mvds.backoff import linear
from sds_core.mvds.node import Node
from sds_core.mvds.options import Mode, Options
from sds_core.mvds.payload import Message, Payload, decode, message_id
from tests.support.mvds.recordings import NAMES, Truth, payloads, truth

Pair = tuple[bytes, str]
"""Message id, and the other peer."""


@dataclass(slots=True)
class Pairs:
    """Which records went to or came from whom, by type."""

    acks: set[Pair] = field(default_factory=set)
    offers: set[Pair] = field(default_factory=set)
    requests: set[Pair] = field(default_factory=set)
    messages: set[Pair] = field(default_factory=set)

    def add(self, payload: Payload, other: str) -> None:
        """Add the records of a payload."""
        self.acks |= {(one, other) for one in payload.acks}
        self.offers |= {(one, other) for one in payload.offers}
        self.requests |= {(one, other) for one in payload.requests}
        self.messages |= {(message_id(one), other) for one in payload.messages}


@dataclass(slots=True)
class Replay:
    """What the peer and our node did.

    Attributes:
        peer: The peer.
        truth: The truth of the recording.
        received: Records that the tap saw on their way to the peer.
        theirs: Records that the tap saw from the peer.
        ours: Records of our node.
        stored: When our node first held each message of others, in ms.
    """

    peer: str
    truth: Truth
    received: Pairs = field(default_factory=Pairs)
    theirs: Pairs = field(default_factory=Pairs)
    ours: Pairs = field(default_factory=Pairs)
    stored: dict[bytes, int] = field(default_factory=dict)

    def delivered(self) -> dict[bytes, int]:
        """When the peer first received each message, in ms."""
        return {
            one: times[self.peer]
            for one, times in self.truth.delivered.items()
            if self.peer in times
        }


@cache
def recorded(name: str) -> list[tuple[int, str, str, Payload]]:
    """Time, sender, receiver and payload of all that the tap saw."""
    return [(t.time_ms, t.sender, t.receiver, decode(t.value)) for t in payloads(name)]


def peers_of(name: str) -> list[str]:
    """The peers of a recording."""
    return sorted({message.sender for message in truth(name).messages.values()})


def arrivals(name: str, replay: Replay) -> Iterable[tuple[int, str, Payload]]:
    """Time, sender and payload of what is given to our node."""
    delivered = replay.delivered()
    first: dict[bytes, tuple[int, str, Message]] = {}
    for time_ms, sender, receiver, payload in recorded(name):
        if receiver != replay.peer:
            continue
        replay.received.add(payload, sender)
        later = []
        for message in payload.messages:
            one = message_id(message)
            if time_ms > delivered.get(one, time_ms):
                later.append(message)
            elif one in delivered:
                # The last one that was sent before is the one that arrived.
                first[one] = (delivered[one], sender, message)
        yield time_ms, sender, replace(payload, messages=tuple(later))
    for time_ms, sender, message in first.values():
        yield time_ms, sender, Payload(messages=(message,))


@cache
def replayed(name: str, peer: str) -> Replay:
    """What happens in the place of a peer."""
    replay = Replay(peer, truth(name))
    mode = Mode.BATCH if name == "batch" else Mode.INTERACTIVE
    node = Node(bytes.fromhex(peer), Options(mode=mode, backoff=linear))
    group_id = next(iter(replay.truth.messages.values())).group_id
    others = [bytes.fromhex(one) for one in peers_of(name) if one != peer]
    node.add_group(group_id, others)
    own: dict[bytes, Message] = {}
    for _, sender, receiver, payload in recorded(name):
        if sender == peer:
            replay.theirs.add(payload, receiver)
            own |= {message_id(one): one for one in payload.messages}
    calls: list[tuple[int, Callable[[], None]]] = []
    for one, about in replay.truth.messages.items():
        if about.sender == peer:
            calls.append((about.time_ms, partial(_append, node, own[one])))
    for time_ms, sender, payload in arrivals(name, replay):
        call = partial(_give, node, replay, time_ms, sender, payload)
        calls.append((time_ms, call))
    ticks = {time_ms for time_ms, sender, *_ in recorded(name) if sender == peer}
    calls += [(time_ms, partial(_tick, node, replay)) for time_ms in ticks]
    for _, each in sorted(calls, key=lambda one: one[0]):
        each()
    return replay


def _append(node: Node, message: Message) -> None:
    node.append(message.group_id, message.body, message.timestamp)


def _give(
    node: Node, replay: Replay, time_ms: int, sender: str, payload: Payload
) -> None:
    node.receive(bytes.fromhex(sender), payload)
    for message in payload.messages:
        one = message_id(message)
        assert node.is_delivered(one)
        replay.stored.setdefault(one, time_ms)


def _tick(node: Node, replay: Replay) -> None:
    for receiver, payload in node.tick().payloads.items():
        replay.ours.add(payload, receiver.hex())


PLAYED = [(name, peer) for name in NAMES for peer in peers_of(name)]


def test_every_recording_has_four_peers() -> None:
    """All of them are played."""
    assert len(PLAYED) == 12


@pytest.mark.parametrize(("name", "peer"), PLAYED)
class TestPeer:
    def test_node_stores_what_the_peer_stored_when_it_did(
        self, name: str, peer: str
    ) -> None:
        """Exactly, but for at most one message whose only copy the tap missed."""
        replay = replayed(name, peer)
        delivered = replay.delivered()
        seen = {one for one, _ in replay.received.messages}
        missed = delivered.keys() - seen
        assert len(missed) <= 1
        expected = {one: at for one, at in delivered.items() if one not in missed}
        assert replay.stored == expected

    def test_node_acknowledges_what_the_peer_acknowledged(
        self, name: str, peer: str
    ) -> None:
        """To the same peers, and all that anybody learned of by the truth."""
        replay = replayed(name, peer)
        missed = replay.theirs.acks - replay.received.messages
        assert len(missed) <= 1
        assert replay.theirs.acks - missed <= replay.ours.acks
        known = {one for one, at in replay.truth.acknowledged.items() if peer in at}
        missed_ids = known - {one for one, _ in replay.received.messages}
        assert known - missed_ids <= {one for one, _ in replay.ours.acks}
        assert len(missed_ids) <= 1

    def test_node_answers_offers_as_the_peer_did(self, name: str, peer: str) -> None:
        """By a REQUEST; or by an ACK if the message came in the same second."""
        replay = replayed(name, peer)
        missed = replay.theirs.requests - replay.received.offers
        assert len(missed) <= 2
        answered = replay.ours.requests | replay.ours.acks
        assert replay.theirs.requests - missed <= answered

    def test_node_sends_the_messages_that_the_peer_sent(
        self, name: str, peer: str
    ) -> None:
        """On request, and those of its own at once in batch mode.

        Or the receiver was seen to hold the message before: it offered or sent it.
        """
        replay = replayed(name, peer)
        unasked = replay.theirs.messages - replay.received.requests
        if name == "batch":
            own = {o for o, m in replay.truth.messages.items() if m.sender == peer}
            unasked = {pair for pair in unasked if pair[0] not in own}
        assert len(unasked) <= 2
        unsent = replay.theirs.messages - unasked - replay.ours.messages
        assert len(unsent) <= 4
        assert unsent <= replay.received.offers | replay.received.messages
