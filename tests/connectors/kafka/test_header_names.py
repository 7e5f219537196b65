"""Header names that are not UTF-8, on real Kafka: each record is read all the same."""

from __future__ import annotations

import pytest

from connectors.kafka.consumer import OffsetRange, fetch
from connectors.kafka.producer import TopicRecord, write
from connectors.kafka.settings import Client
from sds_core.observer.record import RawRecord, header_name
from tests.support.kafka import KafkaTopic, TopicMaker

pytestmark = pytest.mark.kafka

BOTH_CLIENTS = pytest.mark.parametrize("client", Client)
NAME = b"\xff\xfe of a tap"
HEADERS = ((b"observer", b"tap"), (NAME, b"\x00"), (b"\xc3\xa9", b""), (b"seq", b"7"))
READ_HEADERS = [(header_name(name), value) for name, value in HEADERS]


def read(client: Client, topic: KafkaTopic, *ends: int) -> list[RawRecord]:
    """Read the records of each partition up to its end, partition by partition."""
    ranges = [OffsetRange(p, 0, end) for p, end in enumerate(ends)]
    found = [one for some in fetch(client, topic.settings, ranges) for one in some]
    return sorted(found, key=lambda record: record.partition)


@BOTH_CLIENTS
def test_record_is_read_whole_between_others(
    kafka_topic: TopicMaker, client: Client
) -> None:
    """Names have their bytes, in order; records before and after it are read too."""
    topic = kafka_topic()
    topic.write(b"before", headers=[("seq", b"6")])
    topic.write_names(*HEADERS, value=b"frame", time_ms=2_000, key=b"town")
    topic.write(b"after", headers=[("seq", b"8")])
    before, bad, after = read(client, topic, 3)
    assert bad == RawRecord(0, 1, 2_000, b"town", b"frame", READ_HEADERS)
    assert (before.value, before.headers) == (b"before", [("seq", b"6")])
    assert (after.value, after.headers) == (b"after", [("seq", b"8")])


@BOTH_CLIENTS
def test_bad_name_is_noticed_after_many_good_records(
    kafka_topic: TopicMaker, client: Client
) -> None:
    """CPython calls a method differently once the call is frequent."""
    topic = kafka_topic()
    topic.write_times(range(500))
    topic.write_names((NAME, b""))
    topic.write_times(range(500))
    found = read(client, topic, 1_001)
    assert [one.offset for one in found] == list(range(1_001))
    assert [one.offset for one in found if one.headers] == [500]
    assert found[500].headers == [(header_name(NAME), b"")]


@BOTH_CLIENTS
def test_records_in_several_partitions_keep_their_order(
    kafka_topic: TopicMaker, client: Client
) -> None:
    """Good ones between them keep their headers."""
    topic = kafka_topic(2)
    for number in range(4):
        for partition in (0, 1):
            seq = (b"seq", b"%d" % number)
            topic.write_names(seq, (b"\xff", b""), partition=partition)
            topic.write(b"good", partition=partition, headers=[("seq", b"good")])
    found = read(client, topic, 8, 8)
    assert [(one.partition, one.offset) for one in found] == [
        (partition, offset) for partition in (0, 1) for offset in range(8)
    ]
    good, bad = found[1::2], found[::2]
    assert all(one.headers == [("seq", b"good")] for one in good)
    assert [one.headers for one in bad] == [
        [("seq", b"%d" % number), (header_name(b"\xff"), b"")] for number in range(4)
    ] * 2


@BOTH_CLIENTS
def test_absent_parts_of_the_record_stay_absent(
    kafka_topic: TopicMaker, client: Client
) -> None:
    """Key and value may be absent, and a name may be empty."""
    topic = kafka_topic()
    topic.write_names((b"\xff", b""), (b"", b"x"), key=b"key", value=None)
    topic.write_names((b"\xff", b""), key=None)
    without_value, without_key = read(client, topic, 2)
    assert (without_value.key, without_value.value) == (b"key", None)
    assert without_value.headers == [(header_name(b"\xff"), b""), ("", b"x")]
    assert (without_key.key, without_key.value) == (None, b"value")


@BOTH_CLIENTS
def test_time_of_the_broker_is_read_where_the_topic_has_it(
    kafka_topic: TopicMaker, client: Client
) -> None:
    """Not the time that the producer stated."""
    topic = kafka_topic(1, {"message.timestamp.type": "LogAppendTime"})
    topic.write_names((NAME, b""), time_ms=1_000)
    (record,) = read(client, topic, 1)
    assert record.timestamp_ms > 1_768_000_000_000


@BOTH_CLIENTS
def test_record_is_written_with_the_names_that_were_read(
    kafka_topic: TopicMaker, client: Client
) -> None:
    """An import gives the same report as the topic that was exported."""
    first, second = kafka_topic(), kafka_topic()
    first.write_names(*HEADERS, value=b"frame", key=b"town")
    (record,) = read(client, first, 1)
    headers = tuple((name, value or b"") for name, value in record.headers)
    copy = TopicRecord(0, record.timestamp_ms, record.key, b"frame", headers)
    write([copy], second.settings)
    assert read(client, second, 1) == [record]
