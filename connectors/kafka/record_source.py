"""Reads one record of a topic by its place."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

from connectors.kafka.consumer import OffsetRange, fetch
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import Client, KafkaSettings, RecordsLost
from sds_core.observer.record import RawRecord

_SOURCE = re.compile(r"([A-Za-z0-9._-]{1,249}):(\d{1,10}):(\d{1,18})")


class RecordSource(NamedTuple):
    """Place of a record.

    Attributes:
        topic, partition, offset: Coordinates of the record in Kafka.
    """

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        """Return the place in the form of header `dead-letter-source`."""
        return f"{self.topic}:{self.partition}:{self.offset}"


def parse_source(text: str) -> RecordSource | None:
    """Read ``topic:partition:offset``; None if it is something else."""
    found = _SOURCE.fullmatch(text)
    if found is None:
        return None
    return RecordSource(found[1], int(found[2]), int(found[3]))


def read_source(
    client: Client, settings: KafkaSettings, source: RecordSource
) -> RawRecord | None:
    """Read a record; None if the topic does not hold it (any more).

    Args:
        client: Library that reads.
        settings: The cluster; its topic does not matter.
        source: Place of the record.

    Raises:
        TopicMissing: The topic does not exist.
        KafkaUnreachable: No broker answered.
    """
    settings = replace(settings, topic=source.topic)
    with closing(TopicOffsets(settings)) as offsets:
        partition = source.partition
        if partition not in offsets.partitions():
            return None
        first = offsets.earliest([partition])[partition]
        end = offsets.latest([partition])[partition]
    if not first <= source.offset < end:
        return None
    place = OffsetRange(partition, source.offset, source.offset + 1)
    try:
        for records in fetch(client, settings, [place]):
            return records[0]
    except RecordsLost:
        pass
    # The offset holds the end of a transaction, or retention removed the record.
    return None
