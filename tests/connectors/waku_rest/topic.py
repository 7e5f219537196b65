"""What a mirror wrote to Kafka."""

from __future__ import annotations

from connectors.kafka.consumer import Client, OffsetRange, fetch
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.record import RawRecord
from connectors.kafka.settings import KafkaSettings


def records(kafka: KafkaSettings) -> list[RawRecord]:
    """All records of a topic, partition by partition in order."""
    offsets = TopicOffsets(kafka)
    try:
        partitions = offsets.partitions()
        ends = offsets.latest(partitions)
    finally:
        offsets.close()
    found: list[RawRecord] = []
    for partition in partitions:
        for some in fetch(
            Client.CONFLUENT, kafka, [OffsetRange(partition, 0, ends[partition])]
        ):
            found += some
    return found


def header(record: RawRecord, name: str) -> str:
    """A header of a record as text; empty if it has none."""
    return (dict(record.headers).get(name) or b"").decode()


def is_frame(record: RawRecord) -> bool:
    """Whether it is no heartbeat."""
    return not header(record, "kind")


def seqs(found: list[RawRecord]) -> list[int]:
    """Numbers of the frames among some records, least first."""
    return sorted(int(header(one, "seq")) for one in found if is_frame(one))
