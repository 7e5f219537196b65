"""What one channel costs in one process: opened, given a frame, and closed again."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from statistics import median
from typing import NamedTuple

import msgspec

from benchmarks.context import Context
from benchmarks.data import START_MS
from benchmarks.state import filling
from sds_core.observer.record import RawRecord
from sds_core.observer.sds.channel_view import ChannelView
from sds_core.observer.sds.digest import ChannelDigest
from sds_core.observer.sds.kind import CHANNELS
from sds_core.wire import BloomFilter, Dialect, Frame, HistoryEntry, encode
from streaming.chunk import Chunk
from tests.support.hostile.cost import cost
from tests.support.hostile.shapes import Play, Timed, Writer

ROW = "one channel"
GROWTH = "growth of one channel"
_REPEAT = 9
_BATCH = 500


class Opened(NamedTuple):
    """A channel's state, and a frame that comes next.

    Attributes:
        data: The state, as the job stores it.
        digests: The frame, as the reader passes it on.
        clock_ms: Admission time of its batch, Unix ms.
    """

    data: bytes
    digests: list[ChannelDigest]
    clock_ms: int

    def spent_s(self) -> list[float]:
        """Return CPU times of opening, applying the frame and closing."""
        spent = []
        for _ in range(_REPEAT):
            begun_s = time.process_time()
            view = ChannelView.from_blob(CHANNELS.blob_version, self.data)
            view.apply(self.digests, self.clock_ms)
            view.to_blob()
            spent.append(time.process_time() - begun_s)
        return spent


def opened(records: Iterable[RawRecord], *counts: int) -> Iterator[Opened]:
    """Yield one channel's state after so many frames, and the frame that comes next.

    Args:
        records: Records of the channel; all but frames are left out.
        counts: Numbers of frames, in order. A last one of 0 is for all but one.
    """
    chunk, view, number, last = Chunk(0, 0), ChannelView(), 0, None
    wanted = list(counts)
    for record in (record for record in records if record.value):
        if last is not None:
            chunk.add(last, 1 << 62)
            number += 1
        last = record
        if wanted and 0 < number == wanted[0]:
            wanted.pop(0)
            view.apply(_digests(chunk), chunk.clock_ms)
            yield _opened(view, record)
        elif number % _BATCH == 0:
            view.apply(_digests(chunk), chunk.clock_ms)
    if wanted and last is not None:
        view.apply(_digests(chunk), chunk.clock_ms)
        yield _opened(view, last)


def healthy(count: int) -> Iterator[RawRecord]:
    """Yield small frames of a channel with five participants, of the last hour.

    Each names the three messages before it, so all but the last are acknowledged.

    Args:
        count: Number of messages.
    """
    for number in range(count + 1):
        at_ms = START_MS + number * 3_500_000 // count
        names = [f"{n:064x}" for n in range(max(0, number - 3), number)]
        frame = Frame.build(
            Dialect.SPEC,
            message_id=f"{number:064x}",
            channel_id="channel",
            sender_id=f"participant-{number % 5}",
            lamport=at_ms,
            causal_history=[HistoryEntry(name) for name in names],
            content=b"text",
        )
        headers = [("observer", b"tap"), ("seq", str(number).encode())]
        yield RawRecord(0, number, at_ms, None, encode(frame), headers)


def _opened(view: ChannelView, record: RawRecord) -> Opened:
    chunk = Chunk(0, 0)
    chunk.add(record, 1 << 62)
    return Opened(view.to_blob(), _digests(chunk), chunk.clock_ms)


def open_and_close(context: Context) -> None:
    """Measure healthy channels of some sizes, and one with every memory full."""
    states = {f"{count:,} messages": healthy(count) for count in (100, 3_650, 20_000)}
    for what, records in {**states, "full memory": filling()}.items():
        state = next(opened(records, 0))
        for _ in range(context.repeat):
            spent_ms = median(state.spent_s()) * 1e3
            context.say(
                ROW,
                f"open a state, apply one frame, close the state: {what}",
                "ms",
                spent_ms,
            )
        context.say("state", f"blob: {what}", "kB", len(state.data) / 1e3)


def _digests(chunk: Chunk) -> list[ChannelDigest]:
    return [
        msgspec.msgpack.decode(row.digest, type=CHANNELS.digest)
        for row in chunk.take_rows()
        if row.key.startswith(CHANNELS.key(""))
    ]


def growth(context: Context) -> None:
    """Measure a frame against a channel's participants, and its own history."""
    for participants in (10, 100, 1_000):
        spent_s = cost(_talk(participants, 40))
        what = f"read and apply a frame: {participants:,} participants"
        context.say(GROWTH, what, "µs", spent_s * 1e6)
    for history in (0, 10, 40, 200):
        spent_s = cost(_talk(10, history))
        what = f"read and apply a frame: causal history of {history} ids"
        context.say(GROWTH, what, "µs", spent_s * 1e6)


def _talk(participants: int, history: int) -> Play:
    """Return a healthy channel: everybody speaks in turn, and has all messages."""
    writer = Writer()
    frames: list[Timed] = []
    ids: list[str] = []
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
