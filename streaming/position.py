"""How far the job has read the topic: the offset that Spark stores per batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


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

    next_offset: int
    newest_ms: int = 0
    batch_start: int = 0
    moved_ms: int = 0


@dataclass(frozen=True, slots=True)
class Position:
    """A point between two batches.

    Attributes:
        clock_ms: Admission time T, Unix ms: every record before it has been read,
            except late ones.
        admitted_ms: Wall time at which the previous batch was admitted, Unix ms. A
            batch that is replayed uses it again to recognise future records.
        records: Number of offsets read since the checkpoint's first batch.
        skipped: Number of records that Kafka deleted before they were read.
        partitions: Position in each partition.
    """

    clock_ms: int = 0
    admitted_ms: int = 0
    records: int = 0
    skipped: int = 0
    partitions: Mapping[int, PartitionPosition] = field(default_factory=dict)

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
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Position:
        """Position from the object that `to_json` returned."""
        return cls(
            clock_ms=data["clock_ms"],
            admitted_ms=data["admitted_ms"],
            records=data["records"],
            skipped=data["skipped"],
            partitions={
                int(partition): PartitionPosition(*position)
                for partition, position in data["partitions"].items()
            },
        )

    def next_offsets(self) -> dict[int, int]:
        """Next offset to read, by partition."""
        return {p: position.next_offset for p, position in self.partitions.items()}
