"""Positions in the topic, and the unread records after a position.

Spark stores the position at the end of each batch as the batch's offsets.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, NamedTuple

import msgspec

from sds_core.observer.ahead import NO_LOOK, Look

Offset = Annotated[int, msgspec.Meta(ge=0)]

IDLE_PARTITION_MS = 30_000
"""After this wall time without a record that can advance T, a partition is idle.

An idle partition no longer holds back the admission time T (`Position.clock_ms`). Event
time cannot show that a partition is idle, because its records may still be in transit
(docs/architecture.md, decision 3).
"""


class PartitionPosition(NamedTuple):
    """Position up to which the job has read one partition.

    Attributes:
        newest_ms: Maximum record time before `next_offset`, Unix ms; 0 if nothing was
            read. If the true maximum is at or before `Position.clock_ms`, this value
            may be too low.
        batch_start: First offset of the batch that ended at `next_offset`.
        moved_ms: Wall time of the last admission that found unread records in the
            partition that can advance T, Unix ms. Records from the future cannot.
    """

    next_offset: Offset
    newest_ms: int = 0
    batch_start: Offset = 0
    moved_ms: int = 0


@dataclass(frozen=True, slots=True)
class Position:
    """A position in the topic between two batches.

    Attributes:
        clock_ms: Admission time T, Unix ms: all records with an earlier time have been
            read, except late records.
        admitted_ms: Wall time at which the previous batch was admitted, plus the lead
            of the topic's clock over wall time (`Admission`), Unix ms. If the batch is
            repeated, it uses the same time to recognise records from the future.
        records: Number of offsets read since the checkpoint's first batch.
        skipped: Number of records that Kafka deleted before they were read.
        topic_id: Kafka's id of the topic. None if a release up to 0.6 wrote the
            position, or if the broker returns no id.
        ends: End of each partition when the previous batch was planned. If the topic is
            deleted, at least the unread records up to this end are lost.
        requests: Number of the last processed request to forget or review a view; see
            `streaming.ledger.view_register`.
        quiet_ms: Last wall time, Unix ms, at which the job found no record after the
            start of the previous batch; 0 if it always found records. All records of
            the previous batch were written later.
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
        """Return a JSON object for Spark's offset log.

        Releases up to 0.6 ignore fields of the object that they do not know.
        """
        partitions = dict(sorted(self.partitions.items()))
        ends = dict(sorted(self.ends.items()))
        ordered = replace(self, partitions=partitions, ends=ends)
        json_object: dict[str, Any] = msgspec.to_builtins(ordered, str_keys=True)
        return json_object

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Position:
        """Return the position from the object that `to_json` returned.

        Raises:
            msgspec.ValidationError: The object is no position.
        """
        stored = msgspec.convert(data, _StoredPosition, str_keys=True)
        return cls(**msgspec.structs.asdict(stored))

    def with_requests(self, number: int, start: Position) -> Position:
        """Return this position with `number` as its last processed request.

        The position is the end of a batch that begins at `start`.
        """
        if number <= start.requests:
            return self
        partitions = self.partitions
        if self == start:
            # The batch consists of requests only. If `batch_start` did not change, the
            # batch would read the records of the previous batch again.
            partitions = {
                p: here._replace(batch_start=here.next_offset)
                for p, here in partitions.items()
            }
        return replace(self, partitions=partitions, requests=number)

    def last_look(self, partition: int, quiet_ms: int) -> Look:
        """Return the last known end of a partition, and when the job read it.

        The job read the end before it planned the batch that starts at `self`.
        `quiet_ms` is the attribute `quiet_ms` of the position at which this batch ends.
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
        start: Position at which the batch begins.
        ends: End offset of the unread records; at or after `start`.
        held: End offset of the whole partition.
        wall_ms: Wall time of the admission, Unix ms.
        believed_ms: Sum of `wall_ms` and the lead of the topic's clock over wall time.
        unmoved: Partitions whose unread records cannot advance T, as far as is known.
        answering_ms: Wall time since when Kafka has answered, Unix ms; 0 if unknown.
            Before this time, no partition was idle.
    """

    start: Position
    ends: Mapping[int, int]
    held: Mapping[int, int]
    looks: Mapping[int, Look]
    wall_ms: int
    believed_ms: int
    unmoved: Collection[int] = ()
    answering_ms: int = 0

    @property
    def partitions(self) -> list[int]:
        """Partitions that have unread records."""
        starts = self.start.next_offsets()
        return [p for p, end in self.ends.items() if end > starts[p]]

    @property
    def rows(self) -> int:
        """Number of unread offsets in all partitions."""
        return count_rows(self.start.next_offsets(), self.ends)

    def common_clock_ms(self, newest_ms: Mapping[int, int]) -> int:
        """Return admission time T of a batch that reads all unread records, Unix ms.

        `newest_ms` has the newest record time of each partition. T is the minimum of
        these times in the active partitions. If all partitions are idle, T is the
        maximum of all these times.
        """
        moved = self._moved()
        active = [
            ms for p, ms in newest_ms.items() if p in moved or not self._is_idle(p)
        ]
        return min(active, default=max(newest_ms.values(), default=0))

    def position(
        self,
        clock_ms: int,
        ends: Mapping[int, int],
        newest_ms: Mapping[int, int] | None = None,
    ) -> Position:
        """Return the position after a batch that reads up to `ends`.

        `clock_ms` is the batch's admission time T. `newest_ms` has the maximum time of
        the records in the batch, by partition; None if all these records are at or
        before T.
        """
        newest_ms = newest_ms or {}
        moved = self._moved()
        partitions = {
            p: PartitionPosition(
                next_offset=ends.get(p, here.next_offset),
                newest_ms=max(here.newest_ms, newest_ms.get(p, 0)),
                batch_start=here.next_offset,
                # If the wall clock was set back, `moved_ms` is set back too.
                moved_ms=min(here.moved_ms, self.wall_ms)
                if p not in moved
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

    def _moved(self) -> set[int]:
        """Partitions with unread records that may advance T."""
        return set(self.partitions).difference(self.unmoved)

    def _is_idle(self, partition: int) -> bool:
        moved_ms = self.start.partitions[partition].moved_ms
        return self.wall_ms - max(moved_ms, self.answering_ms) > IDLE_PARTITION_MS


def count_rows(starts: Mapping[int, int], ends: Mapping[int, int]) -> int:
    """Number of offsets from `starts` to `ends`, in all partitions together."""
    return sum(end - starts[partition] for partition, end in ends.items())
