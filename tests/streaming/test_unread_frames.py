"""Frames that are not decoded give the same rows as frames that are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.observer.protocols import by_name
from sds_core.observer.record import Arrival, RawRecord
from sds_core.observer.sds.digest import ChannelDigester
from sds_core.observer.sds.kind import SDS
from sds_core.observer.sds.limits import MOST_HISTORY, MOST_REQUESTS
from sds_core.observer.sds.outline_reader import OutlineReader
from sds_core.observer.sds.seen_frames import frames_of
from sds_core.wire import (
    MAX_ID_CHARACTERS,
    BloomFilter,
    Dialect,
    Frame,
    HistoryEntry,
    encode,
    outline_of,
)
from streaming import chunk as chunk_module
from streaming.chunk import Chunk
from tests.support.digests import packed, unpacked
from tests.support.frames import START_MS, FrameFactory, bloom
from tests.support.fuzz.mutation import changed_bytes, changed_protobuf
from tests.support.fuzz.targets.records import Town
from tests.support.properties import CAREFUL
from tests.support.written_segments import nim_segments

WALL_MS = START_MS + 30 * 86_400_000
DECODED = by_name([replace(SDS, new_reader=None)])
FRAMES = FrameFactory()
FILTER = bloom(["a"])
FILTER_FIELD = b"\x62\xc0\x92\x01" + FILTER
SEGMENT = nim_segments(1, 2)[1]


def rows(records: Iterable[RawRecord], **options: Any) -> dict[str, Any]:
    """The rows of some records; frames in full in place of their digests."""
    chunk = Chunk(0, 0, **options)
    for record in records:
        chunk.add(record, WALL_MS)
    found: dict[str, Any] = {"clock": chunk.clock_ms}
    for key, digest in chunk.take_rows():
        found[key] = list(_in_full(digest)) if key.startswith("sds:") else digest
    return found


def _in_full(digest: bytes) -> Iterator[Any]:
    for frame in frames_of(unpacked(digest)):
        filter_ = frame.filter
        if filter_ is None:
            yield frame
            continue
        shape = filter_.dialect, filter_.m_bits, filter_.k, filter_.bits_set
        frame.filter = None
        yield frame, shape, bytes(filter_.bits)


def records_of(*values: bytes, key: bytes | None = None) -> list[RawRecord]:
    """Records of one tap with these values."""
    return [
        RawRecord(0, offset, START_MS + offset, key, value, _headers(offset))
        for offset, value in enumerate(values)
    ]


def _headers(seq: int) -> list[tuple[str, bytes | None]]:
    return [
        ("observer", b"tap"),
        ("seq", b"%d" % seq),
        ("waku-hash", b"0x%064X" % seq),
    ]


def assert_same(records: Sequence[RawRecord]) -> None:
    """Compare the rows of both ways."""
    assert rows(records) == rows(records, protocols=DECODED)


class Talk:
    """Participants of the specification's dialect whose logs grow.

    Args:
        random: Chooses everything.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._members = {
            name: (list[HistoryEntry](), BloomFilter(Dialect.SPEC))
            for name in ("alice", "bob", "é", "")
        }

    def frames(self, count: int) -> Iterator[Frame]:
        """Yield frames whose histories mostly continue each other."""
        random = self._random
        for number in range(count):
            sender = random.choice(list(self._members))
            log, filter_ = self._members[sender]
            message_id = f"{random.choice(('m', 'é'))}{number}"
            usual = Frame.build(
                Dialect.SPEC,
                message_id=message_id,
                channel_id=random.choice(("one", "two")),
                sender_id=sender,
                lamport=random.choice((0, 1, 200, START_MS, 2**64 - 1)),
                causal_history=tuple(log[-random.choice((2, 8, 8, 8, 300)) :]),
                bloom_filter=bytes(filter_.bits) if random.random() < 0.7 else b"",
                repair_request=tuple(random.sample(log, min(len(log), 2)))
                if random.random() < 0.2
                else (),
                content=random.choice(
                    (b"", b"text", FILTER_FIELD, bytes(200), SEGMENT)
                ),
            )
            yield usual
            hint = random.choice((b"", b"hint", bytes(32), bytes(1_500)))
            for heard, holds in self._members.values():
                if random.random() < 0.95:
                    heard.append(HistoryEntry(message_id, hint, sender))
                    holds.add(message_id)
            if random.random() < 0.05:
                filter_.bits[:] = random.randbytes(len(filter_.bits))


@pytest.mark.slow
@CAREFUL
@given(st.integers(0, 2**32), st.booleans())
def test_growing_histories_and_filters_are_read_alike(seed: int, broken: bool) -> None:
    """Whatever stands between the frames, decoded or not."""
    random = Random(seed)
    frames = list(Talk(random).frames(12))
    records = records_of(*map(encode, frames))
    if random.random() < 0.8:
        records = [
            record._replace(key=frame.channel_id.encode())
            for record, frame in zip(records, frames, strict=True)
        ]
    if broken:
        change = random.choice((changed_protobuf, changed_bytes))
        for at in random.sample(range(len(records)), 4):
            changed = change(random, records[at].value or b"")
            records[at] = records[at]._replace(value=changed)
    assert_same(records)


@pytest.mark.slow
@CAREFUL
@given(st.integers(0, 2**32))
def test_hostile_topics_are_read_alike(seed: int) -> None:
    """Records of the fuzzer's strangers: both dialects, bad headers, keys and times."""
    assert_same(Town(Random(seed)).records())


def _usual(**others: Any) -> bytes:
    return encode(FRAMES.content("m", "alice", **others))


ODD = {
    "lamport twice": _usual() + b"\x50\x05",
    "history after the content": _usual() + b"\x5a\x03\x0a\x01a",
    "a second filter": _usual(holds=["a"]) + FILTER_FIELD,
    "an empty filter behind the filter": _usual(holds=["a"]) + b"\x62\x00",
    "a field of nobody": _usual() + b"\x7a\x01a",
    "an empty content": _usual() + b"\xa2\x01\x00",
    "a long varint": _usual().replace(b"\x0a\x05alice", b"\x0a\x85\x00alice"),
    "a long tag": _usual().replace(b"\x0a\x05alice", b"\x8a\x00\x05alice"),
    "fields in another order": b"\x1a\x01c\x12\x01m\x50\x01\x0a\x05alice",
    "a sender that is not UTF-8": _usual().replace(b"alice", b"alic\xff"),
    "an id that is not UTF-8": b"\x12\x01\xff\x1a\x01c\x50\x01",
    "a channel that is not UTF-8": b"\x12\x01m\x1a\x01\xff\x50\x01",
    "an entry that is not UTF-8": _usual() + b"\x5a\x03\x0a\x01\xff",
    "an entry without an id": _usual(history=["", ("", "bob"), "a"]),
    "an entry with a field of nobody": _usual() + b"\x5a\x05\x0a\x01a\x20\x01",
    "an entry with a group": _usual() + b"\x5a\x05\x0a\x01a\x23\x24",
    "a group": _usual() + b"\x23\x24",
    "a request with a group": _usual() + b"\x6a\x05\x0a\x01a\x23\x24",
    "a request that is not UTF-8": _usual() + b"\x6a\x03\x0a\x01\xff",
    "requests twice and without an id": _usual(requests=["a", "", "a"], holds=["a"]),
    "a filter inside the content": _usual(text=b"x" + FILTER_FIELD + b"y"),
    "a filter inside the id": _usual(history=[("a", "b")], text=FILTER_FIELD * 2),
    "a filter inside a hint": encode(
        FRAMES.content("m", "alice", holds=["b"])._replace(
            causal_history=(HistoryEntry("a", FILTER_FIELD, ""),)
        )
    ),
    "a filter inside an unknown field": _usual()
    + b"\x7a\xc4\x92\x01"
    + FILTER_FIELD,
    "a filter of another size": _usual(filter_=FILTER[:-8]),
    "a filter of half a word": _usual(filter_=FILTER[:-4]),
    "a long id": encode(FRAMES.content("m" * (MAX_ID_CHARACTERS + 1), "alice")),
    "a long id in two bytes each": encode(FRAMES.content("é" * 400, "ß" * 400)),
    "a long sender": encode(FRAMES.content("m", "a" * (MAX_ID_CHARACTERS + 1))),
    "a long id in the history": _usual(history=["a" * 513, ("b", "c" * 513)]),
    "a long id among the requests": _usual(requests=["a" * 513, "é" * 500]),
    "many entries": _usual(history=[str(n) for n in range(MOST_HISTORY + 1)]),
    "many requests": _usual(requests=[str(n) for n in range(MOST_REQUESTS + 1)]),
    "long parts": _usual(text=bytes(200_000), history=[("a" * 100, "b" * 100)]),
    "no channel": b"\x12\x01m\x50\x01",
    "no id": b"\x1a\x01c\x50\x01",
    "a lamport of 0": b"\x12\x01m\x1a\x01c\x50\x00",
    "a lamport in ten bytes": b"\x12\x01m\x1a\x01c\x50" + b"\xff" * 9 + b"\x7f",
    "ephemeral": encode(FRAMES.ephemeral("alice")),
    "a segment": _usual(text=SEGMENT),
    "a segment and an unknown field": _usual(text=SEGMENT) + b"\x7a\x01a",
    "a segment without a sender": encode(FRAMES.content("m", "", text=SEGMENT)),
    "a segment with a long sender": encode(
        FRAMES.content("m", "é" * 400, text=SEGMENT)
    ),
    "an ephemeral segment": encode(FRAMES.ephemeral("alice", text=SEGMENT)),
    "a segment of the other dialect": encode(
        FRAMES.content("m", "a", dialect=Dialect.NIM, text=SEGMENT)
    ),
    "the other dialect": encode(FRAMES.content("m", "a", dialect=Dialect.NIM)),
    "cut off": _usual(holds=["a"])[:-5],
    "cut off in the filter": _usual(holds=["a"], text=b"")[:-5],
    "not protobuf": b"\xff\xff",
}  # fmt: skip


@pytest.mark.parametrize("key", [None, b"channel"])
@pytest.mark.parametrize("name", ODD)
def test_odd_frame_is_read_alike(name: str, key: bytes | None) -> None:
    """Between usual frames, which go on from it."""
    usual = [
        encode(FRAMES.content(f"m{n}", "bob", history=["a", ("b", "c")], holds=["a"]))
        for n in range(2)
    ]
    assert_same(records_of(usual[0], ODD[name], usual[1], ODD[name], key=key))


def _with_history(*entries: HistoryEntry) -> bytes:
    frame = FRAMES.content("m", "alice", holds=["a"])
    return encode(frame._replace(causal_history=entries))


A, B, C = (HistoryEntry(one, one.encode() * 32, "bob") for one in "abc")

AFTER = {
    "the same": (A, B),
    "its end": (B,),
    "its end and a new entry": (B, C),
    "its begin": (A,),
    "its begin and a new entry": (A, C),
    "twice the same": (A, B, A, B),
    "nothing": (),
    "its end, then a long entry": (B, HistoryEntry("c" * 100, bytes(100), "d" * 100)),
    "its end and too many entries": (B, *(HistoryEntry(str(n)) for n in range(500))),
    "its end and an unusable entry": (B, HistoryEntry("", b"", "bob")),
}


@pytest.mark.parametrize("name", AFTER)
def test_history_is_read_alike_whatever_it_repeats(name: str) -> None:
    """Of the frame before it; and a third frame goes on from there."""
    values = [_with_history(*one) for one in [(A, B), AFTER[name], (B, C), (A, B)]]
    assert_same(records_of(*values, key=b"channel"))


def test_usual_frames_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Content and sync frames with history, filter and requests, whatever their ids."""

    def never(*_: Any) -> Any:
        raise AssertionError("decoded")

    monkeypatch.setattr(chunk_module, "judge", never)
    values = [encode(f) for f in Talk(Random(1)).frames(50) if f.lamport]
    found = rows(records_of(*values))
    assert len(found["sds:one"]) + len(found["sds:two"]) == len(values)


def test_filter_is_not_copied_out_of_its_frame() -> None:
    """Its bits are most of a frame's bytes."""
    value = _usual(holds=["a"], history=["b"])
    outline = outline_of(value, MOST_HISTORY)
    assert outline is not None
    assert isinstance(outline.bloom_filter, memoryview)
    assert outline.bloom_filter.obj is value


def test_frame_that_does_not_fit_its_key_is_a_dead_letter() -> None:
    """The reader leaves it to the judgement."""
    (record,) = records_of(_usual())
    found = rows([record._replace(key=b"other")])
    assert set(found) == {"clock", "dead:0", "tap:tap"}


def test_refused_frame_changes_no_digest() -> None:
    """Not even by a name that only it has."""

    def bytes_of(*values: bytes) -> bytes:
        digesters: dict[str, ChannelDigester] = {}
        reader = OutlineReader(0, digesters)
        for value in values:
            reader.add(None, value, Arrival(0, 0, 0))
        (digester,) = digesters.values()
        return packed(digester.finish())

    usual = _usual(history=["a"])
    refused = [value for name, value in ODD.items() if name in REFUSED]
    assert bytes_of(usual, *refused) == bytes_of(usual)


REFUSED = (
    "an entry that is not UTF-8", "an entry without an id", "a field of nobody",
    "an entry with a group", "a request with a group", "a long id in the history",
    "a long id among the requests", "many requests", "many entries", "a group",
    "a sender that is not UTF-8", "an id that is not UTF-8",
)  # fmt: skip
