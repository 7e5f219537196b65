"""Records of a partition become one row per channel, tap and kind of failure."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from sds_core.observer.dead_letter_view import DEAD_LETTERS, DeadLetterDigest
from sds_core.observer.fingerprint import fingerprint
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.observer.record import MAX_AHEAD_MS, NO_HASH, NO_SEQ, RawRecord
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.seen_frames import SeenFrame, frames_of
from sds_core.observer.tap_kind import TAPS
from sds_core.observer.tap_view import TapDigest
from sds_core.wire import MAX_VALUE_BYTES, Dialect, FrameKind, Reason, encode
from streaming import chunk as chunk_module
from streaming.chunk import CHUNK_BYTES, CHUNK_RECORDS, Chunk
from tests.support.digests import unpacked
from tests.support.frames import START_MS, FrameFactory

PARTITION = 3
WALL_MS = START_MS + 1_000_000
FUTURE_MS = WALL_MS + MAX_AHEAD_MS + 1
HASH = b"0x" + b"ab" * 32

Headers = list[tuple[str, bytes | None]]


class Feed:
    """Puts records into a chunk, one offset after the other, and takes its rows."""

    def __init__(self, clock_ms: int = 0) -> None:
        self.chunk = Chunk(PARTITION, clock_ms)
        self._offset = 0

    def add(
        self,
        value: bytes | None,
        at: int = 0,
        *,
        key: bytes | None = None,
        headers: Headers | None = None,
    ) -> None:
        """Add a record at a time relative to `START_MS`."""
        record = RawRecord(
            PARTITION, self._offset, START_MS + at, key, value, headers or ()
        )
        self.chunk.add(record, WALL_MS)
        self._offset += 1

    def rows(self) -> dict[str, bytes]:
        """All rows by key; the chunk is empty then."""
        taken = list(self.chunk.take_rows())
        rows = {row.key: row.digest for row in taken}
        assert len(rows) == len(taken)
        return rows


def frame(message_id: str = "m", channel: str = "channel") -> bytes:
    """A frame that nothing is wrong with."""
    return encode(FrameFactory(channel).content(message_id, "alice"))


def frames(rows: dict[str, bytes], channel: str = "channel") -> list[SeenFrame]:
    """The frames of a channel."""
    digest = unpacked(rows[CHANNELS.key(channel)])
    assert digest.partition == PARTITION
    return list(frames_of(digest))


def letters(rows: dict[str, bytes]) -> list[tuple[int, str]]:
    """Offsets and reasons of the dead letters."""
    packed = rows.get(DEAD_LETTERS.key(str(PARTITION)))
    if packed is None:
        return []
    digest = msgspec.msgpack.decode(packed, type=DeadLetterDigest)
    assert {letter.partition for letter in digest.letters} == {PARTITION}
    return [(letter.offset, letter.reason) for letter in digest.letters]


def tap(
    rows: dict[str, bytes], observer: str, heartbeats: bool = False
) -> list[tuple[int, int]]:
    """Relative times and numbers of the frames of a tap, or of its heartbeats."""
    packed = rows.get(TAPS.key(observer))
    if packed is None:
        return []
    digest = msgspec.msgpack.decode(packed, type=TapDigest)
    columns = (
        (digest.heartbeat_times, digest.heartbeat_seqs)
        if heartbeats
        else (digest.times, digest.seqs)
    )
    times, seqs = (np.frombuffer(column, dtype=np.int64) for column in columns)
    return list(zip((times - START_MS).tolist(), seqs.tolist(), strict=True))


def tapped(observer: str = "tap", seq: int = 0, **others: bytes) -> Headers:
    """Headers of a tap."""
    return [
        ("observer", observer.encode()),
        ("seq", str(seq).encode()),
        *((name.replace("_", "-"), value) for name, value in others.items()),
    ]


# --- frames


def test_frames_are_grouped_by_channel() -> None:
    """One row per channel, in order of offset."""
    feed = Feed()
    feed.add(frame("1", "a"), 10, key=b"a", headers=tapped(seq=5, waku_hash=HASH))
    feed.add(frame("2", "b"), 20)
    feed.add(frame("3", "a"), 15, key=b"a")
    rows = feed.rows()
    assert set(rows) == {"sds:a", "sds:b", "tap:tap"}
    first, second = frames(rows, "a")
    assert (first.named.message_id, first.offset) == ("1", 0)
    assert (first.observer, first.seq) == ("tap", 5)
    assert first.waku_hash == fingerprint(HASH)
    assert first.content == fingerprint(frame("1", "a"))
    assert (second.named.message_id, second.offset) == ("3", 2)
    assert (second.observer, second.seq, second.waku_hash) == ("", NO_SEQ, NO_HASH)
    assert [seen.time_ms for seen in (first, second)] == [START_MS + 10, START_MS + 15]


@pytest.mark.parametrize("dialect", Dialect)
def test_both_dialects_are_read(dialect: Dialect) -> None:
    """No header says which one a frame has."""
    feed = Feed()
    feed.add(encode(FrameFactory("channel", dialect).content("m", "alice")))
    (seen,) = frames(feed.rows())
    assert (seen.dialect, seen.kind) == (dialect, FrameKind.CONTENT)


def test_clock_is_the_running_maximum_over_chunks() -> None:
    """A late record has the clock of the records before it."""
    feed = Feed(clock_ms=START_MS + 50)
    feed.add(frame("1"), 40)
    feed.add(frame("2"), 60)
    feed.add(frame("3"), 55)
    before = frames(feed.rows())
    feed.add(frame("4"), 58)
    feed.add(frame("5"), 70)
    after = frames(feed.rows())
    assert [seen.clock_ms - START_MS for seen in before] == [50, 60, 60]
    assert [seen.clock_ms - START_MS for seen in after] == [60, 70]


def test_taken_chunk_is_empty() -> None:
    """Its rows are returned once."""
    feed = Feed()
    feed.add(frame(), headers=tapped())
    feed.add(b"")
    assert len(feed.rows()) == 3
    assert feed.rows() == {}


@pytest.mark.parametrize(
    "channel",
    ["/app/1/chat/proto", "sds:tap:x", ":", "a b\n\x00", "频道𝄞🎼", "频" * 512],
)
def test_any_channel_name_is_a_key(channel: str) -> None:
    """Names are untrusted and must round-trip."""
    feed = Feed()
    feed.add(frame("m", channel), key=channel.encode())
    ((key, _),) = feed.rows().items()
    assert kinds_of(PROTOCOLS).split(key) == (CHANNELS, channel)


# --- taps


def test_heartbeats_give_tap_rows_only() -> None:
    """They are no frames but move the clock."""
    feed = Feed()
    feed.add(b"", 10, headers=tapped(seq=4, kind=b"heartbeat"))
    feed.add(None, 20, headers=tapped(seq=4, kind=b"heartbeat"))
    assert feed.chunk.clock_ms == START_MS + 20
    rows = feed.rows()
    assert set(rows) == {"tap:tap"}
    assert tap(rows, "tap", heartbeats=True) == [(10, 4), (20, 4)]
    assert tap(rows, "tap") == []


def test_each_tap_has_a_row() -> None:
    """With clock and number at each of its records, of any channel."""
    feed = Feed()
    feed.add(frame("1", "a"), 10, headers=tapped("one", 1))
    feed.add(frame("2", "b"), 30, headers=tapped("one", 2))
    feed.add(frame("3", "a"), 20, headers=tapped("two:é", 9))
    feed.add(frame("4", "a"), 40, headers=[("observer", b"no number")])
    feed.add(frame("5", "a"), 50, headers=[("seq", b"1")])
    rows = feed.rows()
    assert tap(rows, "one") == [(10, 1), (30, 2)]
    assert tap(rows, "two:é") == [(30, 9)]
    assert tap(rows, "no number") == [(40, NO_SEQ)]
    assert sum(key.startswith("tap:") for key in rows) == 3


# --- dead letters

TOO_LARGE = bytes(MAX_VALUE_BYTES + 1)
UNDECODABLE = [
    pytest.param(b"", Reason.EMPTY_VALUE, id="empty"),
    pytest.param(None, Reason.EMPTY_VALUE, id="tombstone"),
    pytest.param(TOO_LARGE, Reason.TOO_LARGE, id="large"),
    pytest.param(b"\xff" * 20, Reason.PROTOBUF_ERROR, id="noise"),
    pytest.param(frame()[:-1], Reason.PROTOBUF_ERROR, id="cut off"),
    # sender, channel, lamport and content alone
    pytest.param(
        b"\x0a\x01a\x1a\x01c\x50\x01\xa2\x01\x01x", Reason.NO_MESSAGE_ID, id="no id"
    ),
    pytest.param(
        b"\x0a\x01a\x12\x01m\x1a\x01c",
        Reason.NEITHER_LAMPORT_NOR_CONTENT,
        id="no kind",
    ),
    pytest.param(
        b"\x0a\x01a\x12\x01m\x50\x01\xa2\x01\x01x", Reason.NO_CHANNEL, id="no channel"
    ),
]


@pytest.mark.parametrize(("value", "reason"), UNDECODABLE)
def test_undecodable_record_is_a_dead_letter(
    value: bytes | None, reason: Reason
) -> None:
    """Its key makes no channel, but its time and number count."""
    feed = Feed()
    feed.add(frame("1"), 10)
    feed.add(value, 20, key=b"c", headers=tapped(seq=8))
    feed.add(frame("2"), 15)
    rows = feed.rows()
    assert letters(rows) == [(1, reason.value)]
    assert tap(rows, "tap") == [(20, 8)]
    assert [seen.clock_ms - START_MS for seen in frames(rows)] == [10, 20]
    assert set(rows) == {"sds:channel", "tap:tap", f"dead:{PARTITION}"}


@pytest.mark.parametrize("key", [b"other", b"", b"Channel", b"channel\n", b"\xff"])
def test_key_of_another_channel_is_a_dead_letter(key: bytes) -> None:
    """It would be in the wrong partition; a missing key is allowed."""
    feed = Feed()
    feed.add(frame(), 20, key=key, headers=tapped(seq=1))
    assert feed.chunk.clock_ms == START_MS + 20
    rows = feed.rows()
    assert letters(rows) == [(0, "channel_mismatch")]
    assert tap(rows, "tap") == [(20, 1)]
    feed.add(frame())
    assert letters(feed.rows()) == []


@pytest.mark.parametrize(
    "bad",
    [
        ("source", b"?"),
        ("waku-hash", b"0x12"),
        ("protocol", b"mvds"),
        ("kind", b"?"),
    ],
)
@pytest.mark.parametrize("value", [frame(), b"", b"\xff"])
def test_bad_header_is_a_dead_letter(bad: tuple[str, bytes], value: bytes) -> None:
    """For any value; the tap has received the record."""
    feed = Feed()
    feed.add(value, 20, headers=[*tapped(seq=1), bad])
    assert feed.chunk.clock_ms == START_MS + 20
    rows = feed.rows()
    assert letters(rows) == [(0, "bad_header")]
    assert tap(rows, "tap") == [(20, 1)]
    assert len(rows) == 2


@pytest.mark.parametrize("bad", [("seq", b"x"), ("observer", b"\xff")])
def test_bad_tap_or_number_gives_no_tap_row(bad: tuple[str, bytes]) -> None:
    """Each is useless without the other."""
    feed = Feed()
    feed.add(frame(), headers=[*tapped(), bad])
    rows = feed.rows()
    assert letters(rows) == [(0, "bad_header")]
    assert len(rows) == 1


def test_large_value_is_too_large_whatever_its_headers() -> None:
    """The dead letter must not have the value."""
    feed = Feed()
    feed.add(TOO_LARGE, headers=[("source", b"?")])
    assert letters(feed.rows()) == [(0, "too_large")]


def test_future_record_moves_no_clock_and_gives_no_tap_time() -> None:
    """Even if it has another fault too."""
    feed = Feed()
    ahead = FUTURE_MS - START_MS
    feed.add(frame("1"), 10)
    feed.add(frame("2"), ahead, headers=tapped(seq=1))
    feed.add(b"", ahead, headers=tapped(seq=2))
    feed.add(frame("3"), ahead, key=b"other", headers=tapped(seq=3))
    feed.add(frame("4"), ahead, headers=[*tapped(seq=4), ("source", b"?")])
    feed.add(frame("5"), 20)
    assert feed.chunk.clock_ms == START_MS + 20
    rows = feed.rows()
    assert letters(rows) == [
        (1, "future_timestamp"),
        (2, "empty_value"),
        (3, "channel_mismatch"),
        (4, "bad_header"),
    ]
    assert set(rows) == {"sds:channel", f"dead:{PARTITION}"}
    assert [seen.clock_ms - START_MS for seen in frames(rows)] == [10, 20]


def test_future_heartbeat_is_a_dead_letter() -> None:
    """Otherwise it would be unknown why the tap seems silent."""
    feed = Feed()
    feed.add(b"", FUTURE_MS - START_MS, headers=tapped(kind=b"heartbeat"))
    rows = feed.rows()
    assert letters(rows) == [(0, "future_timestamp")]
    assert len(rows) == 1


@pytest.mark.parametrize("time_ms", [-(2**63), -1, 0, 1])
def test_record_stamped_before_1970_counts_as_of_1970(time_ms: int) -> None:
    """The sum of a few durations from -2**63 would not fit into a state.

    In a state, 0 means that something has not happened.
    """
    feed = Feed()
    feed.add(frame(), time_ms - START_MS, headers=tapped())
    feed.add(b"", time_ms - START_MS, headers=tapped(kind=b"heartbeat"))
    rows = feed.rows()
    assert [(seen.time_ms, seen.clock_ms) for seen in frames(rows)] == [(1, 1)]
    assert tap(rows, "tap") == [(1 - START_MS, 0)]
    assert tap(rows, "tap", heartbeats=True) == [(1 - START_MS, 0)]
    assert letters(rows) == []


def test_record_a_minute_ahead_is_a_frame() -> None:
    """Exactly the limit is allowed."""
    feed = Feed()
    feed.add(frame(), FUTURE_MS - START_MS - 1)
    assert letters(feed.rows()) == []


# --- limits


def test_chunk_is_full_by_records() -> None:
    """Of any kind; after it was taken it counts from 0."""
    feed = Feed()
    for _ in range(CHUNK_RECORDS - 1):
        feed.add(b"")
    assert not feed.chunk.is_full
    feed.add(None)
    assert feed.chunk.is_full
    assert len(letters(feed.rows())) == CHUNK_RECORDS
    assert not feed.chunk.is_full


def test_chunk_is_full_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few large records are enough."""
    assert CHUNK_BYTES >= MAX_VALUE_BYTES
    monkeypatch.setattr(chunk_module, "CHUNK_BYTES", 1_000)
    feed = Feed()
    feed.add(bytes(999))
    assert not feed.chunk.is_full
    feed.add(b"x")
    assert feed.chunk.is_full
    feed.rows()
    assert not feed.chunk.is_full
