"""Records that the taps of a simulation write, and their truth."""

from __future__ import annotations

from itertools import islice

import pytest

from connectors.simulator.records import simulated_records
from connectors.simulator.scenario_files import load_scenario
from sds_core.observer.record import read_headers
from sds_core.simulation.truth import Truth
from sds_core.wire import decode

START_MS = 1_760_000_000_000


@pytest.mark.parametrize("written", [0, 1, 40, 200])
def test_record_that_was_not_written_is_not_in_the_truth(written: int) -> None:
    """A writer requests one more record before it sees that it should stop."""
    truth = Truth("lossy", 1)
    records = simulated_records(load_scenario("lossy"), 1, START_MS, 1, truth)
    taken = list(islice(records, written))
    next(records)
    document = truth.document()
    frames = [record for record in taken if record.value]
    totals = document["totals"]
    assert sum(totals["frames"].values()) + totals["replicas"] == len(frames)
    last = max((record.timestamp_ms for record in taken), default=None)
    assert document["window"]["last_event"] == last


def test_records_follow_the_record_format() -> None:
    """Headers, keys, complete frames and heartbeats as in docs/records.md."""
    truth = Truth("lossy", 1)
    records = simulated_records(load_scenario("lossy"), 1, START_MS, 3, truth)
    some = list(islice(records, 400))
    heartbeats = [record for record in some if not record.value]
    assert {record.partition for record in heartbeats} == {0, 1, 2}
    assert all(read_headers(record.headers).is_heartbeat for record in heartbeats)
    partition_of: dict[bytes | None, int] = {}
    numbers = []
    for record in some:
        if not record.value:
            continue
        headers = read_headers(record.headers)
        numbers.append(headers.seq)
        assert headers.observer == "tap"
        assert headers.waku_hash
        assert record.key == decode(record.value).channel_id.encode()
        assert partition_of.setdefault(record.key, record.partition) == record.partition
    assert numbers == list(range(1, len(numbers) + 1))
