"""Metadata: parents, resolution, ephemeral messages."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from sds_core.mvds.events import Delivered, Event, Forgotten, Waiting
from sds_core.mvds.node import Node
from sds_core.mvds.options import Mode, Options, Resolution
from sds_core.mvds.payload import Message, Metadata, Payload, message_id
from sds_core.mvds.records import RecordType
from tests.support.mvds.network import GROUP, Network, Weather, group_of, pair

EVENTUAL = Options(resolution=Resolution.EVENTUAL)
CONSISTENT = Options(resolution=Resolution.CONSISTENT)


def child_of(*parents: Message, body: bytes = b"child") -> Message:
    """A message that names parents."""
    return Message(GROUP, 9, body, Metadata(tuple(map(message_id, parents))))


def take(node: Node, message: Message, sender: bytes = b"alice") -> list[Event]:
    """The events of a message's reception."""
    return node.receive(sender, Payload(messages=(message,)))


def bodies(events: list[Event]) -> list[bytes]:
    """Bodies of the delivered messages."""
    return [one.message.body for one in events if isinstance(one, Delivered)]


def requested(node: Node) -> set[tuple[bytes, bytes]]:
    """Peers and message ids of the REQUEST records."""
    return {
        (record.peer, record.message_id)
        for record in node.records
        if record.type is RecordType.REQUEST
    }


FIRST = Message(GROUP, 1, b"first")
SECOND = child_of(FIRST, body=b"second")
THIRD = child_of(SECOND, body=b"third")


class TestNaming:
    def test_parents_are_the_messages_without_children(self) -> None:
        """Own and received ones of the group."""
        alice, _ = pair(Options(write_parents=True))
        one = alice.append(GROUP, b"one", 1)
        other = message_id(FIRST)
        take(alice, FIRST, b"bob")
        two = alice.append(GROUP, b"two", 2)
        three = alice.append(GROUP, b"three", 3)
        for message, parents in ((two, (one, other)), (three, (two,))):
            found = alice.message(message)
            assert found is not None
            assert found.metadata == Metadata(parents)

    def test_parents_of_a_group_are_of_that_group(self) -> None:
        """Groups are independent."""
        alice, _ = pair(Options(write_parents=True))
        alice.add_group(b"h" * 32)
        alice.append(b"h" * 32, b"other", 1)
        found = alice.message(alice.append(GROUP, b"one", 1))
        assert found is not None
        assert found.metadata == Metadata()

    def test_message_whose_child_came_first_is_no_parent(self) -> None:
        """It has a child."""
        alice, _ = pair(Options(write_parents=True))
        take(alice, SECOND, b"bob")
        take(alice, FIRST, b"bob")
        found = alice.message(alice.append(GROUP, b"one", 1))
        assert found is not None
        assert found.metadata == Metadata((message_id(SECOND),))

    def test_newest_parents_are_named_if_there_are_too_many(self) -> None:
        """A peer without metadata leaves all of its messages without children."""
        alice, _ = pair(Options(write_parents=True, max_parents=2))
        ids = [alice.append(GROUP, b"own", 0)]
        for number in range(1, 5):
            message = Message(GROUP, number, b"")
            take(alice, message, b"bob")
            ids.append(message_id(message))
        found = alice.message(alice.append(GROUP, b"last", 9))
        assert found is not None
        assert found.metadata == Metadata(tuple(ids[-2:]))

    def test_messages_have_no_metadata_by_default(self) -> None:
        """Nodes that do not know it get the document's message."""
        alice, _ = pair()
        found = alice.message(alice.append(GROUP, b"one", 1))
        assert found == Message(GROUP, 1, b"one", None)

    def test_forgotten_message_is_no_parent(self) -> None:
        """Nobody could get it."""
        options = Options(write_parents=True, max_messages=1)
        alice, _ = pair(options)
        take(alice, FIRST, b"bob")
        take(alice, Message(GROUP, 2, b"x"), b"bob")
        found = alice.message(alice.append(GROUP, b"one", 1))
        assert found is not None
        assert found.metadata == Metadata((message_id(Message(GROUP, 2, b"x")),))


class TestEventual:
    def test_message_is_delivered_and_its_parents_requested(self) -> None:
        """From who sent it, although it did not offer them."""
        _, bob = pair(EVENTUAL)
        events = take(bob, SECOND)
        parents = (message_id(FIRST),)
        assert events == [Delivered(message_id(SECOND), SECOND, b"alice", parents)]
        assert requested(bob) == {(b"alice", message_id(FIRST))}

    def test_missing_ancestors_are_requested_one_after_another(self) -> None:
        """A request without an offer is answered, up to the first message."""
        alice, bob = group_of([b"alice", b"bob"], lambda _: EVENTUAL)
        alice.remove_peer(GROUP, b"bob")
        old = [alice.append(GROUP, b"old", 0)]
        restored = alice.snapshot()
        alice = Node.restore(
            b"alice",
            restored,
            Options(resolution=Resolution.EVENTUAL, write_parents=True),
        )
        old += [alice.append(GROUP, b"old", number) for number in range(1, 4)]
        alice.add_group(GROUP, [b"bob"])
        new = alice.append(GROUP, b"new", 5)
        network = Network([alice, bob], Weather(loss=0.3))
        network.run_until_quiet()
        assert network.delivered(b"bob") == [new, *reversed(old)]

    def test_copy_from_another_peer_has_it_asked_too(self) -> None:
        """The first one may have gone."""
        bob, *_ = group_of([b"bob", b"alice", b"carol"], lambda _: EVENTUAL)
        take(bob, SECOND, b"alice")
        take(bob, SECOND, b"carol")
        parent = message_id(FIRST)
        assert requested(bob) == {(b"alice", parent), (b"carol", parent)}

    def test_parents_are_ignored_without_resolution(self) -> None:
        """But the application learns which ones are missing."""
        _, bob = pair()
        (event,) = take(bob, SECOND)
        assert isinstance(event, Delivered)
        assert event.missing_parents == (message_id(FIRST),)
        assert bob.records == ()


class TestLateRequests:
    """A peer's message names parents while its table of requests is full."""

    def crowded(self, options: Options) -> tuple[Node, Message]:
        """Bob, who asks alice for `offered` and got `SECOND`."""
        _, bob = pair(replace(options, max_requests=1))
        offered = Message(GROUP, 7, b"offered")
        bob.receive(b"alice", Payload(offers=(message_id(offered),)))
        take(bob, SECOND)
        assert requested(bob) == {(b"alice", message_id(offered))}
        return bob, offered

    @pytest.mark.parametrize("options", [EVENTUAL, CONSISTENT])
    def test_parents_are_requested_when_there_is_room(self, options: Options) -> None:
        """The peer does not resend the child, because it was acknowledged."""
        bob, offered = self.crowded(options)
        take(bob, offered)
        bob.tick()
        assert requested(bob) == {(b"alice", message_id(FIRST))}

    def test_each_of_several_parents_is_requested(self) -> None:
        """They do not all fit at once."""
        _, bob = pair(Options(resolution=Resolution.EVENTUAL, max_requests=1))
        parents = [Message(GROUP, number, b"") for number in range(4)]
        take(bob, child_of(*parents))
        for parent in parents:
            bob.tick()
            assert requested(bob) == {(b"alice", message_id(parent))}
            take(bob, parent)
        bob.tick()
        assert requested(bob) == set()

    def test_message_without_resolution_has_nothing_requested(self) -> None:
        """Neither now nor later."""
        bob, offered = self.crowded(Options())
        take(bob, offered)
        bob.tick()
        assert requested(bob) == set()

    def test_parents_of_a_dropped_message_are_not_requested(self) -> None:
        """A peer that answers no request fills the memory with nothing."""
        bob, offered = self.crowded(
            Options(resolution=Resolution.EVENTUAL, max_messages=1)
        )
        take(bob, Message(GROUP, 8, b"next"))
        take(bob, offered)
        bob.tick()
        assert requested(bob) == set()

    def test_removed_peer_is_not_asked(self) -> None:
        """Nor if it returns."""
        bob, _ = self.crowded(EVENTUAL)
        bob.remove_peer(GROUP, b"alice")
        bob.add_group(GROUP, [b"alice"])
        bob.tick()
        assert requested(bob) == set()

    def test_parent_that_no_peer_has_does_not_block_the_next(self) -> None:
        """A request that was given up is not made again."""
        _, bob = pair(
            Options(resolution=Resolution.EVENTUAL, max_requests=1, max_sends=1)
        )
        parents = [Message(GROUP, number, b"") for number in range(3)]
        take(bob, child_of(*parents))
        asked = [
            one
            for _ in range(20)
            for payload in bob.tick().payloads.values()
            for one in payload.requests
        ]
        assert asked == [message_id(parent) for parent in parents]

    def test_restarted_node_requests_the_parents(self) -> None:
        """Of each message that waits; the requests are stored."""
        bob, offered = self.crowded(CONSISTENT)
        take(bob, offered)
        restored = Node.restore(b"bob", bob.snapshot(), CONSISTENT)
        restored.record_changes()
        payload = restored.tick().payloads[b"alice"]
        assert payload.requests == (message_id(FIRST),)
        changes = restored.take_changes()
        assert changes is not None
        assert list(changes.records) == [(b"alice", message_id(FIRST))]


class TestConsistent:
    @pytest.mark.parametrize("order", list(permutations([FIRST, SECOND, THIRD])))
    def test_messages_are_delivered_after_their_parents(
        self, order: tuple[Message, ...]
    ) -> None:
        """Whatever the order of their arrival; each is acknowledged on arrival."""
        _, bob = pair(CONSISTENT)
        found: list[bytes] = []
        for message in order:
            found += bodies(take(bob, message))
            assert bob.tick().payloads[b"alice"].acks == (message_id(message),)
        assert found == [b"first", b"second", b"third"]
        assert requested(bob) == set()

    def test_waiting_message_says_what_it_waits_for(self) -> None:
        """It is stored, not delivered, and its missing parent is requested."""
        _, bob = pair(CONSISTENT)
        one = message_id(SECOND)
        assert take(bob, SECOND) == [Waiting(one, (message_id(FIRST),))]
        assert bob.message(one) == SECOND
        assert not bob.is_delivered(one)
        assert requested(bob) == {(b"alice", message_id(FIRST))}
        take(bob, FIRST)
        assert bob.is_delivered(one)

    def test_message_waits_for_all_of_its_parents(self) -> None:
        """A known parent that waits itself counts as missing, and is not requested."""
        _, bob = pair(CONSISTENT)
        other = Message(GROUP, 5, b"other")
        last = child_of(SECOND, other, body=b"last")
        take(bob, SECOND)
        take(bob, other)
        assert take(bob, last) == [Waiting(message_id(last), (message_id(SECOND),))]
        assert requested(bob) == {(b"alice", message_id(FIRST))}
        assert bodies(take(bob, FIRST)) == [b"first", b"second", b"last"]

    def test_waiting_messages_survive_a_restart(self) -> None:
        """They are delivered by the parent that arrives afterwards."""
        _, bob = pair(CONSISTENT)
        take(bob, THIRD)
        take(bob, SECOND)
        restored = Node.restore(b"bob", bob.snapshot(), CONSISTENT)
        found = bodies(take(restored, FIRST))
        assert found == [b"first", b"second", b"third"]

    @pytest.mark.parametrize("is_restarted", [False, True])
    def test_parents_are_requested_from_others_if_the_sender_leaves(
        self, *, is_restarted: bool
    ) -> None:
        """Otherwise, the message would wait until too many messages wait."""
        names = [b"bob", b"alice", b"carol", b"dave"]
        bob, *_ = group_of(names, lambda _: CONSISTENT)
        take(bob, SECOND)
        bob.remove_peer(GROUP, b"alice")
        if is_restarted:
            bob = Node.restore(b"bob", bob.snapshot(), CONSISTENT)
        parent = message_id(FIRST)
        assert requested(bob) == {(b"carol", parent), (b"dave", parent)}
        assert bodies(take(bob, FIRST, b"dave")) == [b"first", b"second"]
        assert requested(bob) == set()

    @pytest.mark.parametrize("peer", [b"alice", b"carol"])
    def test_parents_are_requested_from_a_peer_that_joins_later(
        self, peer: bytes
    ) -> None:
        """No other peer was in the group when the sender left."""
        _, bob = pair(CONSISTENT)
        take(bob, SECOND)
        bob.remove_peer(GROUP, b"alice")
        assert requested(bob) == set()
        bob.add_group(GROUP, [peer])
        assert requested(bob) == {(peer, message_id(FIRST))}

    def test_call_without_events_delivers_nothing(self) -> None:
        """A process that ends after it would never tell its application."""
        _, bob = pair(CONSISTENT)
        take(bob, SECOND)
        restored = Node.restore(b"bob", bob.snapshot(), EVENTUAL)
        restored.append(GROUP, b"own", 1)
        assert not restored.is_delivered(message_id(SECOND))
        again = Node.restore(b"bob", restored.snapshot(), EVENTUAL)
        assert bodies(again.tick().events) == [b"second"]

    @pytest.mark.parametrize(
        ("options", "delivered"),
        [
            (Options(), [b"second", b"third", b"lonely"]),
            (EVENTUAL, [b"second", b"third", b"lonely"]),
            (
                Options(resolution=Resolution.CONSISTENT, max_waiting=2),
                [b"second", b"third"],
            ),
        ],
    )
    def test_messages_that_need_no_longer_wait_are_delivered_after_a_restart(
        self, options: Options, delivered: list[bytes]
    ) -> None:
        """The options of the restarted node apply, and the delivery is stored."""
        _, bob = pair(CONSISTENT)
        lonely = child_of(Message(GROUP, 8, b"?"), body=b"lonely")
        for message in (SECOND, THIRD, lonely):
            take(bob, message)
        restored = Node.restore(b"bob", bob.snapshot(), options)
        restored.record_changes()
        assert bodies(restored.tick().events) == delivered
        changes = restored.take_changes()
        assert changes is not None
        assert [
            stored.message.body
            for stored in changes.messages.values()
            if stored and stored.message and stored.is_delivered
        ] == delivered

    def test_oldest_is_delivered_if_too_many_wait(self) -> None:
        """With the parents that it lacks; what waited for it follows."""
        _, bob = pair(Options(resolution=Resolution.CONSISTENT, max_waiting=2))
        take(bob, SECOND)
        take(bob, THIRD)
        lonely = child_of(Message(GROUP, 8, b"?"), body=b"lonely")
        events = take(bob, lonely)
        assert bodies(events) == [b"second", b"third"]
        first = next(one for one in events if isinstance(one, Delivered))
        assert first.missing_parents == (message_id(FIRST),)
        assert not bob.is_delivered(message_id(lonely))

    def test_chain_that_is_longer_than_the_limit_ends(self) -> None:
        """A chain from its end on neither stops nor loses a message."""
        _, bob = pair(Options(resolution=Resolution.CONSISTENT, max_waiting=3))
        chain = [FIRST]
        for number in range(50):
            chain.append(child_of(chain[-1], body=b"%d" % number))
        found: list[bytes] = []
        for message in reversed(chain):
            found += bodies(take(bob, message))
        assert sorted(found) == sorted(message.body for message in chain)

    def test_long_chain_is_delivered_at_once(self) -> None:
        """However long: the interpreter's stack has no part in it."""
        chain = [FIRST]
        for number in range(3_000):
            chain.append(child_of(chain[-1], body=b"%d" % number))
        _, bob = pair(Options(resolution=Resolution.CONSISTENT, max_waiting=5_000))
        for message in reversed(chain[1:]):
            take(bob, message)
        assert len(bodies(take(bob, FIRST))) == len(chain)

    def test_message_that_names_itself_does_not_wait(self) -> None:
        """Metadata is not in the id, so this can be written."""
        plain = Message(GROUP, 1, b"self")
        own = Message(GROUP, 1, b"self", Metadata((message_id(plain),)))
        _, bob = pair(CONSISTENT)
        assert bodies(take(bob, own)) == [b"self"]
        assert requested(bob) == set()

    def test_messages_that_name_each_other_wait_for_room(self) -> None:
        """They leave when others need their place, with what they lack."""
        one, two = Message(GROUP, 1, b"one"), Message(GROUP, 1, b"two")
        _, bob = pair(Options(resolution=Resolution.CONSISTENT, max_waiting=2))
        take(bob, Message(GROUP, 1, b"one", Metadata((message_id(two),))))
        take(bob, Message(GROUP, 1, b"two", Metadata((message_id(one),))))
        assert not bob.is_delivered(message_id(one))
        assert bodies(take(bob, SECOND)) == [b"one", b"two"]

    def test_waiting_message_is_delivered_before_it_is_forgotten(self) -> None:
        """A full store does not swallow it."""
        _, bob = pair(Options(resolution=Resolution.CONSISTENT, max_messages=1))
        take(bob, SECOND)
        events = take(bob, Message(GROUP, 7, b"next"))
        assert bodies(events) == [b"next", b"second"]
        assert events[-1] == Forgotten(message_id(SECOND))


class TestEphemeral:
    @pytest.mark.parametrize("mode", Mode)
    def test_it_is_sent_in_batch_mode_and_delivered(self, mode: Mode) -> None:
        """Once, and no record is in anybody's state."""
        alice, bob = nodes = pair(Options(mode=mode))
        network = Network(nodes)
        sent = alice.append(GROUP, b"now", 1, ephemeral=True)
        assert alice.records == ()
        network.run_until_quiet()
        network.run(1)
        assert network.delivered(b"bob") == [sent]
        assert network.sent == {"messages": 1}
        assert bob.records == ()

    def test_it_is_not_shared_as_history(self) -> None:
        """It is neither passed on, nor stored, nor sent on request."""
        bob, *_ = group_of([b"bob", b"alice", b"carol"])
        now = Message(GROUP, 1, b"now", Metadata(ephemeral=True))
        assert bodies(take(bob, now)) == [b"now"]
        assert bob.message(message_id(now)) is None
        assert bob.tick().payloads == {}
        bob.receive(b"carol", Payload(requests=(message_id(now),)))
        assert bob.tick().payloads == {}

    def test_its_author_does_not_send_it_on_request_either(self) -> None:
        """It was sent once."""
        alice, _ = pair()
        sent = alice.append(GROUP, b"now", 1, ephemeral=True)
        alice.tick()
        alice.receive(b"bob", Payload(requests=(sent,)))
        assert alice.tick().payloads == {}

    @pytest.mark.rule("mvds-interactive-4")
    def test_it_ends_a_request(self) -> None:
        """Whoever offered it has sent it now."""
        _, bob = pair()
        now = Message(GROUP, 1, b"now", Metadata(ephemeral=True))
        bob.receive(b"alice", Payload(offers=(message_id(now),)))
        take(bob, now)
        assert bob.records == ()
