"""What strangers may make a view remember is limited, and what is left out counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sds_core.observer.mvds import shard_model
from sds_core.observer.mvds.limits import (
    MOST_GROUPS,
    MOST_PAIRS,
    MOST_PEERS,
    OTHER_GROUPS,
)
from sds_core.observer.mvds.split import SHARDS
from sds_core.observer.settings import DEFAULTS
from tests.support.mvds.traffic import (
    GROUP_NAME,
    Monitor,
    Record,
    observed,
    sent,
)


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
    monkeypatch.setattr(shard_model, "MOST_LINKS", 30)
    monitor = Monitor(restarts=True)
    for one in range(100):
        # Three links each: two peers and a pair.
        monitor.batch([sent(one, "a", "b", offers=[one])], one)
    assert monitor.groups()["unknown"].records_offer == 100 - 10 * SHARDS


def test_peers_of_an_id_are_limited() -> None:
    """A record of a further peer counts as record only."""
    records = [sent(0, "a", "p0", messages=[1])]
    records += [sent(n, f"p{n}", "a", acks=[1]) for n in range(1, MOST_PEERS + 9)]
    found = observed(records)
    assert found[GROUP_NAME].records_ack == MOST_PEERS + 8
    assert found[GROUP_NAME].deliveries == MOST_PEERS - 2
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
