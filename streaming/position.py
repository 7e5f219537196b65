"""How far the job has read the topic: the offset that Spark stores per batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, NamedTuple

import msgspec

from sds_core.observer.ahead import NO_LOOK, Look

Offset = Annotated[int, msgspec.Meta(ge=0)]


class PartitionPosition(NamedTuple):
    """How far the job has read one partition.

    Attributes:
        next_offset: The next offset to read.
        newest_ms: Greatest record time before it, Unix ms; may be lower if it is not
            after the position's clock. 0 if nothing was read.
        batch_start: First offset of the batch that ended here.
        moved_ms: Wall time of the last admission that found unread records, Unix ms.
            A partition that had none for 30 s does not hold the clock back.
    """

    next_offset: Offset
    newest_ms: int = 0
    batch_start: Offset = 0
    moved_ms: int = 0


@dataclass(frozen=True, slots=True)
class Position:
    """A point between two batches.

    Attributes:
        clock_ms: Admission time T, Unix ms: every record before it has been read,
            except late ones.
        admitted_ms: Wall time at which the previous batch was admitted, with the lead
            of the topic's clock (`Admission`), Unix ms. A batch that is replayed uses
            it again to recognise future records.
        records: Number of offsets read since the checkpoint's first batch.
        skipped: Number of records that Kafka deleted before they were read.
        partitions: Position in each partition.
        topic_id: Kafka's id of the topic. None if a release up to 0.6 wrote the
            position, or if the broker gives no id.
        ends: End of each partition when the previous batch was planned. If the topic
            is deleted, at least the unread records up to there are lost.
        requests: Number of the last request that was taken; see
            `streaming.ledger.view_register`.
        quiet_ms: Wall time of the last look before the previous batch that found
            nothing to read, Unix ms; 0 if the batch before it came first. All records
            of the batch were written after it.
    """

    clock_ms: int = 0
    admitted_ms: int = 0
    records: int = 0
    skipped: int = 0
    partitions: Mapping[int, PartitionPosition] = field(default_factory=dict)
    topic_id: str | None = None
    ends: Mapping[int, int] = field(default_factory=dict)
    requests: int = 0
    quiet_ms: int = 0

    def to_json(self) -> dict[str, Any]:
        """JSON object for Spark's offset log."""
        return {
            "clock_ms": self.clock_ms,
            "admitted_ms": self.admitted_ms,
            "records": self.records,
            "skipped": self.skipped,
            "partitions": {
                str(partition): list(position)
                for partition, position in sorted(self.partitions.items())
            },
            # Releases up to 0.6 ignore names that they do not know.
            "topic_id": self.topic_id,
            "ends": {str(p): end for p, end in sorted(self.ends.items())},
            "requests": self.requests,
            "quiet_ms": self.quiet_ms,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Position:
        """Position from the object that `to_json` returned.

        Raises:
            msgspec.ValidationError: The object is not one.
        """
        stored = msgspec.convert(data, _StoredPosition, str_keys=True)
        return cls(**msgspec.structs.asdict(stored))

    def with_requests(self, number: int, start: Position) -> Position:
        """Return the position after a batch that takes requests up to a number too.

        Args:
            number: Number of the newest request; 0 if there is none.
            start: Position at which the batch begins. The batch may be empty otherwise.
        """
        if number <= start.requests:
            return self
        partitions = self.partitions
        if self == start:
            # Or the records of the batch before would be read again.
            partitions = {
                p: here._replace(batch_start=here.next_offset)
                for p, here in partitions.items()
            }
        return replace(self, partitions=partitions, requests=number)

    def last_look(self, partition: int, quiet_ms: int) -> Look:
        """The last look at a partition's end before the batch that begins here.

        Args:
            partition: The partition.
            quiet_ms: `quiet_ms` of the end of the batch.
        """
        if quiet_ms:
            here = self.partitions.get(partition)
            return Look(0 if here is None else here.next_offset, quiet_ms)
        if not self.ends:
            return NO_LOOK
        return Look(self.ends.get(partition, 0), self.admitted_ms)

    def next_offsets(self) -> dict[int, int]:
        """Next offset to read, by partition."""
        return {p: position.next_offset for p, position in self.partitions.items()}


class _StoredPosition(msgspec.Struct):
    """The object of `Position.to_json`."""

    clock_ms: int
    admitted_ms: int
    records: Offset
    skipped: Offset
    partitions: dict[Offset, PartitionPosition]
    topic_id: str | None = None
    ends: dict[Offset, Offset] = {}
    requests: Offset = 0
    quiet_ms: int = 0
