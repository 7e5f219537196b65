"""Reading offset ranges from real Kafka: two clients, the same rows."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.consumer import OffsetRange, fetch
from connectors.kafka.settings import (
    Client,
    KafkaUnreachable,
    RecordsLost,
    TopicMissing,
)
from sds_core.observer.record import RawRecord
from tests.support.kafka import (
    BUSY_S,
    NOBODY,
    KafkaTopic,
    TopicMaker,
    make_topic,
    refused_sockets_stay_open,
)

pytestmark = pytest.mark.kafka

BOTH_CLIENTS = pytest.mark.parametrize("client", Client)
MIB = 1024 * 1024


def read(
    client: Client, topic: KafkaTopic, *ranges: tuple[int, int, int]
) -> list[RawRecord]:
    """All records of ranges (partition, start, end), sorted by partition alone."""
    wanted = [OffsetRange(*numbers) for numbers in ranges]
    batches = list(fetch(client, topic.settings, wanted))
    assert all(batches), "an empty batch is of no use"
    return sorted(
        (record for batch in batches for record in batch),
        key=lambda record: record.partition,
    )


def offsets(records: Sequence[RawRecord]) -> list[tuple[int, int]]:
    """Where records lie."""
    return [(record.partition, record.offset) for record in records]


@BOTH_CLIENTS
def test_ranges_of_several_partitions_are_read_in_order(
    kafka_topic: TopicMaker, client: Client
) -> None:
    """All records of each range and none around it."""
    topic = kafka_topic(3)
    for partition in range(3):
        topic.write_times(range(1, 2_001), partition)
    ranges = [(0, 0, 1_500), (1, 700, 701), (2, 1_990, 2_000)]
    records = read(client, topic, *ranges)
    assert offsets(records) == [(p, o) for p, s, e in ranges for o in range(s, e)]
    for record in records:
        assert record.value == str(record.offset).encode()
        assert record.timestamp_ms == record.offset + 1
        assert (record.key, list(record.headers)) == (None, [])


@BOTH_CLIENTS
def test_ranges_of_one_partition_are_read_one_after_the_other(
    kafka_topic: TopicMaker, client: Client
) -> None:
    """A range may be read again or lie before the last, as in a replayed batch."""
    topic = kafka_topic()
    topic.write_times(range(100))
    for start, end in [(0, 10), (10, 20), (10, 20), (99, 100), (5, 50), (0, 100)]:
        records = read(client, topic, (0, start, end))
        assert offsets(records) == [(0, offset) for offset in range(start, end)]


def test_range_is_read_without_waiting(kafka_topic: TopicMaker) -> None:
    """Neither for more records than there are, nor for the read before it.

    Half a second each, where the client waits at the end of the log.
    """
    topic = kafka_topic()
    topic.write_times(range(100))
    read(Client.CONFLUENT, topic, (0, 0, 1))
    took_s = []
    for _ in range(10):
        started = time.monotonic()
        read(Client.CONFLUENT, topic, (0, 0, 100))
        took_s.append(time.monotonic() - started)
    # A machine that is busy holds up some of them, the wait of the client all.
    assert min(took_s) < 0.25


@BOTH_CLIENTS
def test_abandoned_read_does_not_disturb_the_next(
    kafka_topic: TopicMaker, client: Client
) -> None:
    """A task may be cancelled in a worker that lives on."""
    topic = kafka_topic(2)
    topic.write_times(range(5_000))
    topic.write_times(range(10), 1)
    batches = fetch(client, topic.settings, [OffsetRange(0, 0, 5_000)])
    with closing(batches):  # type: ignore[type-var]
        assert next(batches)[0].offset == 0
    assert offsets(read(client, topic, (1, 0, 2))) == [(1, 0), (1, 1)]
    assert len(read(client, topic, (0, 0, 5_000))) == 5_000


@BOTH_CLIENTS
def test_slow_reader_does_not_time_out(kafka_topic: TopicMaker, client: Client) -> None:
    """Only time in which Kafka does not answer counts."""
    topic = kafka_topic(timeout_s=3.0)
    topic.write_times(range(2_500))
    rows = 0
    for records in fetch(client, topic.settings, [OffsetRange(0, 0, 2_500)]):
        if not rows:
            time.sleep(3.3)
        rows += len(records)
    assert rows == 2_500


def test_little_is_fetched_ahead_of_a_slow_reader(kafka_topic: TopicMaker) -> None:
    """What the client has fetched beyond the end of a range is discarded."""
    topic = kafka_topic()
    for _ in range(64):
        topic.write(random.randbytes(MIB), flush=False)
    topic.flush()
    batches = fetch(Client.CONFLUENT, topic.settings, [OffsetRange(0, 0, 64)])
    with closing(batches):  # type: ignore[type-var]
        before_bytes = psutil.Process().memory_info().rss
        read_bytes = sum(len(record.value or b"") for record in next(batches))
        # Without a limit, the client fetches the whole range meanwhile.
        time.sleep(1)
        fetched_bytes = psutil.Process().memory_info().rss - before_bytes
    assert fetched_bytes < read_bytes + 24 * MIB


@BOTH_CLIENTS
def test_empty_ranges_need_no_broker(client: Client) -> None:
    """Nothing is requested."""
    assert list(fetch(client, NOBODY, [])) == []
    assert list(fetch(client, NOBODY, [OffsetRange(0, 5, 5)])) == []


@BOTH_CLIENTS
def test_empty_range_beside_another_is_left_out(
    kafka_topic: TopicMaker, client: Client
) -> None:
    """Its partition may be empty."""
    topic = kafka_topic(2)
    topic.write_times(range(3))
    records = read(client, topic, (0, 1, 3), (1, 0, 0))
    assert offsets(records) == [(0, 1), (0, 2)]


def test_clients_give_the_same_rows(kafka_topic: TopicMaker) -> None:
    """For any content of a record."""
    topic = kafka_topic()
    topic.write(b"value", key=b"key", time_ms=1_750_000_000_123)
    topic.write(None, key=b"tombstone")
    topic.write(b"", key=b"")
    topic.write(None)
    topic.write(b"\x00\xff", key=b"\xff\x00")
    headers = [
        ("observer", b"tap"),
        ("seq", b"1"),
        ("seq", b"2"),
        ("", b""),
        ("é", None),
    ]
    topic.write(b"headers", headers=headers)
    records = {client: read(client, topic, (0, 0, 6)) for client in Client}
    for rows in records.values():
        assert [(row.key, row.value) for row in rows] == [
            (b"key", b"value"),
            (b"tombstone", None),
            (b"", b""),
            (None, None),
            (b"\xff\x00", b"\x00\xff"),
            (None, b"headers"),
        ]
        assert rows[0].timestamp_ms == 1_750_000_000_123
        assert [tuple(header) for header in rows[5].headers] == headers
        assert not any(row.headers for row in rows[:5])
    plain = [
        [
            row._replace(headers=[(name, text) for name, text in row.headers])
            for row in rows
        ]
        for rows in records.values()
    ]
    assert plain[0] == plain[1]


@BOTH_CLIENTS
def test_large_records_are_read(kafka_topic: TopicMaker, client: Client) -> None:
    """They are far larger than a client's default fetch size."""
    topic = kafka_topic(2)
    sizes = [5 * MIB, 100, 20 * MIB, 100]
    for partition in range(2):
        for size in sizes:
            topic.write(bytes(size), partition=partition)
    started = time.monotonic()
    records = read(client, topic, (0, 0, 4), (1, 0, 4))
    assert time.monotonic() - started < BUSY_S
    assert [len(record.value or b"") for record in records] == 2 * sizes


@BOTH_CLIENTS
def test_range_may_end_at_an_offset_without_a_record(
    kafka_topic: TopicMaker, client: Client
) -> None:
    """At the end of a transaction or in aborted records."""
    topic = kafka_topic()
    topic.write_transaction([1, 2])  # 0, 1, its end at 2
    topic.write_transaction([3, 4, 5], commit=False)  # 3 to 5, its end at 6
    topic.write_times([6])  # 7
    topic.write_transaction([7])  # 8, its end at 9
    assert topic.last_stable_offset() == 10
    started = time.monotonic()
    for start, end, expected in [
        (0, 10, [0, 1, 7, 8]),
        (0, 3, [0, 1]),
        (2, 3, []),
        (0, 5, [0, 1]),
        (3, 7, []),
        (3, 10, [7, 8]),
        (9, 10, []),
    ]:
        found = [record.offset for record in read(client, topic, (0, start, end))]
        assert found == expected, (start, end)
    assert time.monotonic() - started < BUSY_S


@BOTH_CLIENTS
def test_records_of_an_open_transaction_are_not_read(
    kafka_topic: TopicMaker, client: Client
) -> None:
    """Stable records before it are read at once."""
    topic = kafka_topic()
    topic.write_times(range(5))
    with topic.transaction([5, 6]):
        assert topic.last_stable_offset() == 5
        assert len(read(client, topic, (0, 0, 5))) == 5


def test_compacted_offsets_are_skipped(kafka_topic: TopicMaker) -> None:
    """Records may be missing anywhere in the range, also at its end."""
    configuration = {
        "cleanup.policy": "compact",
        "segment.ms": "1",
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": "1",
    }
    topic = kafka_topic(1, configuration)
    with topic.admin() as admin:
        # The cleaner looks every 15 s otherwise.
        settings = {"log.cleaner.backoff.ms": "100"}
        admin.alter_configs([ConfigResource(ConfigResourceType.BROKER, "1", settings)])
    times_ms = itertools.count(1_000, 100)
    for number in range(6):
        topic.write(str(number).encode(), key=b"same", time_ms=next(times_ms))

    def is_compacted() -> bool:
        # A later record begins a new segment: only those before it are looked at.
        topic.write(b"", key=b"other", time_ms=next(times_ms))
        # One run of the cleaner need not reach all segments.
        return offsets(read(Client.CONFLUENT, topic, (0, 0, 6))) == [(0, 5)]

    topic.wait_for(is_compacted)
    assert offsets(read(Client.KAFKA_PYTHON, topic, (0, 0, 6))) == [(0, 5)]
    for client in Client:
        assert read(client, topic, (0, 0, 4)) == []


@BOTH_CLIENTS
def test_records_gone_by_retention_are_an_error(
    kafka_topic: TopicMaker, client: Client
) -> None:
    """The error names partition and offsets, and is raised soon."""
    topic = kafka_topic(3)
    for partition in range(3):
        topic.write_times(range(20), partition)
    topic.delete_before(15, partition=1)
    started = time.monotonic()
    with pytest.raises(RecordsLost) as caught:
        read(client, topic, (0, 0, 20), (1, 10, 20), (2, 0, 20))
    assert time.monotonic() - started < BUSY_S
    error = caught.value
    assert (error.topic, error.partition) == (topic.settings.topic, 1)
    assert (error.first, error.end) == (10, 20)
    # The reader is none the worse for it.
    assert len(read(client, topic, (1, 15, 20))) == 5


@BOTH_CLIENTS
def test_offsets_beyond_the_end_are_an_error(
    kafka_topic: TopicMaker, client: Client
) -> None:
    """The topic was deleted and created again."""
    topic = kafka_topic()
    topic.write_times(range(3))
    with pytest.raises(RecordsLost) as caught:
        read(client, topic, (0, 100, 200))
    assert (caught.value.first, caught.value.end) == (100, 200)


@refused_sockets_stay_open
@BOTH_CLIENTS
def test_unreachable_broker_is_an_error_in_time(client: Client) -> None:
    """The error has the broker's address."""
    started = time.monotonic()
    with pytest.raises(KafkaUnreachable, match=r"127\.0\.0\.1:1"):
        list(fetch(client, NOBODY, [OffsetRange(0, 0, 1)]))
    assert time.monotonic() - started < NOBODY.timeout_s + BUSY_S


@BOTH_CLIENTS
def test_missing_topic_is_an_error_in_time(
    kafka_topic: TopicMaker, client: Client
) -> None:
    """A task must not hang if the topic is deleted after the plan."""
    settings = replace(kafka_topic().settings, topic="no-such-topic", timeout_s=1.0)
    started = time.monotonic()
    with pytest.raises((KafkaUnreachable, TopicMissing)):
        list(fetch(client, settings, [OffsetRange(0, 0, 1)]))
    assert time.monotonic() - started < settings.timeout_s + BUSY_S


@refused_sockets_stay_open
@BOTH_CLIENTS
def test_restart_of_the_broker_is_survived(tmp_path: Path, client: Client) -> None:
    """No record is read twice; a broker that stays away is an error."""
    with EmbeddedBroker(tmp_path) as broker:
        topic = make_topic(broker)
        for number in range(30):
            # More than a client fetches ahead.
            topic.write(number.to_bytes(1) * 4 * MIB, flush=False)
        topic.flush()
        port = int(broker.bootstrap.rpartition(":")[2])
        batches = fetch(client, topic.settings, [OffsetRange(0, 0, 30)])
        records = list(next(batches))
    impatient = replace(topic.settings, timeout_s=5.0)
    with EmbeddedBroker(tmp_path, port=port):
        for batch in batches:
            records += batch
        assert list(fetch(client, impatient, [OffsetRange(0, 0, 1)]))
    assert [record.offset for record in records] == list(range(30))
    assert [(record.value or b"")[0] for record in records] == list(range(30))
    started = time.monotonic()
    with pytest.raises(KafkaUnreachable):
        list(fetch(client, impatient, [OffsetRange(0, 0, 1)]))
    assert time.monotonic() - started < impatient.timeout_s + BUSY_S
