"""Reads the Waku messages in a topic of frames."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field

from connectors.kafka.consumer import OffsetRange, read_ranges
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import KafkaSettings
from sds_core.audit.mirrored import MirroredMessage, Unidentified, mirrored_message


@dataclass(slots=True)
class Mirrored:
    """Messages of a topic by message hash.

    `unidentified` is the number of records that lack a valid hash or a valid time of
    their message. `begin_ms` is the time of the first record in the topic, Unix
    ms; None if the topic is empty or the time was not looked up.
    """

    messages: dict[bytes, MirroredMessage] = field(default_factory=dict)
    unidentified: int = 0
    begin_ms: int | None = None


def read_mirrored(kafka: KafkaSettings, since_ms: int) -> Mirrored:
    """Read a topic's messages from the record time `since_ms` on, Unix ms.

    Raises:
        TopicMissing: The topic does not exist.
        KafkaUnreachable: No broker answered.
        RecordsLost: Kafka deleted records before they were read.
    """
    with closing(TopicOffsets(kafka)) as offsets:
        partitions = offsets.partitions()
        ends = offsets.latest(partitions)
        begins = offsets.first_at_or_after(partitions, since_ms)
        first = offsets.first_at_or_after(partitions, 0)
    starts = {p: begins[p].offset for p in partitions if p in begins}
    found = read_between(kafka, starts, ends)
    found.begin_ms = min((one.timestamp_ms for one in first.values()), default=None)
    return found


def read_between(
    kafka: KafkaSettings, starts: Mapping[int, int], ends: Mapping[int, int]
) -> Mirrored:
    """Read the messages between two offsets of each partition.

    For each partition, `starts` has the first offset to read, and `ends` the offset
    after the last one to read. Errors are those of `read_mirrored`, except
    `TopicMissing`.
    """
    found = Mirrored()
    ranges = [OffsetRange(p, start, ends[p]) for p, start in starts.items()]
    for record in read_ranges(kafka, ranges):
        try:
            message = mirrored_message(record)
        except Unidentified:
            found.unidentified += 1
            continue
        if message is not None:
            found.messages.setdefault(message.item.message_hash, message)
    return found
