"""Compressed records, on real Kafka: both clients read every codec."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer
from kafka import KafkaProducer

from connectors.kafka.consumer import OffsetRange, fetch
from connectors.kafka.settings import Client
from sds_core.observer.record import header_name
from tests.support.kafka import TIMEOUT_S, KafkaTopic, TopicMaker

pytestmark = pytest.mark.kafka

BOTH_CLIENTS = pytest.mark.parametrize("client", Client)
VALUES = [b"%d" % number * 200 for number in range(1_000)]
"""Their batches are longer than one block of snappy, 32 KiB."""


def values(client: Client, topic: KafkaTopic) -> list[bytes | None]:
    """Read the values of all records."""
    whole = [OffsetRange(0, 0, len(VALUES))]
    return [one.value for some in fetch(client, topic.settings, whole) for one in some]


@BOTH_CLIENTS
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_client_reads_what_a_producer_has_packed(
    kafka_topic: TopicMaker, codec: str, client: Client
) -> None:
    """With each codec that Kafka has."""
    topic = kafka_topic()
    producer = Producer(
        {
            "bootstrap.servers": topic.settings.bootstrap,
            "compression.type": codec,
            "linger.ms": 50,
        }
    )
    for value in VALUES:
        producer.produce(topic.settings.topic, value, headers=[("seq", b"1")])
    assert not producer.flush(TIMEOUT_S)
    assert values(client, topic) == VALUES


@BOTH_CLIENTS
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_client_reads_what_the_broker_has_packed(
    kafka_topic: TopicMaker, codec: str, client: Client
) -> None:
    """Java's library for snappy divides it into blocks."""
    topic = kafka_topic(1, {"compression.type": codec})
    producer = KafkaProducer(
        bootstrap_servers=topic.settings.bootstrap, linger_ms=50, batch_size=100_000
    )
    for value in VALUES:
        producer.send(topic.settings.topic, value)
    producer.close()
    assert values(client, topic) == VALUES


@BOTH_CLIENTS
def test_header_name_of_a_packed_record_may_be_any_bytes(
    kafka_topic: TopicMaker, client: Client
) -> None:
    """As that of any other."""
    topic = kafka_topic()
    topic.write_names((b"\xff", b"x"), value=bytes(10_000), compression="gzip")
    ((record,),) = fetch(client, topic.settings, [OffsetRange(0, 0, 1)])
    assert record.headers == [(header_name(b"\xff"), b"x")]
