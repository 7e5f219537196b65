"""Reads a listed topic batch by batch, and checks each plan against the records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from hypothesis import strategies as st

from connectors.kafka.consumer import OffsetRange
from connectors.kafka.offsets import TimedOffset
from sds_core.observer.ahead import LOOKAHEAD, NO_LOOK, Foresight
from sds_core.observer.record import MAX_AHEAD_MS, is_future
from streaming.admission import Target, Window
from streaming.position import PartitionPosition, Position, Unread
from streaming.record_times import RecordTimes
from tests.support.topics import Entry, ListedTopic

WALL_MS = 1_000_000
"""Wall time of most plans, Unix ms; most record times lie before it."""
FUTURE_MS = WALL_MS + MAX_AHEAD_MS + 1
"""Least time of a future record at that wall time."""


@dataclass
class Reader:
    """Reads a topic batch by batch, and checks each plan against the records.

    Attributes:
        topic: What it reads.
        position: Where the next batch begins.
        clocks: Clock of the chunk at each record read: (partition, offset) -> ms.
        peaks: Greatest time of the records read of each partition, without future
            records, Unix ms.
        futures: Records from the future: (partition, offset).
        batches: Number of rows of each batch.
        window: Record times to read; None for all.
    """

    topic: ListedTopic
    position: Position = field(default_factory=Position)
    clocks: dict[tuple[int, int], int] = field(default_factory=dict)
    peaks: dict[int, int] = field(default_factory=dict)
    futures: set[tuple[int, int]] = field(default_factory=set)
    batches: list[int] = field(default_factory=list)
    window: Window | None = None
    _quiet_ms: int = 0

    def read_batch(
        self,
        limit: int,
        wall_ms: int = WALL_MS,
        target: Target | None = None,
        *,
        trusted_ms: int = 0,
    ) -> bool:
        """Plan and read one batch; False if there was nothing to do.

        Args:
            limit: Number of rows that fit.
            wall_ms: Wall time of its admission, Unix ms.
            target: Where to stop, for a run that drains the topic.
            trusted_ms: How far ends of transactions may drive the clock ahead of the
                records' times.
        """
        start = self.position
        admission = replace(self.topic.admission(limit), window=self.window)
        end = admission.plan(start, wall_ms, target, self._quiet_ms)
        again = admission.plan(start, wall_ms, target, self._quiet_ms)
        assert again == end, "a second plan differs"
        assert Position.from_json(end.to_json()) == end
        self.position = end
        if end == start:
            self._quiet_ms = wall_ms
            return False
        self._quiet_ms = 0
        self._read(start, end)
        assert wall_ms <= end.admitted_ms <= wall_ms + MAX_AHEAD_MS
        assert end.clock_ms >= start.clock_ms
        if end.clock_ms > start.clock_ms:
            self._check_records_before_the_clock_are_read(start, target, trusted_ms)
        for partition, here in end.partitions.items():
            newest = max(end.clock_ms, here.newest_ms)
            true = max(end.clock_ms, self.peaks.get(partition, 0))
            assert true <= newest <= true + trusted_ms
        assert self.batches[-1] <= limit
        return True

    def read_all(
        self,
        limits: Sequence[int],
        wall_ms: int = WALL_MS,
        target: Target | None = None,
        *,
        trusted_ms: int = 0,
    ) -> None:
        """Read until there is nothing to do, with the limits in turn."""
        entries = sum(len(log.entries) for log in self.topic.logs)
        for number in count():
            # Each batch reads a record; few move the clock alone.
            assert number <= 2 * entries + 3, "reading does not end"
            limit = limits[number % len(limits)]
            if not self.read_batch(limit, wall_ms, target, trusted_ms=trusted_ms):
                return

    def _read(self, start: Position, end: Position) -> None:
        rows = 0
        for partition, after in end.partitions.items():
            before = start.partitions.get(
                partition, PartitionPosition(after.batch_start)
            )
            assert after.next_offset >= after.batch_start == before.next_offset
            rows += after.next_offset - after.batch_start
            clock_ms = max(start.clock_ms, before.newest_ms)
            for at, written_ms in self._settled(
                OffsetRange(partition, after.batch_start, after.next_offset),
                Foresight(
                    clock_ms,
                    end.admitted_ms,
                    start.last_look(partition, end.quiet_ms),
                ),
                end.ends[partition],
            ):
                time_ms = at.timestamp_ms
                if self.window is not None:
                    time_ms = min(time_ms, self.window.last_ms)
                if is_future(at.timestamp_ms, written_ms):
                    self.futures.add((partition, at.offset))
                else:
                    clock_ms = max(clock_ms, time_ms)
                    self.peaks[partition] = max(self.peaks.get(partition, 0), time_ms)
                if self.window is None or at.timestamp_ms in self.window:
                    self.clocks[partition, at.offset] = clock_ms
        assert end.records == start.records + rows
        self.batches.append(rows)

    def _check_records_before_the_clock_are_read(
        self, start: Position, target: Target | None, trusted_ms: int
    ) -> None:
        """Check that a record before T is unread only if it is late.

        A record is late if an earlier offset of its partition has at least its time.
        """
        for partition, log in enumerate(self.topic.logs):
            end = log.end
            if target is not None:
                end = min(end, target.ends.get(partition, 0))
            unread = self.position.partitions[partition].next_offset
            peak_ms = self.peaks.get(partition, 0)
            for at, written_ms in self._settled(
                OffsetRange(partition, unread, end),
                Foresight(
                    max(peak_ms, self.position.clock_ms),
                    self.position.admitted_ms,
                    start.last_look(partition, self.position.quiet_ms),
                ),
                log.end,
            ):
                if not is_future(at.timestamp_ms, written_ms) and (
                    at.timestamp_ms > peak_ms
                ):
                    assert at.timestamp_ms >= self.position.clock_ms - trusted_ms
                    break

    def _settled(
        self,
        wanted: OffsetRange,
        foresight: Foresight[TimedOffset],
        held: int,
    ) -> Iterator[tuple[TimedOffset, int]]:
        """Records, each with the time at which it was written at the latest."""
        for at in self._records(*wanted):
            yield from foresight.add(at)
        behind = min(held, wanted.end + LOOKAHEAD)
        yield from foresight.finish(self._records(wanted.partition, wanted.end, behind))

    def _records(self, partition: int, start: int, end: int) -> Iterator[TimedOffset]:
        for offset in range(start, end):
            entry = self.topic.logs[partition].entries[offset]
            if entry.is_record:
                yield TimedOffset(offset, entry.time_ms)


def drained(*times: Sequence[int], limit: int = 4) -> Reader:
    """Return a reader that has drained a topic with these record times."""
    topic = ListedTopic(*times)
    reader = Reader(topic)
    reader.read_all([limit], target=topic.admission().target())
    return reader


def replayed(topic: ListedTopic, window: Window, limits: Sequence[int]) -> Reader:
    """Drain a window of a topic, with the limits in turn; return its reader."""
    admission = replace(topic.admission(), window=window)
    target = admission.target()
    begins = topic.first_at_or_after(topic.partitions(), window.first_ms)
    start = Position(
        window.first_ms,
        partitions={
            partition: PartitionPosition(
                begins[partition].offset if partition in begins else log.end
            )
            for partition, log in enumerate(topic.logs)
        },
    )
    reader = Reader(topic, start, window=window)
    reader.read_all(limits, target=target)
    return reader


def ends(position: Position) -> list[int]:
    """Next offset of each partition, in order of partitions."""
    return [offset for _, offset in sorted(position.next_offsets().items())]


TIMES = st.integers(0, 40)
"""Few values, so that equal times, late records and bursts are common."""


@st.composite
def partition_times(draw: st.DrawFn, futures: bool = True) -> list[int]:
    """Record times that mostly rise, with late and future records and bursts."""
    times: list[int] = []
    now_ms = draw(TIMES) * 500
    for _ in range(draw(st.integers(0, 12))):
        now_ms += draw(st.sampled_from([0, 1, 7, 400, 2_500, 45_000]))
        match draw(st.integers(0, 9)):
            case 0:
                times.append(max(0, now_ms - draw(st.integers(1, 60_000))))
            case 1 if futures:
                times.append(FUTURE_MS + draw(st.integers(0, 100_000)))
            case 2:
                times += [now_ms] * draw(st.integers(2, 9))
            case _:
                times.append(now_ms)
    return times


@st.composite
def entries(draw: st.DrawFn) -> list[Entry]:
    """Entries of one partition: records, and ends of transactions among them."""
    listed = [Entry(time_ms) for time_ms in draw(partition_times())]
    for marker_ms in draw(st.lists(st.integers(0, 400_000), max_size=3)):
        place = draw(st.integers(0, len(listed)))
        listed.insert(place, Entry(marker_ms, is_record=False))
    return listed


def listed(partitions: Sequence[list[Entry]]) -> ListedTopic:
    """A topic with these entries."""
    topic = ListedTopic(*[[]] * len(partitions))
    for log, entries_ in zip(topic.logs, partitions, strict=True):
        log.entries = entries_
    return topic


def record_times(topic: ListedTopic, scan_rows: int = 100) -> RecordTimes:
    """Record times of all records of a topic, at `WALL_MS`."""
    admission = topic.admission()
    return RecordTimes(
        topic,
        topic.scan_times,
        admission.is_record,
        Unread(
            Position(partitions={p: PartitionPosition(0) for p in topic.partitions()}),
            topic.latest(topic.partitions()),
            topic.latest(topic.partitions()),
            dict.fromkeys(topic.partitions(), NO_LOOK),
            WALL_MS,
            WALL_MS,
        ),
        WALL_MS + MAX_AHEAD_MS,
        scan_rows,
    )


@st.composite
def clocks_and_lies(draw: st.DrawFn) -> list[tuple[int, bool]]:
    """Times of records of one partition, each with whether it is from the future.

    The others are stamped when they were written, or late. Silences are among them. At
    least three follow each record from the future within seconds.
    """
    listed: list[tuple[int, bool]] = []
    now_ms = draw(st.integers(0, 20_000))
    for _ in range(draw(st.integers(1, 4))):
        now_ms += draw(st.sampled_from([0, 30_000, 61_000, 3_600_000]))
        if draw(st.booleans()):
            ahead_ms = draw(st.sampled_from([80_000, 100_000, 200_000, 90_000_000]))
            listed.append((now_ms + ahead_ms, True))
        for _ in range(draw(st.integers(3, 8))):
            late_ms = draw(st.sampled_from([0, 0, 0, 0, 50, 30_000]))
            listed.append((max(0, now_ms - late_ms), False))
            now_ms += draw(st.sampled_from([0, 1, 700, 2_000]))
    return listed
