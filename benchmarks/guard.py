"""Guards ratios of the job's speed that need neither Spark nor Kafka.

    python -m benchmarks.guard

Each is the CPU time of something by that of a simple computation on the same
machine, the least of some repetitions, so that neither a slow nor a busy machine
changes it much. They are compared with those of performance.json: a ratio that is
`FACTOR` times as large is a loss of speed that somebody should look at, and the command
ends with exit code 1.
"""

from __future__ import annotations

import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial

import click

from benchmarks.contenders.naive import Channel
from benchmarks.contenders.same_semantics import Observer
from benchmarks.context import Context
from benchmarks.data import BIG, SMALL, Shape, as_read, simulated_shard
from benchmarks.results import Run, read_run
from benchmarks.rows.channel import opened
from benchmarks.state import filling
from sds_core.observer.record import RawRecord
from sds_core.wire.proto.sds_spec_pb2 import SdsMessage
from tests.support.hostile.plays import SHAPES, times_normal

ROW = "guard"

FACTOR = 2.0
"""Ratios of one machine differ by a fifth, and machines differ too."""

_REPEAT = 5
_HOSTILE = ("a history as long as is read", "an empty filter", "requests for new ids")


@cache
def reference_s() -> float:
    """Return the CPU time of a computation that never changes, seconds.

    It mixes what the job does: small objects, dictionaries, bytes.
    """
    spent = []
    for _ in range(_REPEAT):
        begun_s = time.process_time()
        counts: dict[str, int] = {}
        for number in range(100_000):
            key = f"{number * 7919 % 5_003:x}"
            counts[key] = counts.get(key, 0) + 1
        packed = b"".join(key.encode() for key in sorted(counts)) * 500
        zlib.crc32(packed)
        spent.append(time.process_time() - begun_s)
    return min(spent)


def open_and_close(messages: int) -> float:
    """Open and close a channel, by the reference."""
    return min(next(opened(filling(), messages)).spent_s()) / reference_s()


def semantics(shape: Shape) -> float:
    """Digest and apply frames of some channels, by the naive dictionary of views."""
    records = list(as_read(simulated_shard(shape, 0)))
    ours, naive = [], []
    for _ in range(_REPEAT):
        naive.append(_spent(partial(_naive, records)))
        ours.append(_spent(partial(_observe, records)))
    return min(ours) / min(naive)


def hostile(name: str) -> float:
    """A hostile record, by a normal frame of its size."""
    return times_normal(SHAPES[name]())


def _spent(call: Callable[[], None]) -> float:
    begun_s = time.process_time()
    call()
    return time.process_time() - begun_s


def _observe(records: list[RawRecord]) -> None:
    observer = Observer(1 << 62, {record.partition for record in records})
    observer.read(records)
    observer.finish()


def _naive(records: list[RawRecord]) -> None:
    channels: dict[str, Channel] = {}
    for record in records:
        if record.value:
            message = SdsMessage.FromString(record.value)
            channels.setdefault(message.channel_id, Channel()).add(message)


def _shape(shape: Shape) -> Shape:
    """Return a shape that is simulated within seconds."""
    return Shape(shape.name, 12, 40, history=shape.history, has_filter=shape.has_filter)


RATIOS: dict[str, Callable[[], float]] = {
    "open and close 3,650 messages, by a reference computation": partial(
        open_and_close, 3_650
    ),
    "our semantics by a naive dictionary, big frames": partial(semantics, _shape(BIG)),
    "our semantics by a naive dictionary, small frames": partial(
        semantics, _shape(SMALL)
    ),
    **{f"{name}, by a normal frame": partial(hostile, name) for name in _HOSTILE},
}


def guard(context: Context) -> None:
    """Measure the ratios for performance.json."""
    for name, measure in RATIOS.items():
        context.say(ROW, name, "x", measure())


def compared(run: Run, measured: Mapping[str, float]) -> Iterator[tuple[str, bool]]:
    """Yield a line about each ratio, and whether it is too large.

    Args:
        run: The run with the ratios that are known.
        measured: Ratios by name.
    """
    for name, value in measured.items():
        known = run.median(ROW, name)
        if known is None:
            yield (
                f"{name}: {value:.3g}; performance.json has no such ratio",
                False,
            )
            continue
        is_slower = value > FACTOR * known
        word = "SLOWER" if is_slower else "ok"
        yield (
            f"{name}: {value:.3g}, allowed {FACTOR:g} x {known:.3g}: {word}",
            is_slower,
        )


@click.command(help=__doc__)
def main() -> None:
    """Print a line per ratio; exit code 1 if one is too large."""
    run, fell = read_run(), []
    for name, measure in RATIOS.items():
        for line, is_slower in compared(run, {name: measure()}):
            click.echo(line)
            if is_slower:
                fell.append(name)
    if fell:
        click.echo(f"slower than performance.json allows: {'; '.join(fell)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
