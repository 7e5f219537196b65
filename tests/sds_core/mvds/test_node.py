"""Calls of the application, and the state that it stores."""

from __future__ import annotations

import pytest

from sds_core.mvds.events import Forgotten, GaveUp
from sds_core.mvds.node import Node
from sds_core.mvds.node_errors import (
    BadGroupId,
    BadPeerId,
    MessageExists,
    MessageTooLarge,
    UnknownGroup,
)
from sds_core.mvds.options import Mode, Options
from sds_core.mvds.payload import Message, Payload, message_id
from sds_core.mvds.records import RecordType
from tests.support.mvds.network import GROUP, Network, Weather, group_of, pair

OTHER = b"h" * 32


class TestAppending:
    def test_id_is_that_of_the_message(self) -> None:
        """The message can be looked up by it."""
        alice, _ = pair()
        sent = alice.append(GROUP, b"hello", -5)
        assert alice.message(sent) == Message(GROUP, -5, b"hello")
        assert sent == message_id(Message(GROUP, -5, b"hello"))
        assert alice.is_delivered(sent)

    def test_unknown_group_is_an_error(self) -> None:
        """It names the group."""
        alice, _ = pair()
        with pytest.raises(UnknownGroup, match=OTHER.hex()[:60]):
            alice.append(OTHER, b"hello", 1)

    def test_equal_message_is_an_error(self) -> None:
        """Others could not tell the two apart; also a peer's message counts."""
        alice, _ = pair()
        alice.append(GROUP, b"hello", 1)
        alice.receive(b"bob", Payload(messages=(Message(GROUP, 2, b"hello"),)))
        for timestamp in (1, 2):
            with pytest.raises(MessageExists, match="another timestamp"):
                alice.append(GROUP, b"hello", timestamp)
        assert len(alice.records) == 1

    def test_too_long_message_is_an_error(self) -> None:
        """The longest that is allowed arrives."""
        alice, bob = pair(Options(mode=Mode.BATCH))
        limit_bytes = alice.options.max_message_bytes
        with pytest.raises(MessageTooLarge) as caught:
            alice.append(GROUP, bytes(limit_bytes), 1)
        too_much = caught.value.actual_bytes - caught.value.limit_bytes
        sent = alice.append(GROUP, bytes(limit_bytes - too_much), 1)
        network = Network([alice, bob])
        network.run_until_quiet()
        assert network.delivered(b"bob") == [sent]

    def test_timestamp_beyond_64_bits_is_an_error(self) -> None:
        """Nothing is stored."""
        alice, _ = pair()
        with pytest.raises(ValueError, match="out of range"):
            alice.append(GROUP, b"hello", 2**63)
        assert alice.records == ()


class TestGroups:
    def test_ids_of_groups_have_one_length(self) -> None:
        """Otherwise two messages could have one id."""
        alice = Node(b"alice")
        with pytest.raises(BadGroupId, match="has 31 bytes, but must have 32"):
            alice.add_group(bytes(31))
        anything = Node(b"alice", Options(group_id_bytes=None))
        anything.add_group(b"")
        assert anything.append(b"", b"hello", 1)

    def test_node_is_no_peer_of_itself(self) -> None:
        """It would send itself all messages."""
        with pytest.raises(BadPeerId):
            Node(b"alice").add_group(GROUP, [b"bob", b"alice"])

    def test_peer_that_is_added_twice_is_sent_messages_once(self) -> None:
        """The second time has no effect."""
        alice, _ = pair(Options(mode=Mode.BATCH))
        alice.add_group(GROUP, [b"bob", b"bob"])
        alice.append(GROUP, b"hello", 1)
        (payload,) = alice.tick().payloads.values()
        assert len(payload.messages) == 1

    def test_later_peer_is_sent_later_messages(self) -> None:
        """And earlier ones on request."""
        alice, _ = pair()
        early = alice.append(GROUP, b"early", 1)
        alice.add_group(GROUP, [b"carol"])
        late = alice.append(GROUP, b"late", 2)
        assert alice.tick().payloads[b"carol"] == Payload(offers=(late,))
        alice.receive(b"carol", Payload(requests=(early,)))
        (message,) = alice.tick().payloads[b"carol"].messages
        assert message_id(message) == early

    def test_removed_peer_is_sent_nothing(self) -> None:
        """Neither records nor acknowledgements; it is a stranger then."""
        alice, _ = pair()
        alice.append(GROUP, b"hello", 1)
        alice.receive(b"bob", Payload(messages=(Message(GROUP, 2, b""),)))
        alice.remove_peer(GROUP, b"bob")
        assert alice.records == ()
        assert alice.tick().payloads == {}
        alice.append(GROUP, b"later", 3)
        assert alice.tick().payloads == {}

    def test_peer_that_is_in_another_group_keeps_its_records(self) -> None:
        """Those of the group that it left are gone."""
        alice, _ = pair()
        alice.add_group(OTHER, [b"bob"])
        alice.append(GROUP, b"hello", 1)
        stays = alice.append(OTHER, b"hello", 1)
        alice.remove_peer(GROUP, b"bob")
        assert [record.message_id for record in alice.records] == [stays]
        alice.remove_peer(GROUP, b"nobody")
        alice.remove_peer(b"x" * 32, b"bob")
        assert len(alice.records) == 1

    def test_removed_peer_gets_no_ephemeral_message_of_its_former_group(self) -> None:
        """It still gets those of the group that it shares, and others get all."""
        alice, *_ = group_of([b"alice", b"bob", b"carol"])
        alice.add_group(OTHER, [b"bob"])
        secret = alice.append(GROUP, b"secret", 1, ephemeral=True)
        shared = alice.append(OTHER, b"shared", 1, ephemeral=True)
        alice.remove_peer(GROUP, b"bob")
        payloads = alice.tick().payloads
        sent = {
            peer: list(map(message_id, payload.messages))
            for peer, payload in payloads.items()
        }
        assert sent == {b"bob": [shared], b"carol": [secret]}


class TestState:
    def test_restored_node_continues(self) -> None:
        """Epoch, groups, records and messages are those from before."""
        nodes = group_of([b"alice", b"bob", b"carol"])
        network = Network(nodes, Weather(loss=0.4), seed=5)
        for number in range(5):
            nodes[number % 3].append(GROUP, b"%d" % number, number)
            network.run(2)
        for node in nodes:
            restored = Node.restore(node.peer_id, node.snapshot())
            assert restored.snapshot() == node.snapshot()
            assert restored.epoch == node.epoch
            assert set(restored.records) == set(node.records)

    def test_messages_over_the_limits_of_new_options_are_stored_as_dropped(
        self,
    ) -> None:
        """A further restart does not drop them again."""
        alice, _ = pair()
        oldest = alice.append(GROUP, b"0", 0)
        alice.append(GROUP, b"1", 1)
        restored = Node.restore(b"alice", alice.snapshot(), Options(max_messages=1))
        restored.record_changes()
        assert restored.tick().events == [
            GaveUp(oldest, b"bob", RecordType.OFFER),
            Forgotten(oldest),
        ]
        changes = restored.take_changes()
        assert changes is not None
        assert changes.records[b"bob", oldest] is None
        stored = changes.messages[oldest]
        assert stored is not None
        assert stored.message is None

    @pytest.mark.parametrize(
        ("body_bytes", "is_sent"), [(19_000, True), (21_000, False)]
    )
    def test_message_that_no_payload_of_new_options_can_hold_is_not_sent(
        self, body_bytes: int, *, is_sent: bool
    ) -> None:
        """The application hears of it, instead of waiting for ever."""
        alice, _ = pair()
        sent = alice.append(GROUP, bytes(body_bytes), 1, mode=Mode.BATCH)
        short = Options(max_payload_bytes=20_000)
        restored = Node.restore(b"alice", alice.snapshot(), short)
        step = restored.tick()
        assert len(step.payloads) == is_sent
        expected = [] if is_sent else [GaveUp(sent, b"bob", RecordType.MESSAGE)]
        assert step.events == expected
        assert len(restored.records) == is_sent

    def test_changes_add_up_to_the_state(self) -> None:
        """Those of every call, also of removals."""
        options = Options(max_messages=3, max_known_ids=6, max_sends=4)
        nodes = group_of([b"alice", b"bob", b"carol"], lambda _: options)
        alice = nodes[0]
        alice.record_changes()
        stored = alice.snapshot()
        groups, records = dict(stored.groups), dict(stored.records)
        messages = dict(stored.messages)
        network = Network(nodes, Weather(loss=0.4), seed=5)
        for number in range(40):
            nodes[number % 3].append(GROUP, b"%d" % number, number)
            network.run(1)
            if number == 20:
                alice.remove_peer(GROUP, b"carol")
            changes = alice.take_changes()
            assert changes is not None
            for known, changed in (
                (groups, changes.groups),
                (records, changes.records),
                (messages, changes.messages),
            ):
                known.update(changed)  # type: ignore[arg-type]
                for key in [key for key, value in known.items() if value is None]:
                    del known[key]  # type: ignore[arg-type]
            state = alice.snapshot()
            assert (changes.epoch, groups) == (state.epoch, state.groups)
            assert records == state.records
            assert list(messages.items()) == list(state.messages.items())

    def test_call_without_effect_changes_nothing(self) -> None:
        """So nothing is written for it."""
        alice, _ = pair()
        alice.record_changes()
        alice.receive(b"bob", Payload(acks=(bytes(32),)))
        alice.add_group(GROUP, [b"bob"])
        assert alice.take_changes() is None
        alice.tick()
        changes = alice.take_changes()
        assert changes is not None
        assert changes.epoch == 1
        assert alice.take_changes() is None

    def test_nothing_is_collected_unless_asked(self) -> None:
        """It would grow for ever if nobody took it."""
        alice, _ = pair()
        alice.append(GROUP, b"hello", 1)
        alice.tick()
        assert alice.take_changes() is None

    @pytest.mark.rule("mvds-state-2")
    def test_state_has_no_acknowledgements(self) -> None:
        """Neither the records nor what is stored of a node that owes one."""
        _, bob = pair()
        bob.receive(b"alice", Payload(messages=(Message(GROUP, 1, b"hello"),)))
        assert bob.pending_acks
        assert bob.records == ()
        assert bob.snapshot().records == {}
        bob.tick()
        assert bob.records == ()
