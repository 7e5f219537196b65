"""Single records for the topic of a job."""

from __future__ import annotations

from typing import Any

from kafka import KafkaProducer

from connectors.kafka.producer import TopicRecord
from connectors.kafka.settings import KafkaSettings
from sds_core.wire import Dialect, Frame, HistoryEntry, encode

T0 = 1_768_478_430_000


def a_frame(
    message_id: str,
    sender: str = "ana",
    lamport: int = T0,
    history: tuple[str, ...] = (),
    channel: str = "town",
) -> bytes:
    """A content frame on the wire."""
    return encode(
        Frame.build(
            Dialect.SPEC,
            message_id=message_id,
            channel_id=channel,
            sender_id=sender,
            lamport=lamport,
            causal_history=[HistoryEntry(name) for name in history],
            content=b"hello",
        )
    )


def messages(channel: str, count: int) -> list[TopicRecord]:
    """Messages of one channel, a second apart."""
    return [
        TopicRecord(
            0,
            T0 + 1_000 * number,
            channel.encode(),
            a_frame(f"{channel}-{number}", lamport=T0 + number, channel=channel),
            (),
        )
        for number in range(count)
    ]


def produce(kafka: KafkaSettings, *records: dict[str, Any]) -> None:
    """Write records one after the other to partition 0, or the one named."""
    producer = KafkaProducer(
        bootstrap_servers=kafka.bootstrap, max_request_size=32 * 1024 * 1024
    )
    for record in records:
        producer.send(kafka.topic, **({"partition": 0} | record)).get(30)
    producer.close()


def heartbeat(time_ms: int, partition: int = 0, seq: int = 0) -> dict[str, Any]:
    """A heartbeat of one tap."""
    headers = [("kind", b"heartbeat"), ("observer", b"tap"), ("seq", b"%d" % seq)]
    return {
        "value": b"",
        "headers": headers,
        "timestamp_ms": time_ms,
        "partition": partition,
    }
