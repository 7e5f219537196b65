"""What one channel costs in one process: opened, given a frame, and closed again."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Iterable

import msgspec

from benchmarks.context import Context
from benchmarks.state import filling, simulated
from sds_core.observer.record import RawRecord
from sds_core.observer.sds.channel_view import ChannelView
from sds_core.observer.sds.kind import CHANNELS
from sds_core.wire import BloomFilter, Dialect
from streaming.chunk import Chunk
from tests.support.hostile.cost import cost
from tests.support.hostile.shapes import Play, Writer

ROW = "one channel"
GROWTH = "growth of one channel"
_DAY_S = 86_400
_REPEAT = 15


def open_and_close(context: Context) -> None:
    """Measure a channel with an hour of messages, and one with a full memory."""
    for _ in range(context.repeat):
        hour = simulated("js_sds", 5, _DAY_S, 3_650 / 3_600)
        for what, records in (
            ("an hour at one message/s", hour),
            ("20,000 messages", filling()),
        ):
            spent_s, size_bytes = open_apply_close(records)
            context.say(ROW, f"open, one frame, close: {what}", "ms", spent_s * 1e3)
            context.say("state", f"blob: {what}", "kB", size_bytes / 1e3)


def open_apply_close(
    records: Iterable[RawRecord], repeat: int = _REPEAT
) -> tuple[float, int]:
    """Return the processor time of a frame in a batch of its own, seconds.

    The view is read from its blob, takes the last of the records, and becomes a blob
    again. All records before the last are applied first.

    Returns:
        The median time, and the size of the blob in bytes.
    """
    frames = [record for record in records if record.value]
    *before, last = frames
    chunk, view = Chunk(0, 0, 1 << 62), ChannelView()
    for some in _batches(before, 500):
        for record in some:
            chunk.add(record)
        view.apply(_digests(chunk), chunk.clock_ms)
    data = view.to_blob()
    chunk.add(last)
    digests, spent = _digests(chunk), []
    for _ in range(repeat):
        begun_s = time.process_time()
        view = ChannelView.from_blob(CHANNELS.blob_version, data)
        view.apply(digests, chunk.clock_ms)
        view.to_blob()
        spent.append(time.process_time() - begun_s)
    return statistics.median(spent), len(data)


def _batches(records: list[RawRecord], size: int) -> Iterable[list[RawRecord]]:
    return (records[at : at + size] for at in range(0, len(records), size))


def _digests(chunk: Chunk) -> list[object]:
    return [
        msgspec.msgpack.decode(row.digest, type=CHANNELS.digest)
        for row in chunk.take_rows()
        if row.key.startswith(CHANNELS.key(""))
    ]


def growth(context: Context) -> None:
    """Measure a frame against what the channel remembers, its people, its history."""
    for count in (100, 1_000, 5_000, 20_000):
        spent_s, _ = open_apply_close(itertools.islice(filling(), count))
        what = f"open, one frame, close: {count:,} messages remembered"
        context.say(GROWTH, what, "ms", spent_s * 1e3)
    for participants in (10, 100, 1_000):
        spent_s = cost(_talk(participants, 40))
        what = f"read and apply a frame: {participants:,} participants"
        context.say(GROWTH, what, "µs", spent_s * 1e6)
    for history in (0, 10, 40, 200):
        spent_s = cost(_talk(10, history))
        what = f"read and apply a frame: history of {history}"
        context.say(GROWTH, what, "µs", spent_s * 1e6)


def _talk(participants: int, history: int) -> Play:
    """Return a healthy channel: everybody speaks in turn, and has all messages."""
    writer, frames, ids = Writer(), [], []
    held = BloomFilter(Dialect.SPEC)
    for number in range(2 * participants + 300):
        (message_id,) = writer.new_ids(1)
        frames.append(
            writer.frame(
                f"p{number % participants}",
                history=ids[-history:] if history else [],
                bloom=held.to_wire(),
                message_id=message_id,
            )
        )
        ids.append(message_id)
        held.add(message_id)
        writer.wait(1)
    return Play(frames[:-100], frames[-100:])
