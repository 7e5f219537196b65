"""Recorded traffic of deployed nodes: what the views find, and what really happened.

The tap of the recordings stamps a payload when it is sent: acknowledgements arrive
43 ms to 1.7 s after the latest record of them, by the recordings' own truth. It also
records payloads that the network lost later, and misses one in a hundred.
"""

from __future__ import annotations

from functools import cache

import pytest

from sds_core.mvds.payload import decode, message_id
from sds_core.observer.mvds.totals import GroupTotals
from sds_core.observer.settings import DEFAULTS
from tests.support.mvds.recordings import NAMES, Tapped, Truth, payloads, truth
from tests.support.mvds.reference import figures
from tests.support.mvds.traffic import START_MS, Monitor, Record

pytestmark = pytest.mark.parametrize("name", NAMES)

_SHORTEST_DELAY_MS = 30


@cache
def _monitor(name: str) -> Monitor:
    """Return views that have read the recording in batches of a minute."""
    monitor = Monitor(partitions=3)
    records = _records(name)
    begin = 0
    for at, record in enumerate(records):
        if record.at_ms // 60_000 > records[begin].at_ms // 60_000:
            monitor.batch(records[begin:at], record.at_ms - 1)
            begin = at
    monitor.batch(records[begin:], records[-1].at_ms + 200_000)
    return monitor


@cache
def _records(name: str) -> list[Record]:
    return [
        Record(one.time_ms - START_MS, one.sender, one.receiver, one.value)
        for one in payloads(name)
    ]


@cache
def _tapped(name: str) -> list[Tapped]:
    return list(payloads(name))


def _only_group(name: str) -> GroupTotals:
    groups = dict(_monitor(name).groups())
    groups.pop("unknown")
    (group,) = groups.values()
    return group


def _acknowledgements(name: str) -> dict[tuple[bytes, str], int]:
    """Return the time of the first recorded ACK by id and peer."""
    first: dict[tuple[bytes, str], int] = {}
    for one in _tapped(name):
        for key in decode(one.value).acks:
            first.setdefault((key, one.sender), one.time_ms)
    return first


def _happened(found: Truth) -> dict[tuple[bytes, str], int]:
    """Return when an acknowledgement by a peer first arrived, by id and peer."""
    return {
        (key, peer): time_ms
        for key, peers in found.acknowledged.items()
        for peer, time_ms in peers.items()
    }


def test_groups_and_messages_are_those_of_the_truth(name: str) -> None:
    """The tap missed no message entirely."""
    found = truth(name)
    names = {one.group_id[:8].hex() for one in found.messages.values()}
    assert _monitor(name).groups().keys() == names | {"unknown"}
    assert _only_group(name).messages == len(found.messages)


def test_every_recorded_acknowledgement_is_a_delivery(name: str) -> None:
    """Only those that the tap missed are not counted, and each delivery happened."""
    recorded, happened = _acknowledgements(name), _happened(truth(name))
    assert _only_group(name).deliveries == len(recorded)
    delivered = truth(name).delivered
    assert all(peer in delivered[key] for key, peer in recorded)
    # Those that the tap missed: fewer than two in a hundred.
    assert len(happened.keys() - recorded.keys()) <= 0.02 * len(happened)


def test_recorded_acknowledgement_is_before_it_arrives(name: str) -> None:
    """The tap stamps it when it is sent: the network's delay is missing."""
    recorded = _acknowledgements(name)
    leads = [
        time_ms - recorded[pair]
        for pair, time_ms in _happened(truth(name)).items()
        if pair in recorded
    ]
    assert min(leads) >= _SHORTEST_DELAY_MS


def test_delivery_times_are_those_of_the_recorded_acknowledgements(name: str) -> None:
    """From the first record with the id, whatever its type."""
    began: dict[bytes, int] = {}
    for one in _tapped(name):
        payload = decode(one.value)
        named = (*payload.acks, *payload.offered(), *payload.requests)
        for key in (*named, *map(message_id, payload.messages)):
            began.setdefault(key, one.time_ms)
    times_ms = [
        time_ms - began[key] for (key, _), time_ms in _acknowledgements(name).items()
    ]
    delivery = _only_group(name).delivery
    assert (delivery.count, delivery.sum_ms) == (len(times_ms), sum(times_ms))


def test_nobody_is_blamed_falsely(name: str) -> None:
    """Whoever is blamed acknowledged after the deadline, if at all."""
    happened = _happened(truth(name))
    first_sent: dict[tuple[bytes, str], int] = {}
    for one in _tapped(name):
        for message in decode(one.value).messages:
            first_sent.setdefault((message_id(message), one.receiver), one.time_ms)
    late = {
        pair
        for pair, sent_ms in first_sent.items()
        if happened.get(pair, 1 << 62) > sent_ms + DEFAULTS.ack_deadline_ms
    }
    incidents = [one.incident for one in _monitor(name).incidents.values()]
    blamed = {
        (bytes.fromhex(one.message_id), peer)
        for one in incidents
        for peer in one.lacking
    }
    assert blamed <= late
    keys = {key for key, _ in late}
    assert {bytes.fromhex(one.message_id) for one in incidents} <= keys
    group = _only_group(name)
    assert group.unacknowledged <= len(late)


def test_every_figure_is_that_of_the_reference(name: str) -> None:
    """The plain reference reads the whole recording at once."""
    records = _records(name)
    expected = figures(records, records[-1].at_ms + 200_000)
    unknown = _monitor(name).groups()["unknown"]
    assert unknown.payloads == expected.pop("unknown")["payloads"]
    (counts,) = expected.values()
    group = _only_group(name)
    for field, number in counts.items():
        if field in ("delivery", "ack_latency"):
            assert getattr(group, field).count == number
        elif field in ("delivery_ms", "ack_latency_ms"):
            assert getattr(group, field.removesuffix("_ms")).sum_ms == number
        else:
            assert getattr(group, field) == number, field
