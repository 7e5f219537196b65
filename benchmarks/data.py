"""Data sets of the benchmarks: simulated traffic, made once and stored in a cache.

The frames come from this project's own participants with the options of js-waku's
`@waku/sds` (profile `js_sds`), in channels of their own seeds, so no message id occurs
in two channels. Two changes: a history is as long as `Shape.history`, and frames of
shapes without `has_filter` have their bloom filter removed, as those of applications
that send none. The same `Shape` always gives the same records.

The cache lies outside of the repository, in the user's cache directory; delete it to
make the data again.
"""

from __future__ import annotations

import gzip
import heapq
import itertools
import multiprocessing
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import platformdirs

from connectors.kafka.producer import TopicRecord
from connectors.simulator.records import simulated_records
from sds_core.observer.record import RawRecord
from sds_core.simulation.log import Entry
from sds_core.simulation.scenario import Scenario
from sds_core.simulation.truth import Truth
from sds_core.wire import Frame, decode, encode

PARTITIONS = 4
"""Partitions of each topic."""

START_MS = 1_760_000_000_000
"""First record time of every data set, Unix ms."""

_MADE_BY = 1
"""Raise it if the same `Shape` is to give other records."""

_LENGTH_BYTES = 4


@dataclass(frozen=True, slots=True)
class Shape:
    """Traffic of one kind.

    Attributes:
        name: Name of the data set; channels are named after it.
        channels: Number of channels.
        seconds: Length, in seconds of record time.
        interval_s: Mean time between two messages of a channel, seconds.
        participants: Participants of each channel.
        history: Most entries in a frame's causal history.
        has_filter: Whether frames have their bloom filter.
        shard: Channels that are simulated together, with a seed of their own.
        heartbeat_s: Time between two heartbeats of the tap, seconds.
    """

    name: str
    channels: int
    seconds: float
    interval_s: float = 1.0
    participants: int = 5
    history: int = 3
    has_filter: bool = False
    shard: int = 160
    heartbeat_s: float = 5.0

    @property
    def file(self) -> Path:
        """Where the cache has the records."""
        words = (
            f"{self.name}-{self.channels}x{self.seconds:g}s-{self.interval_s:g}-"
            f"{self.participants}p-{self.history}h-{self.has_filter:d}-"
            f"{self.shard}-{self.heartbeat_s:g}-{_MADE_BY}"
        )
        return cache_dir() / f"{words}.records.gz"

    def shortened(self, seconds: float) -> Shape:
        """Return the same traffic, but shorter."""
        return replace(self, seconds=seconds)


BIG = Shape("big", 320, 125, history=40, has_filter=True)
SMALL = Shape("small", 1_920, 60)
LIVE_BIG = Shape("live-big", 40, 90, interval_s=0.08, history=40, has_filter=True)
HOUR = Shape("hour", 200, 3_600 + 300, participants=3)
MANY = Shape("many", 21_000, 9, participants=2, shard=1_000)
FEW = Shape("few", 8, 180, interval_s=8 / 3, history=40, has_filter=True)


def mix(per_second: int) -> tuple[Shape, ...]:
    """Return what an operator's topic holds, at about so many frames per second.

    - Sizes of channels follow a power law: few are busy, most are quiet. Three classes
      have 1, 5 and 25 times as many channels, each of which has a first, a fifth and a
      25th of the traffic, so each class brings as many messages.
    - Busy channels have more participants.
    - Half of the channels of each class have the filters and histories of the library,
      the others those of an application that sends no filter.
    - Two frames of three are sync messages, as the participants send them by default.
    - More traffic is more channels: how much people talk does not depend on how many
      others use the same network.

    Args:
        per_second: A multiple of 10.
    """
    return tuple(
        Shape(
            f"{name}-{'big' if has_filter else 'small'}-{per_second}",
            channels * per_second // 10,
            90,
            interval_s=interval_s,
            participants=participants,
            history=40 if has_filter else 3,
            has_filter=has_filter,
            # A tap for each shard: there are no more than a few in practice.
            shard=1_300,
        )
        for has_filter in (True, False)
        for name, channels, interval_s, participants in (
            ("busy", 1, 2, 10),
            ("usual", 5, 10, 5),
            ("quiet", 25, 50, 3),
        )
    )


def cache_dir() -> Path:
    """Return the directory of the data sets; it need not exist."""
    return platformdirs.user_cache_path("sds-monitor") / "benchmarks"


def records_of(*shapes: Shape) -> Iterator[TopicRecord]:
    """Yield the records of one or more shapes in the order of their times.

    Makes and stores them first if the cache does not have them.
    """
    for shape in shapes:
        if not shape.file.exists():
            _make(shape)
    streams = [_read(shape.file) for shape in shapes]
    return heapq.merge(*streams, key=lambda record: record.timestamp_ms)


def as_read(records: Iterable[TopicRecord]) -> Iterator[RawRecord]:
    """Yield records as the job reads them from a new topic."""
    offsets: defaultdict[int, Iterator[int]] = defaultdict(itertools.count)
    for one in records:
        yield RawRecord(
            one.partition,
            next(offsets[one.partition]),
            one.timestamp_ms,
            one.key,
            one.value,
            one.headers,
        )


def _make(shape: Shape) -> None:
    """Simulate all shards, on all cores, and merge them into the cache's file."""
    shape.file.parent.mkdir(parents=True, exist_ok=True)
    count = -(-shape.channels // shape.shard)
    # In a directory of its own: another run may be making the same.
    with TemporaryDirectory(dir=shape.file.parent) as name:
        parts = [Path(name) / str(number) for number in range(count)]
        with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
            pool.starmap(
                _simulate, [(shape, number, part) for number, part in enumerate(parts)]
            )
        new = Path(name) / "all"
        _write(
            heapq.merge(*map(_read, parts), key=lambda record: record.timestamp_ms), new
        )
        new.rename(shape.file)


def _simulate(shape: Shape, number: int, path: Path) -> None:
    """Simulate one shard into a file."""
    _write(simulated_shard(shape, number), path)


def simulated_shard(shape: Shape, number: int) -> Iterator[TopicRecord]:
    """Simulate one shard; its tap is its own, so that sequence numbers have no gaps.

    Args:
        shape: The traffic.
        number: Number of the shard, which is its seed.
    """
    channels = min(shape.shard, shape.channels - number * shape.shard)
    scenario = Scenario.from_mapping(
        {
            "name": shape.name,
            "description": "traffic of the benchmarks",
            "duration_s": shape.seconds,
            "participants": max(40, shape.participants),
            "channels": [
                {
                    "name": f"{shape.name}-{number}",
                    "count": channels,
                    "participants": shape.participants,
                    "traffic": {"mean_interval_s": shape.interval_s},
                }
            ],
            "profiles": [
                {
                    "base": "js_sds",
                    "overrides": {"causal_history_size": shape.history},
                }
            ],
            "network": {"loss": 0.01},
            "taps": [
                {
                    "name": f"tap-{number}",
                    "heartbeat_interval_s": shape.heartbeat_s,
                }
            ],
        }
    )
    records = simulated_records(scenario, number, START_MS, PARTITIONS, _NoTruth())
    return records if shape.has_filter else map(_without_filter, records)


class _NoTruth(Truth):
    """Collects nothing: nobody asks what really happened."""

    def __init__(self) -> None:
        super().__init__("", 0)

    def add(self, entry: Entry) -> None:
        """Ignore it."""


def _without_filter(record: TopicRecord) -> TopicRecord:
    if not record.value:
        return record
    frame = decode(record.value)
    plain: Frame = frame._replace(bloom_filter=b"")
    return replace(record, value=encode(plain))


def _write(records: Iterator[TopicRecord], path: Path) -> None:
    encoder = msgspec.msgpack.Encoder()
    with gzip.open(path, "wb", compresslevel=1) as file:
        for record in records:
            packed = encoder.encode(record)
            file.write(len(packed).to_bytes(_LENGTH_BYTES, "big") + packed)


def _read(path: Path) -> Iterator[TopicRecord]:
    decoder = msgspec.msgpack.Decoder(TopicRecord)
    with gzip.open(path, "rb") as file:
        while head := file.read(_LENGTH_BYTES):
            yield decoder.decode(file.read(int.from_bytes(head, "big")))
