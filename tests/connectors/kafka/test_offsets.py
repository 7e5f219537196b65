"""Offsets of a topic on real Kafka, by position and by time."""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka import offsets as offsets_module
from connectors.kafka.clients import kafka_python_options
from connectors.kafka.offsets import TimedOffset, Topic, TopicOffsets
from connectors.kafka.settings import KafkaSettings, KafkaUnreachable, TopicMissing
from tests.support.kafka import (
    BUSY_S,
    NOBODY,
    KafkaTopic,
    TopicMaker,
    make_topic,
    refused_sockets_stay_open,
)

pytestmark = pytest.mark.kafka


@pytest.fixture
def offsets_of() -> Iterator[Callable[[KafkaTopic], TopicOffsets]]:
    """Look into topics; the connections are closed in the end."""
    opened: list[TopicOffsets] = []

    def look(topic: KafkaTopic) -> TopicOffsets:
        opened.append(TopicOffsets(topic.settings))
        return opened[-1]

    yield look
    for offsets in opened:
        offsets.close()


Look = Callable[[KafkaTopic], TopicOffsets]


def test_added_partitions_are_listed_at_once(
    kafka_topic: TopicMaker, offsets_of: Look
) -> None:
    """Their offsets can be queried too."""
    topic = kafka_topic(2)
    offsets = offsets_of(topic)
    assert offsets.partitions() == [0, 1]
    topic.add_partitions(12)
    assert offsets.partitions() == list(range(12))
    assert offsets.latest(range(12)) == dict.fromkeys(range(12), 0)


def test_topic_made_anew_has_another_id(
    kafka_topic: TopicMaker, offsets_of: Look
) -> None:
    """And the id of a topic stays, whoever asks."""
    topic = kafka_topic()
    first = offsets_of(topic).describe()
    assert first.partitions == [0]
    assert offsets_of(topic).describe() == first
    topic.make_anew(partitions=2)
    second = offsets_of(topic).describe()
    assert second.partitions == [0, 1]
    assert None not in (first.id, second.id)
    assert first.id != second.id


def test_id_is_the_one_that_kafkas_tools_print(
    kafka_topic: TopicMaker, offsets_of: Look
) -> None:
    """URL-safe base64 of its 16 bytes, without padding."""
    topic = kafka_topic()
    with topic.admin() as admin:
        (described,) = admin.describe_topics([topic.settings.topic])
    found = offsets_of(topic).describe().id
    assert found is not None
    decoded = base64.urlsafe_b64decode(f"{found}==")
    assert decoded == uuid.UUID(str(described["topic_id"])).bytes


def test_broker_that_gives_no_id_is_read(
    kafka_topic: TopicMaker, offsets_of: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that asks as one of Kafka 2.7 gets none."""

    def options_of_2_7(settings: KafkaSettings) -> dict[str, Any]:
        return kafka_python_options(settings) | {"api_version": (2, 7)}

    monkeypatch.setattr(offsets_module, "kafka_python_options", options_of_2_7)
    assert offsets_of(kafka_topic(2)).describe() == Topic(None, [0, 1])


def test_empty_partition_has_no_offset_by_time(
    kafka_topic: TopicMaker, offsets_of: Look
) -> None:
    """It has a beginning and an end."""
    offsets = offsets_of(kafka_topic(2))
    assert offsets.earliest([0, 1]) == {0: 0, 1: 0}
    assert offsets.latest([0, 1]) == {0: 0, 1: 0}
    assert offsets.newest([0, 1]) == {}
    assert offsets.first_at_or_after([0, 1], 0) == {}


def test_no_partitions_have_no_offsets(
    kafka_topic: TopicMaker, offsets_of: Look
) -> None:
    """An empty query is allowed."""
    offsets = offsets_of(kafka_topic())
    assert offsets.latest([]) == {}
    assert offsets.first_at_or_after([], 0) == {}


def test_records_are_found_by_time(kafka_topic: TopicMaker, offsets_of: Look) -> None:
    """The first by offset with at least a time, and the one with the maximum."""
    topic = kafka_topic(3)
    topic.write_times([1_000, 3_000, 2_000, 3_000, 2_500])
    topic.write_times([500], partition=1)
    offsets = offsets_of(topic)
    every = [0, 1, 2]
    assert offsets.latest(every) == {0: 5, 1: 1, 2: 0}
    assert offsets.newest(every) == {0: TimedOffset(1, 3_000), 1: TimedOffset(0, 500)}
    assert offsets.first_at_or_after(every, 0) == {
        0: TimedOffset(0, 1_000),
        1: TimedOffset(0, 500),
    }
    assert offsets.first_at_or_after(every, 1_001) == {0: TimedOffset(1, 3_000)}
    assert offsets.first_at_or_after(every, 3_001) == {}
    assert offsets.first_at_or_after([1], 500) == {1: TimedOffset(0, 500)}


def test_retention_moves_the_earliest_offset(
    kafka_topic: TopicMaker, offsets_of: Look
) -> None:
    """A deleted record is not found by time, unless it was the newest."""
    topic = kafka_topic(2)
    topic.write_times([1_000, 2_000, 3_000])
    topic.write_times([1_000], partition=1)
    topic.delete_before(2)
    topic.delete_before(1, partition=1)
    offsets = offsets_of(topic)
    assert offsets.earliest([0, 1]) == {0: 2, 1: 1}
    assert offsets.latest([0, 1]) == {0: 3, 1: 1}
    assert offsets.first_at_or_after([0, 1], 0) == {0: TimedOffset(2, 3_000)}
    assert offsets.newest([0, 1]) == {
        0: TimedOffset(2, 3_000),
        1: TimedOffset(0, 1_000),
    }


def test_open_transaction_ends_the_partition(
    kafka_topic: TopicMaker, offsets_of: Look
) -> None:
    """Its records and those after it are not visible yet."""
    topic = kafka_topic()
    topic.write_times([1_000])
    offsets = offsets_of(topic)
    with topic.transaction([2_000, 3_000]):
        topic.write_times([4_000])
        assert offsets.latest([0]) == {0: 1}
        assert offsets.first_at_or_after([0], 500) == {0: TimedOffset(0, 1_000)}
        assert offsets.first_at_or_after([0], 2_000) == {}
        assert offsets.newest([0]) == {}
    topic.wait_for(lambda: offsets.latest([0]) == {0: 5})
    assert offsets.first_at_or_after([0], 2_000) == {0: TimedOffset(1, 2_000)}


def test_end_of_transaction_has_the_time_of_its_commit(
    kafka_topic: TopicMaker, offsets_of: Look
) -> None:
    """Admission must not take it for a record's time."""
    topic = kafka_topic()
    started_ms = time.time_ns() // 1_000_000
    topic.write_transaction([1_000])
    newest = offsets_of(topic).newest([0])[0]
    assert newest.offset == 1
    assert newest.timestamp_ms >= started_ms


def test_missing_topic_is_an_error_soon(
    kafka_topic: TopicMaker, offsets_of: Look
) -> None:
    """It does not take as long as the timeout for unreachable brokers."""
    settings = kafka_topic().settings
    missing = offsets_of(KafkaTopic(replace(settings, topic="no-such-topic")))
    impossible = offsets_of(KafkaTopic(replace(settings, topic="?")))
    asked: list[Callable[[], object]] = [
        missing.partitions,
        lambda: missing.latest([0]),
        impossible.partitions,
    ]
    for ask in asked:
        started = time.monotonic()
        with pytest.raises(TopicMissing, match="--topic"):
            ask()
        assert time.monotonic() - started < BUSY_S


def test_commit_is_seen_by_lag_tools(kafka_topic: TopicMaker, offsets_of: Look) -> None:
    """No consumer has to join the group."""
    topic = kafka_topic(2)
    topic.write_times([1_000, 2_000])
    offsets = offsets_of(topic)
    offsets.commit("monitor", {0: 1, 1: 0})
    offsets.commit("monitor", {0: 2})
    with topic.admin() as admin:
        committed = admin.list_group_offsets("monitor")["monitor"]
    name = topic.settings.topic
    assert {partition: at.offset for partition, at in committed.items()} == {
        TopicPartition(name, 0): 2,
        TopicPartition(name, 1): 0,
    }


def test_closed_connection_is_opened_again(
    kafka_topic: TopicMaker, offsets_of: Look
) -> None:
    """Any number of times."""
    offsets = offsets_of(kafka_topic())
    for _ in range(2):
        assert offsets.partitions() == [0]
        offsets.close()
        offsets.close()


@refused_sockets_stay_open
def test_restart_of_the_broker_is_survived(tmp_path: Path) -> None:
    """A call waits for the broker, up to the timeout in the settings."""
    with EmbeddedBroker(tmp_path) as broker:
        topic = make_topic(broker)
        topic.write_times([1_000])
        port = int(broker.bootstrap.rpartition(":")[2])
        offsets = TopicOffsets(topic.settings)
        impatient_s = 5.0
        impatient = TopicOffsets(replace(topic.settings, timeout_s=impatient_s))
        assert offsets.latest([0]) == impatient.latest([0]) == {0: 1}
    with closing(offsets), closing(impatient):
        started = time.monotonic()
        with pytest.raises(KafkaUnreachable):
            impatient.latest([0])
        assert time.monotonic() - started < impatient_s + BUSY_S
        with EmbeddedBroker(tmp_path, port=port):
            assert offsets.latest([0]) == {0: 1}
            assert offsets.partitions() == [0]


@refused_sockets_stay_open
def test_unreachable_broker_is_an_error_in_time() -> None:
    """The error has the broker's address."""
    started = time.monotonic()
    with pytest.raises(KafkaUnreachable, match=r"127\.0\.0\.1:1 .*--bootstrap"):
        TopicOffsets(NOBODY).partitions()
    assert time.monotonic() - started < NOBODY.timeout_s + BUSY_S
