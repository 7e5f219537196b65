"""Positions (which Spark stores as each batch's offsets) and unread records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, NamedTuple

import msgspec

from sds_core.observer.ahead import NO_LOOK, Look

Offset = Annotated[int, msgspec.Meta(ge=0)]

IDLE_PARTITION_MS = 30_000
"""After this wall time without a record, a partition no longer holds T back.

Event time cannot decide this, because records may still be in transit
(docs/architecture.md, decision 3).
"""


class PartitionPosition(NamedTuple):
    """Position up to which the job has read one partition.

    Attributes:
        newest_ms: Maximum record time before the offset, Unix ms; 0 if nothing was
            read. If the true maximum is at or before `Position.clock_ms`, this value
            may be too low.
        batch_start: First offset of the batch that ended at `next_offset`.
        moved_ms: Wall time of the last admission that found unread records, Unix ms.
    """

    next_offset: Offset
    newest_ms: int = 0
    batch_start: Offset = 0
    moved_ms: int = 0


@dataclass(frozen=True, slots=True)
class Position:
    """A point between two batches.

    Attributes:
        clock_ms: Admission time T, Unix ms: every earlier record has been read, except
            late records.
        admitted_ms: Wall time at which the previous batch was admitted, plus the lead
            of the topic's clock (`Admission`), Unix ms. A replayed batch uses this time
            again to recognise future records.
        records: Number of offsets read since the checkpoint's first batch.
        skipped: Number of records that Kafka deleted before they were read.
        topic_id: Kafka's id of the topic. None if a release up to 0.6 wrote the
            position, or if the broker returns no id.
        ends: End of each partition when the previous batch was planned. If the topic is
            deleted, at least the unread records up to this end are lost.
        requests: Number of the last request that was processed; see
            `streaming.ledger.view_register`.
        quiet_ms: Wall time, Unix ms, of the last plan that found no unread records at
            the start of the previous batch; 0 if no plan did. All records of the
            previous batch were written later.
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
        """JSON object for Spark's offset log; releases up to 0.6 skip unknown names."""
        partitions = dict(sorted(self.partitions.items()))
        ends = dict(sorted(self.ends.items()))
        ordered = replace(self, partitions=partitions, ends=ends)
        json_object: dict[str, Any] = msgspec.to_builtins(ordered, str_keys=True)
        return json_object

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Position:
        """Position from the object that `to_json` returned.

        Raises:
            msgspec.ValidationError: The object is no position.
        """
        stored = msgspec.convert(data, _StoredPosition, str_keys=True)
        return cls(**msgspec.structs.asdict(stored))

    def with_requests(self, number: int, start: Position) -> Position:
        """Return this end with the batch's last request; the batch began at `start`."""
        if number <= start.requests:
            return self
        partitions = self.partitions
        if self == start:
            # With an old `batch_start`, the records of the previous batch would be read
            # again.
            partitions = {
                p: here._replace(batch_start=here.next_offset)
                for p, here in partitions.items()
            }
        return replace(self, partitions=partitions, requests=number)

    def last_look(self, partition: int, quiet_ms: int) -> Look:
        """The last look at a partition's end before the batch that starts at `self`.

        `quiet_ms` is the attribute `quiet_ms` of the position at which the batch ends.
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
    clock_ms: int
    admitted_ms: int
    records: Offset
    skipped: Offset
    partitions: dict[Offset, PartitionPosition]
    topic_id: str | None = None
    ends: dict[Offset, Offset] = {}
    requests: Offset = 0
    quiet_ms: int = 0


@dataclass(frozen=True, slots=True)
class Unread:
    """The records that a batch may read, by partition.

    Attributes:
        ends: End offset of the unread records; at or after the start.
        held: End offset of the partition.
        wall_ms: Wall time of the admission, Unix ms.
        believed_ms: Sum of `wall_ms` and the lead of the topic's clock.
    """

    start: Position
    ends: Mapping[int, int]
    held: Mapping[int, int]
    looks: Mapping[int, Look]
    wall_ms: int
    believed_ms: int

    @property
    def partitions(self) -> list[int]:
        """Partitions that have unread records."""
        starts = self.start.next_offsets()
        return [p for p, end in self.ends.items() if end > starts[p]]

    @property
    def rows(self) -> int:
        """Number of unread offsets."""
        return count_rows(self.start.next_offsets(), self.ends)

    def common_clock_ms(self, newest_ms: Mapping[int, int]) -> int:
        """T of a batch that reads all unread records.

        T is the minimum of the newest times of all active partitions. If no partition
        is active, T is the maximum of the newest times.
        """
        active = [ms for p, ms in newest_ms.items() if not self._is_idle(p)]
        return min(active, default=max(newest_ms.values(), default=0))

    def position(
        self,
        clock_ms: int,
        ends: Mapping[int, int],
        newest_ms: Mapping[int, int] | None = None,
    ) -> Position:
        """The position after a batch with T = `clock_ms`, read up to `ends`.

        `newest_ms` has the maximum time of the records that were read, by partition;
        None if no such record is later than T.
        """
        newest_ms = newest_ms or {}
        unread = set(self.partitions)
        partitions = {
            p: PartitionPosition(
                next_offset=ends.get(p, here.next_offset),
                newest_ms=max(here.newest_ms, newest_ms.get(p, 0)),
                batch_start=here.next_offset,
                # The wall clock may have been set back, so the earlier time counts.
                moved_ms=min(here.moved_ms, self.wall_ms)
                if p not in unread
                else self.wall_ms,
            )
            for p, here in self.start.partitions.items()
        }
        rows = count_rows(self.start.next_offsets(), ends)
        return replace(
            self.start,
            clock_ms=clock_ms,
            records=self.start.records + rows,
            partitions=partitions,
        )

    def _is_idle(self, partition: int) -> bool:
        silent_ms = self.wall_ms - self.start.partitions[partition].moved_ms
        return partition not in self.partitions and silent_ms > IDLE_PARTITION_MS


def count_rows(starts: Mapping[int, int], ends: Mapping[int, int]) -> int:
    """Number of offsets from starts to ends."""
    return sum(end - starts[partition] for partition, end in ends.items())
