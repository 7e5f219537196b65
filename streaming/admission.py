"""Decides how far the next batch may read.

Every batch ends at the same record time T in all partitions, so all channels can use T
as their clock (docs/architecture.md, decision 3). If all unread records fit into one
batch, T is the minimum of the newest record times of all active partitions. In the last
batch of a run that drains the topic, T is the maximum of these times.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from connectors.kafka.offsets import TimedOffset, Topic, find_replaced
from connectors.kafka.settings import (
    KafkaSettings,
    RecordsLost,
    TopicReplaced,
    topic_index,
)
from sds_core.observer.ahead import LOOKAHEAD, refuted_at_ms
from sds_core.observer.record import MAX_AHEAD_MS, is_future
from streaming.batch_cut import aligned_end, part_of
from streaming.position import PartitionPosition, Position, Unread
from streaming.record_times import Offsets, ReadTimes, RecordTimes
from streaming.settings import BatchLimits, Window

LATE_MS = 3_600_000
"""How far the search for a window's records continues after the window's end, ms.

The first record with a later time ends the search, unless the record is from the
future. The retention window has the same length (docs/figures.md, 4).
"""

_MAX_LEAD_MS = 60_000

_LEAST_LEAD_MS = 30_000
"""Minimum lead of the topic's clock over wall time, ms; a smaller lead counts as 0."""

_UNSAMPLED_ROWS = 500
"""If at most this many records are unread, their mean size is not measured.

The measurement would cost a fetch.
"""


def ends_of_window(
    offsets: Offsets, ends: Mapping[int, int], window: Window, read_times: ReadTimes
) -> dict[int, int]:
    """Return, for each partition, where the search for the window's records ends."""
    behind = offsets.first_at_or_after(list(ends), window.last_ms + LATE_MS + 1)
    return {
        p: min(end, behind[p].offset)
        if p in behind and _ends_search(p, behind[p], end, read_times)
        else end
        for p, end in ends.items()
    }


def _ends_search(
    partition: int, at: TimedOffset, end: int, read_times: ReadTimes
) -> bool:
    """Whether later offsets have no records that are much earlier than an entry.

    If the entry is the end of a transaction, or a record from the future, its time is
    unrelated to later records. The search then continues to the partition's end.
    """
    last = min(end, at.offset + 1 + LOOKAHEAD)
    records = read_times(partition, at.offset, last)
    if not records or records[0].offset != at.offset:
        return False
    later_ms = (record.timestamp_ms for record in records[1:])
    # The partition's clock at the entry is unknown.
    return refuted_at_ms(at.timestamp_ms, 0, later_ms) is None


MeanBytes = Callable[[Mapping[int, int]], int]
"""Next offset of each partition -> mean size of a sample of records, bytes.

The sample begins at these offsets.
"""


@dataclass(frozen=True, slots=True)
class Target:
    """Offsets at which a run that drains the topic ends; determined at startup.

    `topic_id` is the id of the topic to which `ends` belong; None if it is unknown.
    """

    ends: Mapping[int, int]
    topic_id: str | None = None

    def ends_in(self, topic: Topic, ends: Mapping[int, int]) -> dict[int, int]:
        """For each partition, its end in `ends`, or the target's end if it is earlier.

        Partitions and topics that were created after startup get the end 0, so they are
        not read.
        """
        replaced = find_replaced(self.topic_id, topic.id)
        return {
            p: 0 if topic_index(p) in replaced else min(end, self.ends.get(p, 0))
            for p, end in ends.items()
        }


@dataclass(frozen=True, slots=True)
class Admission:
    """Plans the offsets that each batch reads from the topics of frames.

    Attributes:
        kafka: Settings that contain the names of the topics; errors show these names.
        scan_times: Reads the records themselves to get their times, where Kafka's index
            of times is unreliable.
        skip_lost: Whether the job continues if Kafka deleted records before they were
            read. `Position.skipped` then counts these records. If False, an error is
            raised.
    """

    kafka: KafkaSettings
    offsets: Offsets
    scan_times: ReadTimes
    mean_bytes: MeanBytes
    limits: BatchLimits = field(default_factory=BatchLimits)
    skip_lost: bool = False
    window: Window | None = None

    def target(self) -> Target:
        """The target of a run that begins now.

        The target is the current end of the topic; if `window` is set, it is where the
        search for the window's records ends.
        """
        topic = self.offsets.describe()
        ends = self.offsets.latest(topic.partitions)
        if self.window is not None:
            ends = ends_of_window(self.offsets, ends, self.window, self.scan_times)
        return Target(ends, topic.id)

    def lost_topics(self, planned: Position) -> Collection[int]:
        """Return the indexes of topics that were recreated after a batch was planned.

        `planned` is the position at which the batch ends.

        Raises:
            TopicReplaced: A topic was recreated, and `skip_lost` is not set.
        """
        return self._replaced(planned, self.offsets.describe())

    def check(self, start: Position) -> None:
        """Check that the topic still holds all unread records after a position.

        Raises:
            RecordsLost: Kafka deleted unread records, and `skip_lost` is not set.
            TopicReplaced: The topic was recreated, and `skip_lost` is not set.
        """
        topic = self.offsets.describe()
        self._placed(start, topic, self.offsets.latest(topic.partitions))

    def is_record(self, partition: int, offset: int) -> bool:
        """Whether an offset holds a record, not the end of a transaction."""
        return bool(self.scan_times(partition, offset, offset + 1))

    def plan(
        self,
        start: Position,
        wall_ms: int,
        target: Target | None = None,
        quiet_ms: int = 0,
        answering_ms: int = 0,
    ) -> Position:
        """The end of the next batch; `start` itself if no record is unread.

        Args:
            start: Position at which the batch begins.
            wall_ms: Wall time, Unix ms. Records whose time is far later than this do
                not advance T.
            target: Where a run that drains the topic ends. There, T becomes the maximum
                record time. If None, the job follows the topic, and T waits for silent
                partitions.
            quiet_ms: Wall time, Unix ms, of the last plan that began at `start` and
                found nothing to read; 0 if no such plan exists.
            answering_ms: See `Unread`.

        Raises:
            Exception: The errors of `check`.
        """
        topic = self.offsets.describe()
        held = self.offsets.latest(topic.partitions)
        ends = held if target is None else target.ends_in(topic, held)
        placed = self._placed(start, topic, ends)
        ends = {
            p: max(end, placed.partitions[p].next_offset) for p, end in ends.items()
        }
        looks = {p: start.last_look(p, quiet_ms) for p in ends}
        believed_ms = wall_ms + self._lead_ms(placed, ends, wall_ms, target is None)
        if target is None:
            newest = self.offsets.newest(list(ends))
            # A partition's newest record may have arrived after `ends` were read. The
            # batch then includes this record. If it did not, only a scan could find the
            # newest record before the partition's end in `ends`.
            arrived = {p: at.offset + 1 for p, at in newest.items()}
            held = {p: max(end, arrived.get(p, 0)) for p, end in held.items()}
            ends = {p: max(end, held[p]) for p, end in ends.items()}
        unread = Unread(
            placed,
            ends,
            held,
            looks,
            wall_ms,
            believed_ms,
            answering_ms=answering_ms,
        )
        if target is None:
            end = self._live_end(unread, newest)
        else:
            end = self._drained_end(unread)
        reached = end.clock_ms, end.next_offsets()
        if reached == (start.clock_ms, start.next_offsets()):
            return start
        return replace(end, admitted_ms=believed_ms, ends=held, quiet_ms=quiet_ms)

    def _lead_ms(
        self, start: Position, ends: Mapping[int, int], wall_ms: int, is_live: bool
    ) -> int:
        """By how much the topic's clock may be ahead of wall time, ms.

        If the clocks of all taps are fast, all records are from the future. If the job
        allowed no lead, it would refuse all these records. A run that drains the topic
        continues the lead of an earlier job, but never begins a lead.
        """
        if start.clock_ms:
            moved_ms = max(one.moved_ms for one in start.partitions.values())
            lead_ms = start.clock_ms - moved_ms if moved_ms else 0
            return min(lead_ms, _MAX_LEAD_MS) if lead_ms >= _LEAST_LEAD_MS else 0
        if not is_live:
            return 0
        firsts = start.next_offsets()
        unread = [p for p, end in ends.items() if end > firsts[p]]
        newest = self.offsets.newest(unread) if unread else {}
        if not unread or not all(
            p in newest and is_future(newest[p].timestamp_ms, wall_ms) for p in unread
        ):
            return 0
        times = (
            record.timestamp_ms
            for p in unread
            for record in self.scan_times(
                p, firsts[p], min(ends[p], firsts[p] + LOOKAHEAD)
            )
        )
        return _MAX_LEAD_MS if all(is_future(ms, wall_ms) for ms in times) else 0

    def _live_end(self, unread: Unread, newest: Mapping[int, TimedOffset]) -> Position:
        row_limit = self._row_limit(unread)
        newest_ms, times = self._times(unread, row_limit).newest_ms(newest)
        unread = replace(unread, unmoved=times.unmoved)
        clock_ms = unread.common_clock_ms(newest_ms)
        return self._fitting_end(unread, newest_ms, clock_ms, times, row_limit)

    def _drained_end(self, unread: Unread) -> Position:
        start = unread.start
        row_limit = self._row_limit(unread)
        times = self._times(unread, row_limit)
        if unread.rows > row_limit:
            if start.clock_ms >= times.last_ms:
                # No unread record advances T, so the order in which batches read the
                # records does not matter.
                ends = part_of(start.next_offsets(), unread.ends, row_limit)
                return unread.position(start.clock_ms, ends)
            # The batch ends before the last record, so the newest record's time is not
            # needed.
            end = aligned_end(times, times.last_ms, row_limit)
            return unread.position(end.clock_ms, end.ends)
        newest_ms, times = times.newest_ms(self.offsets.newest(list(unread.ends)))
        clock_ms = max(newest_ms.values(), default=0)
        return self._fitting_end(unread, newest_ms, clock_ms, times, row_limit)

    def _fitting_end(
        self,
        unread: Unread,
        newest_ms: Mapping[int, int],
        clock_ms: int,
        times: RecordTimes,
        row_limit: int,
    ) -> Position:
        start = unread.start
        clock_ms = max(start.clock_ms, clock_ms)
        if unread.rows <= row_limit:
            return unread.position(clock_ms, unread.ends, newest_ms)
        end = aligned_end(times, clock_ms, row_limit)
        if end.ends != start.next_offsets() or end.clock_ms != start.clock_ms:
            return unread.position(end.clock_ms, end.ends)
        # A silent partition holds T back, and all records up to T have been read. The
        # batch therefore reads records that are later than T.
        latest_ms = max(newest_ms.values(), default=clock_ms)
        beyond = aligned_end(end.times, latest_ms, row_limit)
        peaks_ms = {
            p: times.scan(p, first, beyond.ends[p]).peak_ms
            for p, first in start.next_offsets().items()
            if beyond.ends[p] > first
        }
        return unread.position(start.clock_ms, beyond.ends, peaks_ms)

    def _times(self, unread: Unread, scan_rows: int) -> RecordTimes:
        last_ms = unread.believed_ms + MAX_AHEAD_MS
        if self.window is not None:
            last_ms = min(last_ms, self.window.last_ms)
        return RecordTimes(
            self.offsets,
            self.scan_times,
            cache(self.is_record),
            unread,
            last_ms,
            scan_rows,
        )

    def _row_limit(self, unread: Unread) -> int:
        most = self.limits.rows_after(unread.start.records)
        if unread.rows <= _UNSAMPLED_ROWS:
            return most
        starts = unread.start.next_offsets()
        mean_bytes = self.mean_bytes({p: starts[p] for p in unread.partitions})
        fitting = self.limits.size_bytes // max(1, mean_bytes)
        return max(1, min(most, fitting))

    def _placed(
        self, start: Position, topic: Topic, ends: Mapping[int, int]
    ) -> Position:
        """Return the start, with new partitions, and moved after deleted records."""
        earliest = self.offsets.earliest(topic.partitions)
        if replaced := self._replaced(start, topic):
            start = _moved_to(start, topic, earliest, replaced)
        placed = {}
        skipped = start.skipped
        for partition in start.partitions.keys() - set(topic.partitions):
            # Kafka never removes a single partition from a topic, so the topic was
            # deleted and recreated.
            self._lose(partition, 0, start.partitions[partition].next_offset)
        for partition in topic.partitions:
            first = earliest[partition]
            here = start.partitions.get(partition)
            if here is None:
                here = PartitionPosition(first)
            elif here.next_offset < first:
                self._lose(partition, here.next_offset, first)
                skipped += first - here.next_offset
                here = here._replace(next_offset=first)
            elif here.next_offset > ends[partition]:
                # The start may lie after the target's end. If it lies after the end of
                # the partition itself, records are lost.
                held = self.offsets.latest([partition])[partition]
                if here.next_offset > held:
                    self._lose(partition, held, here.next_offset)
                    here = here._replace(next_offset=first)
            placed[partition] = here
        # If a broker returns no topic id, the topic counts as unchanged.
        topic_id = topic.id or start.topic_id
        return replace(start, partitions=placed, skipped=skipped, topic_id=topic_id)

    def _replaced(self, position: Position, topic: Topic) -> Collection[int]:
        replaced = find_replaced(position.topic_id, topic.id)
        for index, ids in replaced.items():
            if not self.skip_lost:
                raise TopicReplaced(self.kafka.topics[index], *ids)
        return replaced

    def _lose(self, partition: int, first: int, end: int) -> None:
        if not self.skip_lost:
            raise RecordsLost(*self.kafka.place_of(partition), first, end)


def _moved_to(
    start: Position,
    topic: Topic,
    earliest: Mapping[int, int],
    replaced: Collection[int],
) -> Position:
    """Return the start, at the earliest offsets of recreated topics.

    `skipped` includes the lost records.
    """
    old = {p: one for p, one in start.partitions.items() if topic_index(p) in replaced}
    new = [p for p in topic.partitions if topic_index(p) in replaced]
    unread = sum(
        max(0, start.ends.get(partition, 0) - here.next_offset)
        for partition, here in old.items()
    )
    kept = {p: one for p, one in start.partitions.items() if p not in old}
    return replace(
        start,
        partitions=kept | {p: PartitionPosition(earliest[p]) for p in new},
        skipped=start.skipped + unread + sum(earliest[p] for p in new),
        topic_id=topic.id,
    )
