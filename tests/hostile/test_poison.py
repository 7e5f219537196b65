"""``sds-monitor run`` reads a topic with every record that is to harm, to its end."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.dead_letter_reader import DeadLetterReader
from connectors.kafka.producer import partitions_of, write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import (
    KEEP_FOR_EVER,
    ensure_frames_topic,
    ensure_topic,
)
from connectors.recording import load_recording
from tests.support.hostile import poison
from tests.support.monitor import report_of
from tests.support.streaming.command import started

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.long,
]


@pytest.fixture
def kafka() -> Iterator[KafkaSettings]:
    """A broker whose topic of dead letters has Kafka's default size of 1 MiB."""
    with EmbeddedBroker() as broker:
        settings = KafkaSettings(broker.bootstrap)
        # The records are old: by default, the broker deletes their dead letters half a
        # minute after its start.
        configuration = {**KEEP_FOR_EVER, "max.message.bytes": "1048588"}
        ensure_topic(settings, "sds.dead-letter", 1, configuration)
        yield settings


def test_poison_among_genuine_traffic_changes_no_genuine_figure(
    kafka: KafkaSettings, tmp_path: Path
) -> None:
    """On the default heap, to the end of the topic."""
    genuine = load_recording()
    ensure_frames_topic(kafka, partitions_of(genuine))
    harmful = [
        *poison.RECORDS,
        *poison.names(60, 900_000),
        *poison.names(5_000, 10_000),
        *poison.names(5_000, 512),
    ]
    write(poison.mixed(genuine, iter(harmful), each=8), kafka)
    with started(kafka, tmp_path, "--until-caught-up") as process:
        assert process.wait(200) == 0, (tmp_path / "stderr").read_text()
    report = json.loads((tmp_path / "report.json").read_text())
    truth = report_of(genuine)["channels"]
    assert {name: report["channels"][name] for name in truth} == truth
    expected = Counter(one.reason for one in harmful if one.reason)
    counts = report["totals"]["undecodable"]
    assert {reason: n for reason, n in counts.items() if n} == expected
    letters = Counter(one.reason for one in DeadLetterReader(kafka))
    assert letters == expected
