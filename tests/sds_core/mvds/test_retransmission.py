"""When records are sent again, and when no longer."""

from __future__ import annotations

from random import Random

import pytest

from sds_core.mvds.backoff import DEFAULT, deployed_exponential, exponential, linear
from sds_core.mvds.events import GaveUp
from sds_core.mvds.node import Node
from sds_core.mvds.options import Mode, Options
from sds_core.mvds.payload import Payload
from sds_core.mvds.records import RecordType
from tests.support.mvds.network import GROUP, pair

MESSAGE_ID = b"m" * 32


def epochs_of_sending(node: Node, epochs: int) -> list[int]:
    """The epochs in which a node sends something."""
    return [node.epoch for _ in range(epochs) if node.tick().payloads]


def prepared(kind: RecordType, options: Options) -> Node:
    """A node with one record of a type for `bob`."""
    alice, _ = pair(options)
    if kind is RecordType.REQUEST:
        alice.receive(b"bob", Payload(offers=(MESSAGE_ID,)))
    else:
        mode = Mode.BATCH if kind is RecordType.MESSAGE else Mode.INTERACTIVE
        alice.append(GROUP, b"hello", 1, mode=mode)
    (record,) = alice.records
    assert record.type is kind
    return alice


class TestBackoff:
    @pytest.mark.rule("mvds-retransmission-3")
    def test_default_doubles_up_to_a_bound_and_begins_anew(self) -> None:
        """As the document recommends."""
        waits = [DEFAULT(count, 0) for count in range(1, 10)]
        assert waits == [2, 4, 8, 16, 32, 64, 128, 2, 4]

    @pytest.mark.rule("mvds-retransmission-3")
    def test_bound_that_no_doubling_meets_is_kept(self) -> None:
        """The last wait is below it."""
        backoff = exponential(3, 20)
        assert [backoff(count, 100) - 100 for count in range(1, 6)] == [3, 6, 12, 3, 6]

    @pytest.mark.parametrize(("first", "bound"), [(0, 5), (6, 5), (-1, -1)])
    def test_impossible_waits_are_refused(self, first: int, bound: int) -> None:
        """The error has both values."""
        with pytest.raises(ValueError, match=f"{first}.*{bound}"):
            exponential(first, bound)

    def test_linear_is_that_of_the_simulation_of_vacp2p(self) -> None:
        """It waits for two epochs more each time."""
        assert [linear(count, 10) for count in (1, 2, 3)] == [12, 14, 16]

    def test_deployed_one_doubles_from_ninety_epochs_with_chance(self) -> None:
        """At 300 ms: 27 s, 54 s, 108 s, and up to 9 s more."""
        backoff = deployed_exponential(Random(1))
        for count, wait in ((1, 90), (2, 180), (3, 360)):
            found = {backoff(count, 7) - 7 for _ in range(1_000)}
            assert (min(found), max(found)) == (wait, wait + 29)

    def test_deployed_one_stops_doubling(self) -> None:
        """A record that is sent for years has a finite wait."""
        assert deployed_exponential(Random(1))(10_000, 0) < 90 * 2**15


class TestRecords:
    @pytest.mark.rule("mvds-interactive-6", "mvds-retransmission-1")
    @pytest.mark.parametrize("kind", RecordType)
    def test_every_type_is_sent_again_when_its_epoch_comes(
        self, kind: RecordType
    ) -> None:
        """Not before, and with the same content."""
        alice = prepared(kind, Options(backoff=linear))
        first = alice.tick().payloads
        assert epochs_of_sending(alice, 20) == [3, 7, 13, 21]
        alice.peer_online(b"bob")
        assert alice.tick().payloads == first

    @pytest.mark.rule("mvds-batch-4")
    def test_message_in_batch_mode_is_sent_again(self) -> None:
        """Until it is acknowledged."""
        alice = prepared(RecordType.MESSAGE, Options(backoff=linear))
        assert epochs_of_sending(alice, 7) == [1, 3, 7]
        (record,) = alice.records
        alice.receive(b"bob", Payload(acks=(record.message_id,)))
        assert epochs_of_sending(alice, 100) == []

    @pytest.mark.rule("mvds-state-1", "mvds-state-type", "mvds-state-count")
    @pytest.mark.rule("mvds-state-epoch")
    def test_record_has_type_send_count_and_send_epoch(self) -> None:
        """Its epoch is the next one at which it can be sent."""
        alice = prepared(RecordType.OFFER, Options(backoff=linear))
        for count, epoch in ((0, 1), (1, 3), (2, 7), (3, 13)):
            while alice.records[0].send_count < count:
                alice.tick()
            (record,) = alice.records
            assert (record.peer, record.type) == (b"bob", RecordType.OFFER)
            assert (record.send_count, record.send_epoch) == (count, epoch)

    @pytest.mark.rule("mvds-retransmission-2a", "mvds-retransmission-2b")
    def test_count_and_epoch_rise_with_each_sending(self) -> None:
        """The epoch even if the back-off returns one that is past."""
        alice = prepared(RecordType.OFFER, Options(backoff=lambda count, epoch: 0))
        for number in range(5):
            (record,) = alice.records
            assert record.send_count == number
            assert record.send_epoch == alice.epoch + 1
            assert alice.tick().payloads

    def test_request_does_not_hasten_a_message(self) -> None:
        """Or a peer could have a long message sent in every epoch."""
        alice = prepared(RecordType.MESSAGE, Options(backoff=linear))
        alice.tick()
        (before,) = alice.records
        alice.receive(b"bob", Payload(requests=(before.message_id,)))
        assert alice.records == (before,)


class TestGivingUp:
    @pytest.mark.parametrize("kind", RecordType)
    def test_record_is_given_up_after_the_most_sendings(self, kind: RecordType) -> None:
        """When it would be sent once more; the application learns of it."""
        alice = prepared(kind, Options(max_sends=3, backoff=linear))
        message_id = alice.records[0].message_id
        steps = [alice.tick() for _ in range(20)]
        assert sum(bool(step.payloads) for step in steps) == 3
        events = [event for step in steps for event in step.events]
        assert events == [GaveUp(message_id, b"bob", kind)]
        assert alice.records == ()

    def test_node_does_not_give_up_by_default(self) -> None:
        """The document knows no end of retransmission."""
        alice = prepared(RecordType.OFFER, Options())
        assert len(epochs_of_sending(alice, 10_000)) > 200
        assert len(alice.records) == 1

    def test_late_acknowledgement_of_a_record_given_up_is_no_error(self) -> None:
        """It has no effect."""
        alice = prepared(RecordType.MESSAGE, Options(max_sends=1, backoff=linear))
        message_id = alice.records[0].message_id
        epochs_of_sending(alice, 9)
        assert alice.receive(b"bob", Payload(acks=(message_id,))) == []


class TestPeerOnline:
    def test_records_of_the_peer_are_sent_at_once(self) -> None:
        """Their send count goes on, so that they are still given up in the end."""
        alice = prepared(RecordType.OFFER, Options(backoff=linear))
        alice.add_group(GROUP, [b"carol"])
        alice.append(GROUP, b"other", 2)
        for _ in range(8):
            alice.tick()
        alice.peer_online(b"carol")
        counts = {r.peer: r.send_count for r in alice.records}
        step = alice.tick()
        assert list(step.payloads) == [b"carol"]
        after = {r.peer: r.send_count for r in alice.records}
        assert after == counts | {b"carol": counts[b"carol"] + 1}

    def test_unknown_peer_has_no_records(self) -> None:
        """Nothing happens."""
        alice = prepared(RecordType.OFFER, Options())
        alice.tick()
        alice.peer_online(b"nobody")
        assert alice.tick().payloads == {}
