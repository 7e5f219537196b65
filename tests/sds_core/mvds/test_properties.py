"""What holds in any network that delivers now and then."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sds_core.mvds.backoff import Backoff, exponential, linear
from sds_core.mvds.events import Delivered
from sds_core.mvds.node import Node
from sds_core.mvds.options import Mode, Options
from sds_core.mvds.payload import Payload, message_id
from sds_core.mvds.records import Record, RecordType
from tests.support.mvds.network import CALM, GROUP, Network, Weather, group_of
from tests.support.properties import CAREFUL

PEERS = (b"alice", b"bob", b"carol", b"dave")

weathers = st.builds(
    Weather,
    loss=st.floats(0, 0.7),
    copies=st.floats(0, 0.5),
    delay_epochs=st.integers(0, 4),
)
backoffs = st.sampled_from([exponential(), exponential(1, 4), linear])
mode_lists = st.lists(st.sampled_from(Mode), min_size=2, max_size=4)
plans = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(Mode), st.integers(0, 5)),
    min_size=1,
    max_size=8,
)
"""Messages: who sends one, in which mode, and the epochs until the next one."""


class Checked(Node):
    """A node that checks its own invariants in every epoch."""

    def tick(self) -> object:  # type: ignore[override]
        """Check what is sent against the state before and after."""
        before = {_key(one): one for one in self.records}
        acks = self.pending_acks
        epoch = self.epoch
        step = super().tick()
        after = {_key(one): one for one in self.records}
        assert self.epoch == epoch + 1
        assert len(after) == len(self.records)
        sent = {
            (peer, *one)
            for peer, payload in step.payloads.items()
            for one in _records_of(payload)
        }
        for key, record in before.items():
            is_due = record.send_epoch <= self.epoch
            assert ((*key, record.type) in sent) is is_due
            if is_due:
                assert after[key].send_count == record.send_count + 1
                assert after[key].send_epoch > max(record.send_epoch, self.epoch)
            else:
                assert after[key] == record
        assert len(sent) == sum(len(_records_of(p)) for p in step.payloads.values())
        assert {p: x.acks for p, x in step.payloads.items() if x.acks} == acks
        assert self.pending_acks == {}
        return step

    def receive(self, sender: bytes, payload: Payload) -> object:  # type: ignore[override]
        """Check that every message is acknowledged, and no record is of type ACK."""
        events = super().receive(sender, payload)
        acked = self.pending_acks.get(sender, ())
        assert {message_id(one) for one in payload.messages} <= set(acked)
        assert {one.type for one in self.records} <= set(RecordType)
        held = {one.message_id for one in self.records if self.message(one.message_id)}
        for record in self.records:
            assert (record.type is RecordType.REQUEST) != (record.message_id in held)
        return events


def _key(record: Record) -> tuple[bytes, bytes]:
    return record.peer, record.message_id


def _records_of(payload: Payload) -> list[tuple[bytes, RecordType]]:
    return [
        *((one, RecordType.OFFER) for one in payload.offers),
        *((one, RecordType.REQUEST) for one in payload.requests),
        *((message_id(one), RecordType.MESSAGE) for one in payload.messages),
    ]


def checked_group(options: Callable[[int], Options], count: int) -> list[Node]:
    """Checked nodes that are all in one group."""
    nodes: list[Node] = [Checked(PEERS[i], options(i)) for i in range(count)]
    for node in nodes:
        node.add_group(GROUP, [one.peer_id for one in nodes if one is not node])
    return nodes


@pytest.mark.rule("mvds-retransmission-1", "mvds-flow-1")
@settings(CAREFUL, max_examples=60)
@given(mode_lists, plans, weathers, backoffs, st.booleans(), st.integers(0, 99))
def test_every_message_is_delivered_once_to_everybody_and_no_record_stays(
    modes: list[Mode],
    plan: list[tuple[int, Mode, int]],
    weather: Weather,
    backoff: Backoff,
    forward: bool,
    seed: int,
) -> None:
    """If payloads are lost independently, in any mix of modes, in whatever order."""
    nodes = checked_group(
        lambda i: Options(mode=modes[i], backoff=backoff, forward=forward), len(modes)
    )
    network = Network(nodes, weather, seed)
    sent: dict[bytes, bytes] = {}
    for number, (who, mode, pause) in enumerate(plan):
        author = nodes[who % len(nodes)]
        one = author.append(GROUP, b"%d" % number, number, mode=mode)
        sent[one] = author.peer_id
        network.run(pause)
    network.run_until_quiet()
    for node in nodes:
        expected = [one for one, author in sent.items() if author != node.peer_id]
        assert sorted(network.delivered(node.peer_id)) == sorted(expected)


@settings(CAREFUL, max_examples=40)
@given(st.sampled_from(Mode), weathers, st.integers(0, 99), st.integers(1, 5))
def test_delivery_costs_at_least_two_or_four_records(
    mode: Mode, weather: Weather, seed: int, messages: int
) -> None:
    """Exactly so many if nothing is lost and answers come before the next sending."""
    records = 2 if mode is Mode.BATCH else 4
    for conditions in (CALM, weather):
        nodes = checked_group(lambda _: Options(mode=mode), 2)
        network = Network(nodes, conditions, seed)
        for number in range(messages):
            nodes[0].append(GROUP, b"", number)
        network.run_until_quiet()
        delivered = len(network.delivered(b"bob"))
        assert delivered == messages
        total = sum(network.sent.values())
        assert total >= records * messages
        if conditions is CALM:
            assert total == records * messages


@settings(CAREFUL, max_examples=40)
@given(st.sampled_from(Mode), st.integers(0, 99), st.integers(1, 300))
def test_message_for_a_peer_that_was_away_arrives_soon_after_its_return(
    mode: Mode, seed: int, away_epochs: int
) -> None:
    """A few epochs after the application says that the peer is back."""
    nodes = group_of(PEERS[:2], lambda _: Options(mode=mode))
    network = Network(nodes, Weather(loss=1.0), seed)
    nodes[0].append(GROUP, b"hello", 1)
    network.run(away_epochs)
    network.weather = CALM
    nodes[0].peer_online(PEERS[1])
    network.run(4)
    assert len([e for e in network.events[PEERS[1]] if isinstance(e, Delivered)]) == 1
