"""The history in Kafka, on a real broker."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator

import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from connectors.broker.broker import EmbeddedBroker
from connectors.history.schema import CHANNEL_MINUTES, INCIDENTS, channel_incident
from connectors.history.topics import HistoryTopics
from connectors.kafka.consumer import OffsetRange, fetch
from connectors.kafka.settings import (
    MAX_MESSAGE_BYTES,
    Client,
    KafkaSettings,
    KafkaUnreachable,
)
from connectors.kafka.topics import ensure_topic
from sds_core.observer.record import RawRecord
from tests.support.history.rows import MONDAY_MS, incident_rows, lost, minute
from tests.support.kafka import KafkaTopic

pytestmark = pytest.mark.kafka

Open = Callable[[str], HistoryTopics]


@pytest.fixture
def settings(kafka_broker: EmbeddedBroker) -> KafkaSettings:
    """The session's broker."""
    return KafkaSettings(kafka_broker.bootstrap, timeout_s=20.0)


@pytest.fixture
def open_topics(settings: KafkaSettings) -> Iterator[Open]:
    """Open topics whose names begin with a word; they are closed at the end."""
    opened: list[HistoryTopics] = []

    def start(word: str) -> HistoryTopics:
        topics = HistoryTopics(
            settings,
            [f"{word}.{what}" for what in ("incidents", "minutes", "verdicts")],
            90_000,
        )
        opened.append(topics)
        return topics

    yield start
    for topics in opened:
        topics.close()


def read(settings: KafkaSettings, topic: str, count: int) -> list[RawRecord]:
    """The first records of a topic."""
    there = KafkaSettings(settings.bootstrap, topic, settings.timeout_s)
    found = fetch(Client.CONFLUENT, there, [OffsetRange(0, 0, count)])
    return [record for records in found for record in records]


def test_rows_are_records_under_their_keys(
    settings: KafkaSettings, open_topics: Open
) -> None:
    """In order, with the time of writing, in both topics."""
    topics = open_topics("rows")
    found = [lost("m", hint=b"\xff"), lost("é\x00"), lost("m", ended_ms=MONDAY_MS + 5)]
    rows = incident_rows(*found)
    minutes = [minute(MONDAY_MS, told=4, messages=9)]
    before_ms = time.time_ns() // 1_000_000
    topics.write(INCIDENTS, rows)
    for _ in range(2):
        topics.write(CHANNEL_MINUTES, minutes)
    records = read(settings, "rows.incidents", 3)
    assert [json.loads(record.value or b"") for record in records] == rows
    assert [channel_incident(json.loads(r.value or b"")) for r in records] == found
    keys = [record.key for record in records]
    assert keys[0] == keys[2] == b'["town","lost","m"]'
    assert json.loads(keys[1] or b"") == ["town", "lost", "é\x00"]
    assert before_ms <= records[0].timestamp_ms <= time.time_ns() // 1_000_000
    records = read(settings, "rows.minutes", 2)
    assert [json.loads(record.value or b"") for record in records] == minutes * 2
    assert records[0].key == f'["town",{MONDAY_MS}]'.encode()


def test_topics_are_created_with_compaction(
    settings: KafkaSettings, open_topics: Open
) -> None:
    """They also have the requested retention time."""
    topics = open_topics("made")
    for table in (INCIDENTS, CHANNEL_MINUTES):
        topics.write(table, [])
    for name in ("made.incidents", "made.minutes"):
        resource = ConfigResource(ConfigResourceType.TOPIC, name)
        with KafkaTopic(settings).admin() as admin:
            (found,) = admin.describe_configs([resource])["topic"].values()
        made = {setting: told["value"] for setting, told in found.items()}
        assert made == {
            "cleanup.policy": "compact,delete",
            "retention.ms": "90000",
            "max.message.bytes": str(MAX_MESSAGE_BYTES),
            "message.timestamp.type": "CreateTime",
        }


def test_refused_row_raises_an_error(
    settings: KafkaSettings, open_topics: Open
) -> None:
    """The rows can then be written again."""
    ensure_topic(
        settings, "small.incidents", configuration={"max.message.bytes": "900"}
    )
    topics = open_topics("small")
    with pytest.raises(KafkaUnreachable):
        topics.write(
            INCIDENTS, incident_rows(lost(random.Random(1).randbytes(2_000).hex()))
        )
    topics.write(INCIDENTS, incident_rows(lost("m")))
    assert len(read(settings, "small.incidents", 1)) == 1
