"""Frames survive the way through a digest to the view."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.observer.fingerprint import fingerprint
from sds_core.observer.record import NO_HASH, NO_SEQ
from sds_core.observer.sds.digest import Arrival, ChannelDigester
from sds_core.observer.sds.digest_parts import LONGEST_HINT
from sds_core.observer.sds.seen_frames import SeenFrame, frames_of
from sds_core.wire import (
    BloomFilter,
    Dialect,
    FrameKind,
    HistoryEntry,
    encode,
    part_sizes,
)
from tests.support.channel import digest_of
from tests.support.digests import packed, unpacked
from tests.support.frames import START_MS, FrameFactory, Record, bloom
from tests.support.properties import CAREFUL
from tests.support.written_segments import nim_segments

FRAMES = FrameFactory()


def seen(*records: Record) -> list[SeenFrame]:
    """The frames as a view reads them, without their filters."""
    return list(frames_of(digest_of((record, record.at) for record in records)))


def test_frame_keeps_what_the_model_uses() -> None:
    """Place, headers, kind, ids in order and requests."""
    frame = FRAMES.content(
        "m",
        "alice",
        2**64 - 1,
        history=["b", ("a", "sue"), "b"],
        requests=["r", ("q", "sue"), "r"],
        holds=["q"],
        dialect=Dialect.NIM,
    )
    record = Record(5, frame, "tap", 9, -3)
    (found,) = frames_of(digest_of([(record, 7)], first_offset=40, partition=2))
    assert found.order == (START_MS + 7, 2, 40)
    assert found.time_ms == START_MS + 5
    assert (found.observer, found.seq, found.waku_hash) == ("tap", 9, -3)
    assert (found.kind, found.dialect) == (FrameKind.CONTENT, Dialect.NIM)
    assert (found.sender, found.lamport) == ("alice", 2**64 - 1)
    assert found.named.message_id == "m"
    assert found.named.fingerprint == fingerprint("m")
    assert [n.message_id for n in found.history] == ["b", "a", "b"]
    assert [n.sender for n in found.history] == ["", "sue", ""]
    assert [(n.message_id, held) for n, held in found.requests] == [
        ("r", False),
        ("q", True),
    ]
    assert found.content == fingerprint(encode(frame))


def test_absent_headers_stay_absent() -> None:
    """Tap, sequence number and hash."""
    (found,) = seen(Record(0, FRAMES.sync("alice")))
    assert (found.observer, found.seq, found.waku_hash) == ("", NO_SEQ, NO_HASH)


@pytest.mark.parametrize("dialect", Dialect)
def test_kinds_and_dialects_survive(dialect: Dialect) -> None:
    """All six combinations."""
    frames = [
        FRAMES.content("m", "a", dialect=dialect),
        FRAMES.sync("a", 0, dialect=dialect),
        FRAMES.ephemeral("a", dialect=dialect),
    ]
    found = seen(*(Record(0, frame) for frame in frames))
    assert [(f.kind, f.dialect) for f in found] == [(k, dialect) for k in FrameKind]
    assert [f.lamport for f in found] == [1_000, 0, 0]


def test_histories_of_many_frames_stay_separate() -> None:
    """Each frame has its own slices, in order of offset."""
    found = seen(
        Record(0, FRAMES.sync("a", history=["x"], requests=["p"])),
        Record(1, FRAMES.sync("b")),
        Record(2, FRAMES.sync("c", history=["y", "x"], requests=["q", "p"])),
    )
    assert [[n.message_id for n in f.history] for f in found] == [
        ["x"], [], ["y", "x"],
    ]  # fmt: skip
    assert [[n.message_id for n, _ in f.requests] for f in found] == [
        ["p"], [], ["q", "p"],
    ]  # fmt: skip
    assert [f.sender for f in found] == ["a", "b", "c"]
    offsets = [f.order[2] for f in found]
    assert offsets == [0, 1, 2]


def test_naming_keeps_its_own_sender() -> None:
    """One id may be named with different senders and without one."""
    found = seen(
        Record(0, FRAMES.sync("a", history=["x"], requests=["x"])),
        Record(1, FRAMES.sync("b", history=[("x", "sue")], requests=["x"])),
        Record(2, FRAMES.sync("c", history=[("x", "tom"), "x"])),
    )
    assert [[n.sender for n in f.history] for f in found] == [
        [""], ["sue"], ["tom", ""],
    ]  # fmt: skip
    named = [n for f in found for n in f.history]
    assert {(n.message_id, n.fingerprint) for n in named} == {("x", fingerprint("x"))}
    assert [n.sender for f in found for n, _ in f.requests] == ["", ""]


def test_naming_keeps_its_own_hint() -> None:
    """A frame does not get the hint of a later one; requests have no hint."""
    given = [b"", b"hint", b"other", b"x" * LONGEST_HINT, b"x" * (LONGEST_HINT + 1)]
    found = seen(
        *(
            Record(
                at,
                FRAMES.sync("a", requests=["x"])._replace(
                    causal_history=(HistoryEntry("x", hint, "sue"),)
                ),
            )
            for at, hint in enumerate(given)
        )
    )
    hints = [n.hint for f in found for n in f.history]
    assert hints == [*given[:-1], b""]
    assert {n.sender for f in found for n in f.history} == {"sue"}
    assert [n.hint for f in found for n, _ in f.requests] == [b""] * len(given)


@pytest.mark.parametrize("dialect", Dialect)
def test_frame_keeps_its_bytes_by_part(dialect: Dialect) -> None:
    """Each frame has its own sizes."""
    frames = [
        FRAMES.content("m", "a", holds=["a"], requests=["b"], dialect=dialect),
        FRAMES.sync("a", history=["m"], dialect=dialect),
        FRAMES.ephemeral("a", dialect=dialect),
    ]
    found = seen(*(Record(0, frame) for frame in frames))
    assert [f.sizes for f in found] == [part_sizes(dialect, encode(f)) for f in frames]


def test_content_keeps_its_whole_waku_hash() -> None:
    """Incidents need it; other kinds have only the fingerprint."""
    frames = [FRAMES.content("m", "a"), FRAMES.sync("a"), FRAMES.content("n", "a")]
    hashes = [b"m" * 32, b"s" * 32, b""]
    digester = ChannelDigester(0)
    for offset, (frame, whole) in enumerate(zip(frames, hashes, strict=True)):
        arrival = Arrival(offset, START_MS, START_MS, "", NO_SEQ, 7, whole)
        digester.add(frame, encode(frame), arrival)
    found = frames_of(unpacked(packed(digester.finish())))
    assert [(f.waku_hash, f.waku_hash_bytes) for f in found] == [
        (7, b"m" * 32), (7, b""), (7, b""),
    ]  # fmt: skip


def test_fingerprints_are_hashes_of_ids() -> None:
    """They are signed 64-bit integers, not the first bytes of ids."""
    prints = {fingerprint(f"{'0' * 60}{number}") for number in range(1_000)}
    assert len(prints) == 1_000
    assert all(-(2**63) <= number < 2**63 for number in prints)
    assert fingerprint("m") == fingerprint(b"m")


def test_empty_digest_has_no_frames() -> None:
    """Reading it raises no error."""
    digest = ChannelDigester(0).finish()
    assert list(frames_of(unpacked(packed(digest)))) == []


@pytest.mark.parametrize(
    "raw",
    [b"", b"\x01", bloom(["m"])[:-1], bloom(["m"], Dialect.NIM)],
    ids=["none", "short", "one byte less", "of the other dialect"],
)
def test_unusable_filter_equals_no_filter(raw: bytes) -> None:
    """A filter of invalid size counts as no filter."""
    (found,) = seen(Record(0, FRAMES.sync("a", filter_=raw)))
    assert found.filter is None


def test_usable_filters_around_an_unusable_one_are_restored() -> None:
    """Changes refer to the last usable filter."""
    records = [
        Record(0, FRAMES.sync("a", holds=["m"])),
        Record(1, FRAMES.sync("a", filter_=b"\x01")),
        Record(2, FRAMES.sync("a")),
        Record(3, FRAMES.sync("a", holds=["m", "n"])),
    ]
    digest = digest_of((record, record.at) for record in records)
    assert len(digest.filters) == 1
    held = [
        f.filter and (f.filter.contains("m"), f.filter.contains("n"))
        for f in frames_of(digest)
    ]
    assert held == [(True, False), None, None, (True, True)]


def test_filter_that_hardly_changed_is_packed_as_its_changes() -> None:
    """Whole filters of 18 kB each would be too large."""
    ids = [f"m{number}" for number in range(50)]
    records = [
        Record(at, FRAMES.sync("a", holds=ids[:at])) for at in range(1, len(ids))
    ]
    digest = digest_of((record, record.at) for record in records)
    assert len(digest.filters) == 1
    assert len(packed(digest)) < 60_000


_FILTERS = st.tuples(
    st.sampled_from(list(Dialect)),
    st.one_of(
        st.none(),
        st.sets(st.integers(0, 30), max_size=12),
        st.integers(20_000, 120_000),
    ),
)


@pytest.mark.slow
@CAREFUL
@given(st.lists(_FILTERS, max_size=8))
def test_every_filter_is_restored_bit_for_bit(
    drawn: list[tuple[Dialect, set[int] | int | None]],
) -> None:
    """For any sequence of filters of both dialects."""
    records, expected = [], []
    for at, (dialect, what) in enumerate(drawn):
        raw = b""
        if isinstance(what, int):
            raw = bloom(bits_set=what, dialect=dialect)
        elif what is not None:
            raw = bloom((f"m{number}" for number in what), dialect)
        records.append(Record(at, FRAMES.sync("a", filter_=raw, dialect=dialect)))
        expected.append(BloomFilter.from_wire(dialect, raw) if raw else None)
    found = frames_of(digest_of((record, record.at) for record in records))
    for frame, wanted in zip(found, expected, strict=True):
        if wanted is None:
            assert frame.filter is None
            continue
        # A filter is good only until the next frame is taken.
        assert frame.filter is not None
        assert frame.filter.dialect is wanted.dialect
        assert bytes(frame.filter.bits) == bytes(wanted.bits)
        assert frame.filter.bits_set == wanted.bits_set()
        assert frame.filter.false_positive_rate() == wanted.false_positive_rate()
        assert frame.filter.contains("m7") == wanted.contains("m7")


@pytest.mark.parametrize("dialect", Dialect)
def test_bits_beyond_the_size_do_not_count(dialect: Dialect) -> None:
    """A stranger may set them: the last of 2,344 words has 48 used bits."""
    filter_ = BloomFilter(dialect)
    assert (filter_.m_bits, len(filter_.bits)) == (150_000, 18_752)
    filter_.bits[-8:] = b"\xff" * 8
    raw = filter_.to_wire()
    (found,) = seen(Record(0, FRAMES.sync("a", filter_=raw, dialect=dialect)))
    assert found.filter is not None
    assert found.filter.bits_set == 48


def test_history_that_continues_the_one_before_adds_only_its_new_entries() -> None:
    """Also one that begins later or ends earlier; any other is added whole."""
    histories = ["abc", "bcd", "bc", "cde", "", "cdef", "xdef"]
    found = [Record(0, FRAMES.sync("a", history=list(ids))) for ids in histories]
    digest = digest_of((record, record.at) for record in found)
    assert "".join(digest.names[index] for index in digest.histories) == (
        "abc" + "d" + "e" + "f" + "xdef"
    )
    assert [
        "".join(named.message_id for named in frame.history)
        for frame in frames_of(digest)
    ] == histories


def test_header_of_a_segment_survives_and_its_bytes_do_not() -> None:
    """In a content frame; other contents leave nothing."""
    texts = nim_segments(1, 3, 2)
    frames = [
        FRAMES.content("text", "alice"),
        FRAMES.content("segment", "alice", text=texts[1]),
        FRAMES.sync("alice"),
        FRAMES.ephemeral("alice", text=texts[2]),
        FRAMES.content("parity", "alice", text=texts[4], dialect=Dialect.NIM),
    ]
    found = [frame.segment for frame in seen(*(Record(0, one) for one in frames))]
    assert [one is None for one in found] == [True, False, True, True, False]
    data, parity = (one for one in found if one is not None)
    assert data.payload == parity.payload
    assert data[1:] == (1, False, 3, 2, 138, False)
    assert parity[1:] == (1, True, 3, 2, 138, False)
