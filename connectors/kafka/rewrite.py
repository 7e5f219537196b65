"""Records that were read, as they are written to a topic again."""

from __future__ import annotations

from connectors.kafka.producer import TopicRecord, partition_of
from sds_core.observer.record import RawRecord


def topic_record(record: RawRecord, partition: int) -> TopicRecord:
    """A record to write to a partition.

    The client sends no header without a value, and no record without key and value:
    what is absent becomes empty, which the monitor reads alike.
    """
    return TopicRecord(
        partition,
        record.timestamp_ms,
        record.key,
        record.value or b"",
        tuple((name, value or b"") for name, value in record.headers),
    )


def kept_partition(record: RawRecord, partitions: int) -> int:
    """The record's own partition if a topic has as many, else another, in [0, n).

    Then the key decides, as for any producer, so that the frames of a channel stay
    together; heartbeats, without a key, are spread as they were.

    Args:
        record: The record.
        partitions: How many the topic has.
    """
    if record.partition < partitions:
        return record.partition
    if record.key is None:
        return record.partition % partitions
    return partition_of(record.key, partitions)
