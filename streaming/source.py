"""Spark data source ``sds-frames``: Kafka offset ranges in, digests out.

Spark asks the reader on the driver how far the next batch goes; the read itself runs
in Python workers and decodes there, so that only one compact row per channel, tap and
chunk crosses into the JVM (architecture, decision 2).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from connectors.kafka.consumer import Client, OffsetRange, fetch
from connectors.kafka.offsets import TimedOffset, TopicOffsets
from connectors.kafka.settings import KafkaSettings
from sds_core.observer.kinds import AnyProtocol, without_figures
from sds_core.observer.protocols import PROTOCOLS, by_name
from sds_core.observer.record import RawRecord, is_future
from streaming.admission import Admission, BatchLimits, Target, Window
from streaming.chunk import Chunk, DigestRow
from streaming.keys import CLOCK_KEY
from streaming.position import PartitionPosition, Position

FORMAT = "sds-frames"
SCHEMA = "key string, digest binary, event_time timestamp"
_ARROW_SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("digest", pa.binary()),
        ("event_time", pa.timestamp("us", tz="UTC")),
    ]
)
_SAMPLE_RECORDS = 20

EARLIEST = "earliest"
LATEST = "latest"


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """What the reader needs, on the driver and in the workers.

    Attributes:
        kafka: Cluster and topic.
        client: Which library reads.
        limits: Of one batch.
        start: ``earliest``, ``latest`` or a Unix time in ms, for a new checkpoint.
        tasks: How many workers read at once.
        skip_lost: Go on, and count, when records are gone before they were read.
        window: Read only records of these times, instead of a start; for a job that
            ends.
    """

    kafka: KafkaSettings
    client: Client = Client.CONFLUENT
    limits: BatchLimits = field(default_factory=BatchLimits)
    start: str | int = EARLIEST
    tasks: int = 2
    skip_lost: bool = False
    window: Window | None = None

    def to_options(self) -> dict[str, str]:
        """Options of Spark's ``readStream``."""
        security = self.kafka.security
        open_kafka = replace(
            self.kafka, security=replace(security, password=None, key_password=None)
        )
        options = {
            "settings": msgspec.json.encode(replace(self, kafka=open_kafka)).decode(),
            # Spark shows plans and their options, but none that is named so.
            "password": security.password,
            "key_password": security.key_password,
        }
        return {name: value for name, value in options.items() if value is not None}

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> SourceSettings:
        """Read what `to_options` made."""
        settings = msgspec.json.decode(options["settings"], type=cls)
        security = replace(
            settings.kafka.security,
            password=options.get("password"),
            key_password=options.get("key_password"),
        )
        return replace(settings, kafka=replace(settings.kafka, security=security))


@dataclass(frozen=True, slots=True)
class ReadRange:
    """One partition's share of a batch.

    Attributes:
        offsets: What to read.
        clock_ms: The partition's clock before it, Unix ms.
    """

    offsets: OffsetRange
    clock_ms: int


class ReadTask(InputPartition):
    """What one worker reads of a batch.

    Attributes:
        ranges: Of whole Kafka partitions.
        clock_ms: The batch's admission time T.
        admitted_ms: Wall time of the batch's admission.
        tells_clock: Whether it also gives the row that carries T, so that the
            watermark moves although nothing was read.
    """

    def __init__(
        self,
        ranges: Sequence[ReadRange],
        clock_ms: int,
        admitted_ms: int,
        tells_clock: bool,
    ) -> None:
        super().__init__(None)
        self.ranges = ranges
        self.clock_ms = clock_ms
        self.admitted_ms = admitted_ms
        self.tells_clock = tells_clock


def make_source(protocols: Iterable[AnyProtocol] = PROTOCOLS) -> type[DataSource]:
    """Make the data source that Spark registers under the name `FORMAT`.

    Args:
        protocols: Registered protocols. They go to Spark's Python workers with the
            reader, so whatever they name must be importable there.
    """
    registered = without_figures(protocols)

    class SdsFramesSource(DataSource):
        """Registers the reader with Spark."""

        @classmethod
        def name(cls) -> str:
            """The format's name."""
            return FORMAT

        def schema(self) -> str:
            """One row per view and chunk."""
            return SCHEMA

        def streamReader(self, schema: Any) -> DataSourceStreamReader:
            """A reader for one query."""
            settings = SourceSettings.from_options(self.options)
            return SdsFramesReader(settings, registered)

    return SdsFramesSource


class SdsFramesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches on the driver and reads them in the workers."""

    def __init__(
        self, settings: SourceSettings, protocols: Iterable[AnyProtocol] = PROTOCOLS
    ) -> None:
        self._settings = settings
        self._protocols = by_name(protocols)
        self._target: Target | None = None
        self._offsets: TopicOffsets | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Workers get the settings, not the driver's connection."""
        return self.__dict__ | {"_offsets": None}

    def initialOffset(self) -> dict[str, Any]:
        """Where a new checkpoint begins."""
        offsets = self._admission().offsets
        partitions = offsets.partitions()
        firsts = offsets.earliest(partitions)
        window = self._settings.window
        start = self._settings.start if window is None else window.first_ms
        if start != EARLIEST:
            ends = offsets.latest(partitions)
            found = (
                {}
                if isinstance(start, str)
                else offsets.first_at_or_after(partitions, start)
            )
            firsts = {p: found[p].offset if p in found else ends[p] for p in partitions}
        return Position(
            # Nothing of a window lies before it.
            clock_ms=0 if window is None else window.first_ms,
            partitions={
                partition: PartitionPosition(first)
                for partition, first in firsts.items()
            },
        ).to_json()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """How far the next batch goes; the start itself if there is nothing new."""
        position = Position.from_json(start)
        end = self._admission().plan(position, _wall_ms(), self._target)
        return end.to_json()

    def prepareForTriggerAvailableNow(self) -> None:
        """Remember the end of what the topic holds now."""
        self._target = self._admission().target()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[ReadTask]:
        """Divide a batch among the workers, whole partitions to each."""
        ranges = _ranges(Position.from_json(start), Position.from_json(end))
        shares = _balanced(ranges, self._settings.tasks)
        return [
            ReadTask(share, end["clock_ms"], end["admitted_ms"], tells_clock=not index)
            for index, share in enumerate(shares)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read and digest one worker's share."""
        task = partition
        assert isinstance(task, ReadTask)  # noqa: S101 - Spark hands back what it got
        if task.tells_clock:
            row = DigestRow(CLOCK_KEY, b"")
            yield _record_batch([row], task.clock_ms)
        chunks = {
            wanted.offsets.partition: Chunk(
                wanted.offsets.partition,
                wanted.clock_ms,
                task.admitted_ms,
                self._protocols,
            )
            for wanted in task.ranges
        }
        settings = self._settings
        ranges = [wanted.offsets for wanted in task.ranges]
        for records in fetch(settings.client, settings.kafka, ranges):
            for record in records:
                chunk = chunks[record.partition]
                if not self._is_wanted(record, chunk, task.admitted_ms):
                    continue
                chunk.add(record)
                if chunk.is_full:
                    yield _record_batch(list(chunk.take_rows()), task.clock_ms)
        for chunk in chunks.values():
            yield _record_batch(list(chunk.take_rows()), task.clock_ms)

    def _is_wanted(self, record: RawRecord, chunk: Chunk, admitted_ms: int) -> bool:
        """Whether a record lies in the window, if there is one."""
        window = self._settings.window
        if window is None or record.timestamp_ms in window:
            return True
        if record.timestamp_ms > window.last_ms and not is_future(
            record.timestamp_ms, admitted_ms
        ):
            # Those of the window behind it are late, wherever a batch was cut.
            chunk.clock_ms = max(chunk.clock_ms, window.last_ms)
        return False

    def commit(self, end: dict[str, Any]) -> None:
        """Offsets live in the checkpoint; `streaming.progress` tells Kafka."""

    def stop(self) -> None:
        """Close the driver's connection."""
        if self._offsets is not None:
            self._offsets.close()
            self._offsets = None

    def _admission(self) -> Admission:
        settings = self._settings
        if self._offsets is None:
            self._offsets = TopicOffsets(settings.kafka)
        return Admission(
            settings.kafka.topic,
            self._offsets,
            scan_times=self._scan_times,
            mean_bytes=self._mean_bytes,
            limits=settings.limits,
            skip_lost=settings.skip_lost,
            window=settings.window,
        )

    def _scan_times(self, partition: int, start: int, end: int) -> list[TimedOffset]:
        return [
            TimedOffset(record.offset, record.timestamp_ms)
            for records in fetch(
                self._settings.client,
                self._settings.kafka,
                [OffsetRange(partition, start, end)],
            )
            for record in records
        ]

    def _mean_bytes(self, starts: Mapping[int, int]) -> int:
        ends = self._admission().offsets.latest(list(starts))
        sample = [
            OffsetRange(p, start, min(ends[p], start + _SAMPLE_RECORDS))
            for p, start in starts.items()
        ]
        sizes = [
            len(record.value or b"")
            for records in fetch(self._settings.client, self._settings.kafka, sample)
            for record in records
        ]
        return sum(sizes) // len(sizes) if sizes else 0


def _ranges(start: Position, end: Position) -> list[ReadRange]:
    return [
        ReadRange(
            OffsetRange(partition, ahead.batch_start, ahead.next_offset),
            max(
                start.clock_ms,
                start.partitions.get(partition, PartitionPosition(0)).newest_ms,
            ),
        )
        for partition, ahead in end.partitions.items()
    ]


def _balanced(ranges: Sequence[ReadRange], tasks: int) -> list[list[ReadRange]]:
    """Shares of about the same number of records, at least one."""
    shares: list[list[ReadRange]] = [[] for _ in range(max(1, tasks))]
    sizes = [0] * len(shares)
    for wanted in sorted(ranges, key=_size, reverse=True):
        if _size(wanted) <= 0:
            continue
        smallest = sizes.index(min(sizes))
        shares[smallest].append(wanted)
        sizes[smallest] += _size(wanted)
    return [shares[0], *filter(None, shares[1:])]


def _size(wanted: ReadRange) -> int:
    return wanted.offsets.end - wanted.offsets.start


def _record_batch(rows: Sequence[DigestRow], clock_ms: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([row.key for row in rows], pa.string()),
            pa.array([row.digest for row in rows], pa.binary()),
            pa.array([clock_ms * 1000] * len(rows), pa.int64()).cast(
                _ARROW_SCHEMA.field("event_time").type
            ),
        ],
        schema=_ARROW_SCHEMA,
    )


def _wall_ms() -> int:
    """Wall time, read here at admission and else only outside the views."""
    return time.time_ns() // 1_000_000
