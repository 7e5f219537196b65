"""Turns records that were read into records to write again."""

from __future__ import annotations

from connectors.kafka.producer import TopicRecord, partition_of
from sds_core.observer.record import RawRecord


def topic_record(record: RawRecord, partition: int) -> TopicRecord:
    """Return a record to write to a partition.

    The client cannot send absent headers, keys or values. They become empty, which
    means the same to the monitor.
    """
    return TopicRecord(
        partition,
        record.timestamp_ms,
        record.key,
        record.value or b"",
        tuple((name, value or b"") for name, value in record.headers),
    )


def target_partition(record: RawRecord, partitions: int) -> int:
    """Partition to write a record to, in [0, partitions).

    It is the record's own if the topic has it. Otherwise the key decides, as for any
    producer, so the frames of a channel stay together. Heartbeats have no key: their
    own partition modulo the number of partitions decides.

    Args:
        record: The record.
        partitions: Number of partitions of the topic.
    """
    if record.partition < partitions:
        return record.partition
    if record.key is None:
        return record.partition % partitions
    return partition_of(record.key, partitions)
