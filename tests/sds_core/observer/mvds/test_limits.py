"""What strangers may make a view remember is limited, and what is left out counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sds_core.mvds.payload import GroupOffer, Payload, encode
from sds_core.observer.columns import unpack_ints
from sds_core.observer.mvds import limits
from sds_core.observer.mvds.kind import SHARD_VIEWS
from sds_core.observer.mvds.limits import (
    MOST_GROUPS,
    MOST_PAIRS,
    MOST_PEERS,
    MOST_RECORDS,
    MOST_TAPS,
    OTHER_GROUPS,
)
from sds_core.observer.mvds.shard_state import ShardState
from sds_core.observer.mvds.split import SHARDS
from sds_core.observer.mvds.totals import GroupTotals
from sds_core.observer.settings import DEFAULTS
from tests.support.mvds.traffic import (
    GROUP,
    GROUP_NAME,
    Monitor,
    Record,
    observed,
    sent,
)
from tests.support.observer.damage import state_of


def _bytes(records: list[Record]) -> int:
    return sum(len(one.value) for one in records)


def test_oldest_ids_are_forgotten_beyond_the_limit() -> None:
    """What waited with them counts as unknown; what was in flight is unwitnessed."""
    few = replace(DEFAULTS, remembered=5)
    records = [sent(0, "a", "b", messages=[0])]
    records += [sent(one, "a", "b", offers=[one]) for one in range(1, 200)]
    monitor = Monitor(few, restarts=True)
    monitor.batch(records, 300)
    unknown, group = monitor.groups()["unknown"], monitor.groups()[GROUP_NAME]
    assert unknown.records_offer == 199 - 5 * SHARDS
    # The ids, and the copies of payloads that 8 views remember.
    assert unknown.remembered_evicted >= 200 - 5 * SHARDS
    assert (group.addressed, group.unwitnessed, group.in_flight) == (1, 1, 0)


def test_links_of_all_ids_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Peers and pairs count, also after a restart."""
    monkeypatch.setattr(limits, "MOST_LINKS", 30)
    monitor = Monitor(restarts=True)
    for one in range(100):
        # Three links each: two peers and a pair.
        monitor.batch([sent(one, "a", "b", offers=[one])], one)
    assert monitor.groups()["unknown"].records_offer == 100 - 10 * SHARDS


def test_peers_of_an_id_are_limited() -> None:
    """A record of a further peer counts in records, bytes and messages only."""
    records = [sent(n, f"p{n}", "a", acks=[1]) for n in range(1, MOST_PEERS + 9)]
    records.append(sent(MOST_PEERS + 9, "a", "p0", messages=[1]))
    found = observed(records)
    group = found[GROUP_NAME]
    assert (group.records_ack, group.records_message) == (MOST_PEERS + 8, 1)
    assert group.bytes_ack + group.bytes_message == _bytes(records)
    assert (group.messages, group.deliveries) == (1, MOST_PEERS - 1)
    assert group.addressed == 0
    assert found["unknown"].left_out == {"peer": 10}


def test_pairs_of_an_id_are_limited() -> None:
    """A record between a further pair is in no figure of pairs."""
    peers = [f"p{n}" for n in range(60)]
    pairs = [(one, two) for one in peers for two in peers if one != two]
    records = [sent(0, "p0", "p1", messages=[1])]
    records += [sent(1, one, two, offers=[1]) for one, two in pairs]
    again = [sent(9_000, one, two, offers=[1]) for one, two in pairs]
    found = observed([*records, *again])
    assert found[GROUP_NAME].retransmissions_offer == MOST_PAIRS
    assert found["unknown"].left_out == {"pair": 2 * (len(pairs) - MOST_PAIRS)}


def test_records_of_a_further_pair_count_in_figures_of_peers() -> None:
    """But neither as latency nor as retransmissions."""
    peers = [f"p{n}" for n in range(60)]
    pairs = [(one, two) for one in peers for two in peers if one != two]
    others = [sent(0, one, two, requests=[1]) for one, two in pairs[:MOST_PAIRS]]
    further = [
        sent(1, "p58", "p59", messages=[1]),
        sent(5_000, "p58", "p59", messages=[1]),
        sent(6_000, "p59", "p58", acks=[1]),
        sent(7_000, "p57", "p59", offers=[1]),
        sent(8_000, "p59", "p57", requests=[1]),
    ]
    found = observed([*others, *further])
    group = found[GROUP_NAME]
    assert group.bytes_request == _bytes([*others, further[4]])
    assert group.bytes_message == _bytes(further[:2])
    assert (group.addressed, group.acknowledged_in_time, group.deliveries) == (1, 1, 1)
    assert (group.delivery.count, group.sends_messages) == (1, 2)
    assert group.needless_offers == 1
    assert (group.ack_latency.count, group.retransmissions_message) == (0, 0)
    assert found["unknown"].left_out == {"pair": 5}


def test_groups_of_a_view_are_limited() -> None:
    """Messages of further groups count together."""
    count = MOST_GROUPS * SHARDS + 400
    groups = [(n + 1).to_bytes(8, "big") for n in range(count)]
    found = observed(
        [sent(n, "a", "b", messages=[1], group=one) for n, one in enumerate(groups)]
    )
    others = found[OTHER_GROUPS].messages
    assert others > 0
    assert found["unknown"].left_out == {"group": others}
    assert sum(one.messages for one in found.values()) == count
    assert len(found) <= MOST_GROUPS * SHARDS + 2


def test_taps_that_repeat_a_payload_cost_the_same() -> None:
    """Only the latest equal payloads are compared with a copy."""
    repeated = [Record(n, "a", "b", b"", observer="x") for n in range(300)]
    late = [Record(300 + n, "a", "b", b"", observer="y") for n in range(150)]
    unknown = observed([*repeated, *late])["unknown"]
    assert (unknown.payloads, unknown.replicas) == (350, 100)


def test_all_is_forgotten_in_time() -> None:
    """After the horizon nothing but the counters is left."""
    monitor = Monitor()
    records = [sent(n, "a", "b", messages=[n], observer="x", seq=n) for n in range(200)]
    monitor.batch(records, 200)
    full = sum(len(view.to_blob()) for view in monitor.views.values())
    before = monitor.groups()[GROUP_NAME].messages
    monitor.batch([], 2 * DEFAULTS.horizon_ms)
    left = sum(len(view.to_blob()) for view in monitor.views.values())
    assert left < full / 3
    assert monitor.groups()[GROUP_NAME].messages == before


def forgotten(*records: Record) -> GroupTotals:
    """The group unknown, once all ids without a MESSAGE are forgotten."""
    monitor = Monitor()
    monitor.batch(list(records), 1)
    monitor.batch([], 2 * DEFAULTS.horizon_ms)
    return monitor.groups()["unknown"]


def test_records_of_a_payload_are_limited() -> None:
    """The first ones by type are followed; the bytes of the others count too."""
    numbers = range(MOST_RECORDS // 2)
    record = sent(
        0, "a", "b", acks=numbers, offers=numbers, requests=numbers, messages=numbers
    )
    unknown = forgotten(record)
    assert (unknown.records_ack, unknown.records_offer) == (100, 100)
    assert (unknown.records_request, unknown.records_message) == (0, 0)
    assert unknown.left_out == {"record": MOST_RECORDS}
    counted = unknown.bytes_ack + unknown.bytes_offer + unknown.bytes_other
    assert counted == len(record.value)


def test_entries_that_a_payload_makes_are_limited() -> None:
    """However many ids it names, and of whatever type."""
    many = range(4_000)
    for record in (
        sent(0, "a", "b", acks=many),
        sent(0, "a", "b", offers=many),
        sent(0, "a", "b", requests=many),
        sent(0, "a", "b", messages=many),
    ):
        monitor = Monitor()
        monitor.batch([record], 1)
        remembered = 0
        for view in monitor.views.values():
            _, state = state_of(SHARD_VIEWS, view.to_blob(), ShardState)
            remembered += len(unpack_ints(state.messages.keys, signed=True))
        assert remembered == MOST_RECORDS


def test_offers_in_groups_are_limited_too() -> None:
    """They count as offers, whatever group they name."""
    ids = [number.to_bytes(32, "big") for number in range(300)]
    offers = [GroupOffer(GROUP, tuple(ids[at : at + 3])) for at in range(0, 300, 3)]
    value = encode(Payload(group_offers=tuple(offers)))
    unknown = forgotten(Record(0, "a", "b", value))
    assert unknown.records_offer == MOST_RECORDS
    assert unknown.left_out == {"record": 100}


@pytest.mark.parametrize("cut", [MOST_TAPS + 1, MOST_TAPS + 2])
def test_only_taps_of_the_last_hour_count_towards_their_limit(cut: int) -> None:
    """However the records are cut into batches."""
    names = [f"tap {number:02}" for number in range(MOST_TAPS + 1)]
    records = [sent(0, "a", "b", messages=[0], observer=name) for name in names]
    later_ms = DEFAULTS.horizon_ms + 1
    records += [
        sent(later_ms, "a", "b", messages=[1], observer=name)
        for name in ("new", *names[-2:])
    ]
    monitor = Monitor()
    monitor.batch(records[:cut], later_ms if cut > len(names) else 0)
    for name in (GROUP_NAME, "unknown"):
        first = ["new"] if cut > len(names) else names[:-1]
        assert monitor.groups()[name].observers == first
    monitor.batch(records[cut:], later_ms)
    for name in (GROUP_NAME, "unknown"):
        assert monitor.groups()[name].observers == ["new", *names[-2:]]
