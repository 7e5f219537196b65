"""Hostile frames in one channel change no figure of another, through the real job."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from connectors.kafka.producer import write
from connectors.kafka.settings import KafkaSettings
from connectors.simulator.records import simulated_records
from sds_core.simulation.truth import Truth
from tests.support.hostile.mixture import healthy, mixed
from tests.support.hostile.shapes import CHANNEL

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]

START_MS = 1_768_478_400_000
DURATION_S = 60

PATIENCE_S = 120.0
"""Other tests may keep both cores busy while 12,000 records are written."""


def dumped(part: object) -> str:
    """A part of a report as text: a difference is shown where it is."""
    return json.dumps(part, sort_keys=True, indent=1)


def test_hostile_frames_in_one_channel_change_no_figure_of_another(
    topic: Callable[..., KafkaSettings], drain: Callable[..., dict[str, Any]]
) -> None:
    """Nor the incidents of other channels, nor the dead letters."""
    scenario = healthy(DURATION_S)
    records = list(simulated_records(scenario, 5, START_MS, 2, Truth(scenario, 5)))
    frames = sum(bool(record.value) for record in records)
    assert frames >= 190 * DURATION_S
    calm, attacked = (
        replace(topic(partitions=2), timeout_s=PATIENCE_S) for _ in range(2)
    )
    write(records, calm)
    hurt = list(mixed(records))
    assert len(hurt) - len(records) >= frames // 20
    write(hurt, attacked)
    expected = drain(calm, "calm", report_detail=True)
    found = drain(attacked, "attacked", report_detail=True, rows=2_000)
    hostile = found["channels"].pop(CHANNEL)
    assert hostile["messages"] > 0
    assert dumped(found["channels"]) == dumped(expected["channels"])
    others = [one for one in found["incidents"] if one["channel"] != CHANNEL]
    assert dumped(others) == dumped(expected["incidents"])
    assert found["totals"]["undecodable"] == expected["totals"]["undecodable"]
