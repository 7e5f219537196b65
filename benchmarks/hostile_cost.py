"""CPU time of hostile records, against that of genuine frames of their size.

    python -m benchmarks.hostile_cost [SHAPE ...]

It covers digest, state opened, applied and closed, and deadlines, in one process
(`tests.support.hostile.pipeline`). Genuine frames are those of the benchmark data, one
channel at a time, in batches of as many records, which take turns with the hostile
ones. Frames that are longer than those of the data are compared with frames that are
padded with content.

Without arguments it prints each shape, each pair and the known triple. With arguments
it prints the one record that combines these shapes.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from statistics import median
from typing import TypeVar

import click

from benchmarks.data import BIG, SMALL, START_MS, Shape, simulated_shard
from sds_core.observer.record import RawRecord
from sds_core.wire import decode, encode
from tests.support.hostile.combined import (
    BATCH_RECORDS,
    PREPARING_BATCHES,
    SHAPES,
    TRIPLE,
    Names,
    Record,
    batch,
    dialect_of,
    pairs,
    prelude,
)
from tests.support.hostile.pipeline import Pipeline
from tests.support.hostile.shapes import FILTER_BYTES

One = TypeVar("One")

_MEASURED_BATCHES = 10
_WAITED_S = 330
"""Longer than the longest deadline of an id that was named."""
_CHANNELS = 4
_SECONDS = 150
_WARM_BATCHES = 4
_SIZES = (0, FILTER_BYTES, 150_000, 1_000_000, 3_900_000)
"""Least bytes of a frame of each class; the first two are those of the data."""


def times_genuine(names: Names) -> float:
    """How many times as much as a genuine frame a record of these shapes costs."""
    pipeline = Pipeline()
    offset = 0

    def taken(records: Iterable[Record]) -> float:
        nonlocal offset
        raw = [_raw(offset + n, record) for n, record in enumerate(records)]
        offset += len(raw)
        return _spent_s(pipeline, raw)

    for part in _cut(prelude(dialect_of(names)), 500):
        taken(part)
    for number in range(PREPARING_BATCHES):
        taken(batch(number, names))
    hurt, usual = [], []
    last = PREPARING_BATCHES + _MEASURED_BATCHES
    batches = [batch(number, names) for number in range(PREPARING_BATCHES, last)]
    genuine = _genuine(_size(median(len(one.value) for b in batches for one in b)))
    gc.collect()
    gc.disable()
    try:
        for records in batches:
            hurt.append(taken(records))
            usual.append(next(genuine))
        begun_s = time.process_time()
        pipeline.wait(_WAITED_S)
        # Of a batch, by its share of all records.
        later_s = (time.process_time() - begun_s) * BATCH_RECORDS / offset
    finally:
        gc.enable()
    return (median(hurt) + later_s) / median(usual)


def _cut(records: Sequence[One], length: int) -> Iterator[Sequence[One]]:
    return (records[at : at + length] for at in range(0, len(records), length))


def _size(size_bytes: float) -> int:
    return max(size for size in _SIZES if size <= size_bytes)


def _raw(offset: int, record: Record) -> RawRecord:
    at_ms = START_MS + record.at_ms
    return RawRecord(0, offset, at_ms, None, record.value, record.headers)


def _spent_s(pipeline: Pipeline, records: Sequence[RawRecord]) -> float:
    begun_s = time.process_time()
    pipeline.take(records)
    return time.process_time() - begun_s


def _genuine(size_bytes: int) -> Iterator[float]:
    """Yield the CPU time of batches of genuine frames, seconds, without an end."""
    while True:
        for records in _channels(size_bytes):
            pipeline = Pipeline()
            for number, part in enumerate(_cut(records, BATCH_RECORDS)):
                spent_s = _spent_s(pipeline, part)
                if number >= _WARM_BATCHES and len(part) == BATCH_RECORDS:
                    yield spent_s


@cache
def _channels(size_bytes: int) -> list[list[RawRecord]]:
    """Records of some channels of the benchmark data, each channel in order."""
    data = BIG if size_bytes else SMALL
    shape = Shape(
        data.name,
        _CHANNELS,
        _SECONDS,
        history=data.history,
        has_filter=data.has_filter,
    )
    channels: dict[bytes, list[RawRecord]] = {}
    for offset, one in enumerate(simulated_shard(shape, 0)):
        if one.value and one.key:
            value = _padded(one.value, size_bytes)
            raw = RawRecord(0, offset, one.timestamp_ms, one.key, value, one.headers)
            channels.setdefault(one.key, []).append(raw)
    return list(channels.values())


def _padded(value: bytes, size_bytes: int) -> bytes:
    if len(value) >= size_bytes:
        return value
    frame = decode(value)
    content = frame.content + b"x" * (size_bytes - len(value))
    return encode(frame._replace(content=content))


@click.command(help=__doc__)
@click.argument("names", nargs=-1, type=click.Choice(tuple(SHAPES)))
def main(names: Names) -> None:
    """Print how many times a genuine frame the records cost, the dearest first."""
    wanted = [names] if names else [*((one,) for one in SHAPES), *pairs(), TRIPLE]
    found = [(times_genuine(one), one) for one in wanted]
    for value, one in sorted(found, reverse=True):
        click.echo(f"{value:8.2f}  {' + '.join(one)}")


if __name__ == "__main__":
    main()
