"""What peers can make a node store or send is limited."""

from __future__ import annotations

import tracemalloc

import pytest

from sds_core.mvds.events import (
    Delivered,
    Duplicate,
    Event,
    Forgotten,
    GaveUp,
    Refused,
    RefusedReason,
)
from sds_core.mvds.node import Node
from sds_core.mvds.options import Mode, Options, Resolution
from sds_core.mvds.payload import (
    MAX_RECORDS,
    Message,
    Metadata,
    Payload,
    encode,
    message_id,
)
from sds_core.mvds.records import RecordType
from tests.support.mvds.network import GROUP, Network, pair


def numbered(number: int) -> bytes:
    """The id of a message that nobody has."""
    return number.to_bytes(32, "big")


def of_bob(number: int, body: bytes = b"") -> Message:
    """A message that `bob` sends."""
    return Message(GROUP, number, body)


def refusals(events: list[Event]) -> list[RefusedReason]:
    """Reasons of the refused records."""
    return [one.reason for one in events if isinstance(one, Refused)]


class TestStrangers:
    def test_payload_of_an_unknown_peer_has_no_effect(self) -> None:
        """It is in no group of ours."""
        alice, _ = pair()
        payload = Payload(offers=(numbered(1),), messages=(of_bob(1),))
        events = alice.receive(b"mallory", payload)
        assert events == [Refused(RefusedReason.UNKNOWN_PEER, b"mallory")]
        assert alice.tick().payloads == {}

    def test_message_of_a_foreign_group_is_refused(self) -> None:
        """It is acknowledged, and no longer requested."""
        alice, _ = pair()
        alice.add_group(b"h" * 32)
        for group_id in (b"x" * 32, b"h" * 32):
            foreign = Message(group_id, 1, b"")
            one = message_id(foreign)
            alice.receive(b"bob", Payload(offers=(one,)))
            events = alice.receive(b"bob", Payload(messages=(foreign,)))
            assert events == [Refused(RefusedReason.FOREIGN_GROUP, b"bob", one)]
            assert alice.records == ()
            assert alice.message(one) is None
            assert alice.tick().payloads == {b"bob": Payload(acks=(one,))}

    def test_message_is_not_given_to_peers_of_other_groups(self) -> None:
        """Nor do they learn that it is known."""
        alice, _ = pair()
        alice.add_group(b"h" * 32, [b"carol"])
        secret = alice.append(GROUP, b"secret", 1)
        alice.receive(b"carol", Payload(requests=(secret,)))
        alice.receive(b"carol", Payload(offers=(secret,)))
        assert list(alice.tick().payloads) == [b"bob"]

    def test_acknowledgement_by_another_peer_ends_nothing(self) -> None:
        """Each peer answers for itself."""
        alice, _ = pair()
        alice.add_group(b"h" * 32, [b"carol"])
        sent = alice.append(GROUP, b"hello", 1)
        assert alice.receive(b"carol", Payload(acks=(sent,))) == []
        assert len(alice.records) == 1

    def test_acknowledgement_does_not_end_a_request(self) -> None:
        """The peer says that it has what we lack."""
        alice, _ = pair()
        alice.receive(b"bob", Payload(offers=(numbered(1),)))
        assert alice.receive(b"bob", Payload(acks=(numbered(1),))) == []
        assert [record.type for record in alice.records] == [RecordType.REQUEST]


class TestTables:
    def test_number_of_requests_for_a_peer_is_limited(self) -> None:
        """Other peers have a number of their own; answered requests make room."""
        alice, _ = pair(Options(max_requests=3))
        alice.add_group(GROUP, [b"carol"])
        messages = [of_bob(number) for number in range(5)]
        offers = Payload(offers=tuple(map(message_id, messages)))
        events = alice.receive(b"bob", offers)
        assert refusals(events) == [RefusedReason.TOO_MANY_REQUESTS] * 2
        assert alice.receive(b"carol", Payload(offers=offers.offers[:3])) == []
        alice.receive(b"bob", Payload(messages=(messages[0],)))
        assert refusals(alice.receive(b"bob", offers)) == [
            RefusedReason.TOO_MANY_REQUESTS
        ]

    def test_number_of_acknowledgements_for_a_peer_is_limited(self) -> None:
        """The message is stored; its next copy is acknowledged."""
        alice, _ = pair(Options(max_acks=2))
        messages = tuple(of_bob(number) for number in range(3))
        events = alice.receive(b"bob", Payload(messages=messages))
        assert refusals(events) == [RefusedReason.TOO_MANY_ACKS]
        assert sum(isinstance(one, Delivered) for one in events) == 3
        assert len(alice.tick().payloads[b"bob"].acks) == 2
        alice.receive(b"bob", Payload(messages=messages[2:]))
        assert alice.tick().payloads[b"bob"].acks == (message_id(messages[2]),)

    def test_records_that_come_and_go_leave_nothing(self) -> None:
        """A peer can ask and acknowledge any number of times within an epoch."""
        alice, _ = pair()
        sent = alice.append(GROUP, b"hello", 1)
        payload = Payload(acks=(sent,), requests=(sent,))
        for _ in range(1_500):
            alice.receive(b"bob", payload)
        tracemalloc.start()
        try:
            for _ in range(20_000):
                alice.receive(b"bob", payload)
            grown_bytes, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        # One record and its place in the schedule have some 200 bytes.
        assert grown_bytes < 1_000_000
        assert len(alice.records) == 1
        assert alice.tick().payloads[b"bob"].messages

    def test_message_with_too_many_parents_is_refused(self) -> None:
        """None of them is requested."""
        alice, _ = pair(Options(max_parents=2, resolution=Resolution.EVENTUAL))
        parents = tuple(map(numbered, range(3)))
        message = Message(GROUP, 1, b"", Metadata(parents))
        events = alice.receive(b"bob", Payload(messages=(message,)))
        assert refusals(events) == [RefusedReason.TOO_MANY_PARENTS]
        assert alice.records == ()

    def test_message_that_could_not_be_passed_on_is_refused(self) -> None:
        """It is longer than half of a payload."""
        options = Options()
        alice, _ = pair(options)
        message = of_bob(1, bytes(options.max_message_bytes))
        events = alice.receive(b"bob", Payload(messages=(message,)))
        assert refusals(events) == [RefusedReason.TOO_LARGE]


class TestStore:
    def test_oldest_message_is_forgotten_but_recognised(self) -> None:
        """A copy of it is acknowledged, and not delivered again."""
        alice, _ = pair(Options(max_messages=2))
        messages = [of_bob(number) for number in range(3)]
        events = alice.receive(b"bob", Payload(messages=tuple(messages)))
        assert events[-1] == Forgotten(message_id(messages[0]))
        assert alice.message(message_id(messages[0])) is None
        assert alice.message(message_id(messages[1])) == messages[1]
        alice.tick()
        again = alice.receive(b"bob", Payload(messages=(messages[0],)))
        assert again == [Duplicate(message_id(messages[0]), b"bob")]
        assert alice.tick().payloads[b"bob"].acks == (message_id(messages[0]),)

    def test_stored_bytes_are_limited(self) -> None:
        """Those of parents count."""
        options = Options(max_stored_bytes=2**17)
        alice, _ = pair(options)
        body = bytes(options.max_message_bytes - 5_000)
        parents = tuple(map(numbered, range(100)))
        forgotten = []
        for number in range(4):
            message = Message(GROUP, number, body, Metadata(parents))
            events = alice.receive(b"bob", Payload(messages=(message,)))
            forgotten += [one for one in events if isinstance(one, Forgotten)]
        # Two have 2 x (60,536 + 3,200) of 131,072 bytes.
        assert len(forgotten) == 2

    def test_flood_of_a_peer_does_not_push_out_our_messages(self) -> None:
        """They have limits of their own."""
        alice, _ = pair(Options(max_messages=2))
        own = alice.append(GROUP, b"own", 1)
        alice.receive(b"bob", Payload(messages=tuple(map(of_bob, range(50)))))
        assert alice.message(own) is not None
        assert [record.message_id for record in alice.records] == [own]

    def test_records_of_a_forgotten_message_are_given_up(self) -> None:
        """The application learns of each, with the next epoch."""
        alice, _ = pair(Options(max_messages=1))
        first = alice.append(GROUP, b"first", 1)
        second = alice.append(GROUP, b"second", 2)
        step = alice.tick()
        assert step.events == [
            GaveUp(first, b"bob", RecordType.OFFER),
            Forgotten(first),
        ]
        assert step.payloads == {b"bob": Payload(offers=(second,))}

    def test_number_of_known_ids_is_limited(self) -> None:
        """The oldest is then as unknown as at first."""
        alice, _ = pair(Options(max_messages=1, max_known_ids=3))
        messages = [of_bob(number) for number in range(4)]
        for message in messages:
            alice.receive(b"bob", Payload(messages=(message,)))
        assert len(alice.snapshot().messages) == 3
        found = [
            type(alice.receive(b"bob", Payload(messages=(message,)))[0])
            for message in (messages[3], messages[1], messages[0])
        ]
        assert found == [Duplicate, Duplicate, Delivered]


class TestPayloads:
    def test_payload_is_not_longer_than_allowed(self) -> None:
        """What does not fit follows in the next epochs, all of it."""
        options = Options(mode=Mode.BATCH, max_payload_bytes=20_000)
        alice, bob = pair(options)
        ids = {alice.append(GROUP, bytes(3_000), number) for number in range(30)}
        found: set[bytes] = set()
        epochs = 0
        while found != ids:
            epochs += 1
            payload = alice.tick().payloads[b"bob"]
            assert len(encode(payload)) <= options.max_payload_bytes
            found |= {message_id(message) for message in payload.messages}
            bob.receive(b"alice", payload)
            for answer in bob.tick().payloads.values():
                alice.receive(b"bob", answer)
        assert epochs == 5

    def test_longest_message_is_sent_beside_a_flood_of_acknowledgements(self) -> None:
        """They leave it half of the payload."""
        options = Options(mode=Mode.BATCH, max_payload_bytes=20_000)
        alice, _ = pair(options)
        overhead = 60
        body = bytes(options.max_message_bytes - overhead)
        sent = alice.append(GROUP, body, 1)
        alice.receive(b"bob", Payload(messages=tuple(map(of_bob, range(1_000)))))
        payload = alice.tick().payloads[b"bob"]
        assert [message_id(message) for message in payload.messages] == [sent]
        assert len(payload.acks) == 10_000 // 36
        assert len(alice.pending_acks[b"bob"]) == 1_000 - len(payload.acks)

    def test_payload_has_no_more_records_than_are_read(self) -> None:
        """Many short messages fit into one payload."""
        options = Options(mode=Mode.BATCH, group_id_bytes=None, max_messages=20_000)
        alice = Node(b"alice", options)
        alice.add_group(b"", [b"bob"])
        for number in range(12_000):
            alice.append(b"", b"", number)
        assert len(alice.tick().payloads[b"bob"].messages) == MAX_RECORDS
        assert len(alice.tick().payloads[b"bob"].messages) == 2_000

    def test_ephemeral_messages_that_do_not_fit_are_sent_later(self) -> None:
        """In their order."""
        alice, bob = pair(Options(max_payload_bytes=20_000))
        network = Network([alice, bob])
        ids = [
            alice.append(GROUP, bytes(3_000), number, ephemeral=True)
            for number in range(12)
        ]
        network.run(3)
        assert network.delivered(b"bob") == ids


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_sends", 0),
        ("max_payload_bytes", 5_000),
        ("max_payload_bytes", 2**23),
        ("max_messages", 0),
        ("max_stored_bytes", 100),
        ("max_known_ids", 19_999),
        ("max_requests", 0),
        ("max_acks", 0),
        ("max_parents", -1),
        ("max_waiting", -1),
        ("group_id_bytes", -1),
    ],
)
def test_option_out_of_range_is_refused(option: str, value: int) -> None:
    """By name and value."""
    with pytest.raises(ValueError, match=f"{option} is {value}, but must be at"):
        Options(**{option: value})  # type: ignore[arg-type]
