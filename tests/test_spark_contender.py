"""The Spark job with three figures finds what the monitor finds, where both look."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from benchmarks.jars import NoJars, kafka_source_jars
from benchmarks.topics import load
from connectors.kafka.producer import TopicRecord
from connectors.simulator.records import simulated_records
from sds_core.simulation.scenario import Scenario
from sds_core.simulation.truth import Truth
from sds_core.wire import decode
from tests.support.kafka import TopicMaker
from tests.support.monitor import report_of

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]

START_MS = 1_760_000_000_000
EARLY_MS = 120_000
PARTITIONS = 2
SCENARIO = Scenario.from_mapping(
    {
        "name": "lossy",
        "description": "messages are lost, requested and repaired",
        "duration_s": 600,
        "settle_s": 300,
        "participants": 6,
        "channels": [
            {
                "name": "lossy",
                "count": 3,
                "participants": 6,
                "traffic": {"mean_interval_s": 4},
            }
        ],
        "network": {"loss": 0.1},
        "taps": [{"name": "tap", "loss": 0.05}],
    }
)


def test_figures_are_those_of_the_monitor(
    kafka_topic: TopicMaker, tmp_path: Path
) -> None:
    """Messages, acknowledgements by history, missing ids, and repairs."""
    try:
        kafka_source_jars()
    except NoJars as error:
        pytest.skip(str(error))
    truth = Truth(SCENARIO.name, 1)
    records = list(simulated_records(SCENARIO, 1, START_MS, PARTITIONS, truth))
    kafka = kafka_topic(PARTITIONS).settings
    load(kafka, records)
    options = {
        "--bootstrap": kafka.bootstrap,
        "--topic": kafka.topic,
        "--checkpoint": str(tmp_path / "checkpoint"),
        "--batch": str(len(records) // 3),
    }
    words = [word for option in options.items() for word in option]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.contenders.spark_figures", *words],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    ours = report_of(records)["totals"]
    gaps, repair = ours["gaps"], ours["repair"]
    assert found["messages"] == ours["messages"]
    assert found["acknowledged"] == ours["acknowledged"]["definite"]
    assert found["latency_ms"] == ours["ack_latency_ms"]["definite"]["sum"]
    assert found["requests"] == repair["requests"]
    assert found["answered"] == repair["answered"]
    lost = gaps["open"] + gaps["lost"] + gaps["tap_gap"] - gaps["retracted"]
    # The monitor leaves out ids that may be older than its first sight of the channel.
    assert lost <= found["missing"] <= lost + len(_never_seen(records, EARLY_MS))


def _never_seen(records: Iterable[TopicRecord], within_ms: int) -> set[str]:
    """Return the ids that were named so early, and are of no frame."""
    named, seen = set(), set()
    for record in records:
        if record.value:
            frame = decode(record.value)
            seen.add(frame.message_id)
            if record.timestamp_ms < START_MS + within_ms:
                named.update(entry.message_id for entry in frame.causal_history)
    return named - seen
