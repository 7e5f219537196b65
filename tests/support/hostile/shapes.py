"""Frames whose cost a stranger would like to choose.

Each shape is a play of one channel: frames that prepare it, then frames that should
hurt. All are valid SDS frames, made from a seed of plain numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sds_core.wire import (
    BloomFilter,
    BloomParameters,
    Dialect,
    Frame,
    HistoryEntry,
    encode,
)
from tests.support.written_segments import nim_segments

CHANNEL = "hostile"
SECOND = 1_000

FILTER_BYTES = 18_830
"""Shortest frame with a filter of the libraries' size."""

_EMPTY = {dialect: BloomFilter(dialect).to_wire() for dialect in Dialect}


class Timed(NamedTuple):
    """A frame on the wire, and when it comes, ms since the start of the play."""

    at_ms: int
    value: bytes


@dataclass
class Writer:
    """Writes the frames of a play; each comes a millisecond after the one before.

    Attributes:
        dialect: Dialect of the frames.
        at_ms: When the next frame comes, ms since the start.
        lamport: Lamport timestamp of the next frame.
    """

    dialect: Dialect = Dialect.SPEC
    at_ms: int = 0
    lamport: int = 1_000
    _numbers: Iterator[int] = field(default_factory=lambda: iter(range(1 << 40)))

    def new_ids(self, count: int, length: int = 64) -> list[str]:
        """Ids that no frame has named."""
        return [f"{next(self._numbers):0{length}x}" for _ in range(count)]

    def frame(
        self,
        sender: str = "mallory",
        *,
        history: Sequence[str] = (),
        senders: Sequence[str] = (),
        requests: Sequence[str] = (),
        bloom: bytes = b"",
        message_id: str = "",
        content: bytes = b"content",
    ) -> Timed:
        """A content frame, or with empty content a sync."""
        self.at_ms += 1
        self.lamport += 1
        entries = [
            HistoryEntry(one, b"", senders[number] if senders else "")
            for number, one in enumerate(history)
        ]
        frame = Frame.build(
            self.dialect,
            message_id=message_id or self.new_ids(1)[0],
            channel_id=CHANNEL,
            sender_id=sender,
            lamport=self.lamport,
            causal_history=entries,
            bloom_filter=bloom,
            repair_request=[HistoryEntry(one) for one in requests],
            content=content,
        )
        return Timed(self.at_ms, encode(frame))

    def wait(self, seconds: int) -> None:
        """Let time pass before the next frame."""
        self.at_ms += seconds * SECOND


class Play(NamedTuple):
    """A shape, ready to be measured.

    Attributes:
        prepare: Frames before.
        hurt: The frames that should hurt.
    """

    prepare: list[Timed]
    hurt: list[Timed]


def filter_of(
    dialect: Dialect,
    m_bits: int,
    k: int,
    ids: Sequence[str] = (),
    *,
    full: bool = False,
) -> bytes:
    """A filter of any size, as on the wire; only nim-sds can write such."""
    made = BloomFilter(dialect, BloomParameters(10, 0.1))
    made.m_bits, made.k = m_bits, k
    made.bits = bytearray(b"\xff" * _length(m_bits) if full else _length(m_bits))
    made.add_all(ids)
    return made.to_wire()


def _length(m_bits: int) -> int:
    return 8 * (m_bits // 64 + 1)


def normal(size_bytes: int) -> Play:
    """Frames of a healthy channel of eight, padded with content to a size.

    Those that are long enough have a filter, and up to forty history entries; shorter
    ones have no filter and three entries.
    """
    writer = Writer()
    frames, ids = [], []
    held = BloomFilter(Dialect.SPEC)
    is_big = size_bytes >= FILTER_BYTES
    entries = min(40, (size_bytes - FILTER_BYTES) // 70) if is_big else 3
    for number in range(300):
        history = ids[-entries:] if entries else []
        (message_id,) = writer.new_ids(1)
        bloom = held.to_wire() if is_big else b""
        bare = writer.frame(
            f"p{number % 8}", history=history, bloom=bloom, message_id=message_id
        )
        content = b"x" * max(1, size_bytes - len(bare.value))
        frames.append(
            writer.frame(
                f"p{number % 8}",
                history=history,
                bloom=bloom,
                message_id=message_id,
                content=content,
            )
        )
        ids.append(message_id)
        held.add(message_id)
        writer.wait(1)
    return Play(frames[:200], frames[200:])


def new_history(entries: int) -> Play:
    """Each frame names only ids that nobody has seen."""
    writer = Writer()
    start = [writer.frame()]
    writer.wait(60)
    frames = [writer.frame(history=writer.new_ids(entries)) for _ in range(120)]
    return Play(start + frames[:100], frames[100:])


def new_history_of_new_senders(entries: int) -> Play:
    """The same, and each id has a sender of its own."""
    writer = Writer()
    start = [writer.frame()]
    writer.wait(60)
    frames = [
        writer.frame(history=ids, senders=[f"s{one}" for one in ids])
        for ids in (writer.new_ids(entries) for _ in range(120))
    ]
    return Play(start + frames[:100], frames[100:])


def new_requests(count: int) -> Play:
    """Each frame requests ids that nobody has seen, and has a filter with many k."""
    writer = Writer(Dialect.NIM)
    bloom = filter_of(Dialect.NIM, 150_000, 32, full=True)
    start = [writer.frame()]
    writer.wait(60)
    frames = [
        writer.frame(requests=writer.new_ids(count), bloom=bloom) for _ in range(120)
    ]
    return Play(start + frames[:100], frames[100:])


def new_segments(share: int) -> Play:
    """Each frame is the first segment of a payload of its own: one is pushed out."""
    writer = Writer()
    start = [writer.frame()]
    writer.wait(60)
    frames = [
        writer.frame(content=nim_segments(number, 2, share=share)[0])
        for number in range(130)
    ]
    return Play(start + frames[:110], frames[110:])


def _waiting(writer: Writer, messages: int) -> list[Timed]:
    """A listener has spoken, then another sends what the listener waits for."""
    frames = [writer.frame("listener"), writer.frame("speaker")]
    writer.wait(1)
    frames += [writer.frame("speaker") for _ in range(messages)]
    writer.wait(10)
    return frames


def empty_filters(messages: int) -> Play:
    """Many messages wait and are not acknowledged; each later filter holds none."""
    writer = Writer()
    prepare = _waiting(writer, messages)
    hurt = [
        writer.frame("listener", bloom=_EMPTY[Dialect.SPEC], content=b"")
        for _ in range(20)
    ]
    return Play(prepare, hurt)


def changing_filters(messages: int, k: int = 32) -> Play:
    """The same with another size in each frame."""
    writer = Writer(Dialect.NIM)
    prepare = _waiting(writer, messages)
    hurt = [
        writer.frame(
            "listener", bloom=filter_of(Dialect.NIM, 150_000 + n, k), content=b""
        )
        for n in range(20)
    ]
    return Play(prepare, hurt)


def half_full_filters(messages: int) -> Play:
    """Filters of which every second bit is set, each of another size."""
    writer = Writer(Dialect.NIM)
    prepare = _waiting(writer, messages)
    others = [f"{one:064x}" for one in range(1 << 45, (1 << 45) + 10_400)]
    hurt = [
        writer.frame(
            "listener",
            bloom=filter_of(Dialect.NIM, 150_000 + n, 10, others),
            content=b"",
        )
        for n in range(20)
    ]
    return Play(prepare, hurt)


def many_participants(names: int, messages: int) -> Play:
    """Many names speak, then messages come, then each has an empty filter."""
    writer = Writer()
    prepare = [writer.frame(f"n{number}", content=b"") for number in range(names)]
    writer.wait(1)
    prepare += [writer.frame("speaker") for _ in range(messages)]
    writer.wait(10)
    hurt = [
        writer.frame(f"n{number}", bloom=_EMPTY[Dialect.SPEC], content=b"")
        for number in range(60)
    ]
    return Play(prepare, hurt)


def lost_to_all(names: int, messages: int) -> Play:
    """Each of many names lacks each of many messages after the deadline."""
    play = many_participants(names, messages)
    writer = Writer(at_ms=play.hurt[-1].at_ms + 400 * SECOND, lamport=1 << 30)
    again = [
        writer.frame(f"n{number}", bloom=_EMPTY[Dialect.SPEC], content=b"")
        for number in range(names)
    ]
    return Play(play.prepare + again[:-40], again[-40:])


def open_gaps(gaps: int) -> Play:
    """Many ids are named and never seen; each later filter is searched for them."""
    writer = Writer()
    prepare = [writer.frame(), writer.frame("listener")]
    writer.wait(60)
    while gaps > 0:
        prepare.append(writer.frame(history=writer.new_ids(min(gaps, 10_000))))
        gaps -= 10_000
    writer.wait(10)
    hurt = [
        writer.frame("listener", bloom=_EMPTY[Dialect.SPEC], content=b"")
        for _ in range(20)
    ]
    return Play(prepare, hurt)


def one_bit_filter(size_bytes: int) -> Play:
    """A long filter of which one bit is used."""
    writer = Writer(Dialect.NIM)
    made = BloomFilter(Dialect.NIM, BloomParameters(10, 0.1))
    made.m_bits, made.k, made.bits = 1, 1, bytearray(size_bytes)
    frames = [writer.frame(bloom=made.to_wire()) for _ in range(20)]
    return Play(frames[:10], frames[10:])


def answered_requests(names: int) -> Play:
    """Each message of a channel of many names is requested, and broadcast again."""
    writer = Writer()
    prepare = [writer.frame(f"n{number}", content=b"") for number in range(names)]
    hurt = []
    for _ in range(20):
        (message_id,) = writer.new_ids(1)
        message = writer.frame("speaker", message_id=message_id)
        writer.lamport -= 1
        prepare += [message, writer.frame("n1", requests=[message_id], content=b"")]
        prepare += [
            writer.frame("n2", requests=[message_id], content=b"") for _ in range(31)
        ]
        hurt.append(message)
    writer.wait(5)
    return Play(
        prepare, [Timed(writer.at_ms + n, one.value) for n, one in enumerate(hurt)]
    )
