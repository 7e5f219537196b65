"""Hostile frames in one channel change no figure of another, through the real job."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from connectors.kafka.producer import TopicRecord, write
from connectors.kafka.settings import KafkaSettings
from connectors.simulator.records import simulated_records
from sds_core.simulation.scenario import Scenario
from sds_core.simulation.truth import Truth
from tests.support.hostile.mixture import hostile_values
from tests.support.hostile.shapes import CHANNEL

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

START_MS = 1_768_478_400_000
EVERY = 20
"""Every so many frames, one is hostile: 5 %."""

SCENARIO = Scenario.from_mapping(
    {
        "name": "busy",
        "description": "200 frames a second, with losses that are repaired and not",
        "duration_s": 60,
        "participants": 40,
        "channels": [
            {
                "name": "town",
                "count": 20,
                "participants": 8,
                "traffic": {"mean_interval_s": 0.115},
            }
        ],
        "network": {"loss": 0.02},
        "taps": [{"name": "tap", "loss": 0.0}],
    }
)


def mixed(records: list[TopicRecord]) -> Iterator[TopicRecord]:
    """The records, with a hostile frame after every nineteenth frame.

    It lies in the same partition, at the same time.
    """
    frames, hostile = count(1), hostile_values()
    for record in records:
        yield record
        if record.value and next(frames) % (EVERY - 1) == 0:
            key = CHANNEL.encode()
            yield TopicRecord(0, record.timestamp_ms, key, next(hostile), ())


def dumped(part: object) -> str:
    """A part of a report as text: a difference is shown where it is."""
    return json.dumps(part, sort_keys=True, indent=1)


def test_hostile_frames_in_one_channel_change_no_figure_of_another(
    topic: Callable[..., KafkaSettings], drain: Callable[..., dict[str, Any]]
) -> None:
    """Nor the incidents of other channels, nor the dead letters."""
    records = list(simulated_records(SCENARIO, 5, START_MS, 2, Truth(SCENARIO, 5)))
    frames = sum(bool(record.value) for record in records)
    assert frames > 190 * SCENARIO.duration_s
    calm, attacked = topic(partitions=2), topic(partitions=2)
    write(records, calm)
    hurt = list(mixed(records))
    assert len(hurt) - len(records) >= 0.05 * len(hurt) - 30
    write(hurt, attacked)
    expected = drain(calm, "calm", report_detail=True)
    found = drain(attacked, "attacked", report_detail=True, rows=2_000)
    hostile = found["channels"].pop(CHANNEL)
    assert hostile["messages"] > 0
    assert dumped(found["channels"]) == dumped(expected["channels"])
    others = [one for one in found["incidents"] if one["channel"] != CHANNEL]
    assert dumped(others) == dumped(expected["incidents"])
    assert found["totals"]["undecodable"] == expected["totals"]["undecodable"]
