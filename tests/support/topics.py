"""A topic that holds only record times, for tests of admission."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from connectors.kafka.offsets import TimedOffset, Topic
from connectors.kafka.settings import KafkaSettings
from streaming.admission import Admission
from streaming.settings import BatchLimits

NO_LIMITS = BatchLimits()


class Entry(NamedTuple):
    """What lies at one offset of the log.

    Attributes:
        time_ms: Its time in the broker's index, Unix ms.
        is_record: False for the end of a transaction, which clients never receive.
    """

    time_ms: int
    is_record: bool = True


@dataclass
class Log:
    """One partition.

    Attributes:
        entries: Entries from offset 0 on.
        first: Offset of the first entry that retention has not deleted.
        open_from: Offset at which an open transaction begins; None if there is none.
    """

    entries: list[Entry] = field(default_factory=list)
    first: int = 0
    open_from: int | None = None

    @property
    def end(self) -> int:
        """Last stable offset."""
        return len(self.entries) if self.open_from is None else self.open_from


class ListedTopic:
    """Offsets as a broker gives them to a client that reads committed records.

    Attributes:
        logs: One per partition.
        topic_id: Kafka's id of the topic; None for a broker that gives none.
        scanned: Number of offsets read by `scan_times`.
        lookups: Number of calls of `first_at_or_after`.
    """

    def __init__(self, *times: Sequence[int], topic_id: str | None = None) -> None:
        self.topic_id = topic_id
        self.logs = [Log() for _ in times]
        self.scanned = 0
        self.lookups = 0
        for partition, partition_times in enumerate(times):
            self.append(partition, *partition_times)

    def append(self, partition: int, *times_ms: int) -> None:
        """Append records; adds partitions up to this one if necessary."""
        while partition >= len(self.logs):
            self.logs.append(Log())
        self.logs[partition].entries += map(Entry, times_ms)

    def append_marker(self, partition: int, time_ms: int) -> None:
        """Append the end of a transaction."""
        self.logs[partition].entries.append(Entry(time_ms, is_record=False))

    def admission(
        self, limits: BatchLimits | int = NO_LIMITS, skip_lost: bool = False
    ) -> Admission:
        """Admission for this topic; a plain number limits the rows."""
        if isinstance(limits, int):
            limits = BatchLimits(rows=limits)
        return Admission(
            KafkaSettings("", "frames"),
            self,
            self.scan_times,
            self.mean_bytes,
            limits,
            skip_lost,
        )

    def partitions(self) -> list[int]:
        """All partitions."""
        return list(range(len(self.logs)))

    def describe(self) -> Topic:
        """The id and all partitions."""
        return Topic(self.topic_id, self.partitions())

    def earliest(self, partitions: Collection[int]) -> dict[int, int]:
        """First offset that retention has not deleted."""
        return {p: self.logs[p].first for p in partitions}

    def latest(self, partitions: Collection[int]) -> dict[int, int]:
        """Last stable offset."""
        return {p: self.logs[p].end for p in partitions}

    def newest(self, partitions: Collection[int]) -> dict[int, TimedOffset]:
        """First entry with the greatest time, if it is stable.

        Like Kafka, also names one that retention has deleted.
        """
        found = {}
        for partition in partitions:
            log = self.logs[partition]
            if log.entries:
                times = [entry.time_ms for entry in log.entries]
                offset = times.index(max(times))
                if offset < log.end:
                    found[partition] = TimedOffset(offset, times[offset])
        return found

    def first_at_or_after(
        self, partitions: Collection[int], timestamp_ms: int
    ) -> dict[int, TimedOffset]:
        """First stable entry with at least this time, record or not."""
        self.lookups += 1
        found = {}
        for partition in partitions:
            log = self.logs[partition]
            for offset in range(log.first, log.end):
                if log.entries[offset].time_ms >= timestamp_ms:
                    found[partition] = TimedOffset(offset, log.entries[offset].time_ms)
                    break
        return found

    def scan_times(self, partition: int, start: int, end: int) -> list[TimedOffset]:
        """Offsets and times of the records in [start, end)."""
        self.scanned += end - start
        return [
            TimedOffset(offset, entry.time_ms)
            for offset, entry in enumerate(self.logs[partition].entries)
            if start <= offset < end and entry.is_record
        ]

    def mean_bytes(self, starts: Mapping[int, int]) -> int:
        """Every record has 1,000 bytes."""
        assert starts
        return 1_000
