"""Where the job stands in the topic: the offset that Spark keeps per batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class PartitionPosition(NamedTuple):
    """Where the job stands in one partition.

    Attributes:
        next_offset: The next offset to read.
        newest_ms: Greatest record time before it, Unix ms, or any time at or below
            the position's clock; 0 if nothing was read.
        batch_start: Where the batch that ended here began to read.
        moved_ms: Wall time of the last admission that found unread records; a
            partition without any for long does not hold the clock back.
    """

    next_offset: int
    newest_ms: int = 0
    batch_start: int = 0
    moved_ms: int = 0


@dataclass(frozen=True, slots=True)
class Position:
    """A point between two batches.

    Attributes:
        clock_ms: Admission time T: every record before it has been read.
        admitted_ms: Wall time at which the batch before it was admitted, by which
            that batch tells future timestamps, also when it is replayed.
        records: Offsets read since the checkpoint's first batch.
        skipped: Records given up because they were gone before they were read.
        partitions: Position in each partition.
    """

    clock_ms: int = 0
    admitted_ms: int = 0
    records: int = 0
    skipped: int = 0
    partitions: Mapping[int, PartitionPosition] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Form for Spark's offset log."""
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
        """Read what `to_json` made."""
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
        """The next offset to read of each partition."""
        return {p: position.next_offset for p, position in self.partitions.items()}
