"""Messages in segments, seen by the whole view (docs/figures.md, 13)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.observer import blob
from sds_core.observer.deadlines import Deadlines, Due
from sds_core.observer.sds.channel_state import BLOB_VERSION, ChannelState
from sds_core.observer.sds.channel_view import ChannelView
from sds_core.observer.sds.limits import MOST_SEGMENT_SETS
from sds_core.observer.sds.segment_rows import segment_row
from sds_core.observer.sds.segments import Segments, SegmentsState
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.settings import DEFAULTS
from sds_core.wire import Dialect
from tests.support.channel import Channel, digest_of
from tests.support.frames import START_MS, FrameFactory, Record
from tests.support.properties import CAREFUL
from tests.support.written_segments import (
    lip_segments,
    nim_segments,
    status_segments,
)

AT = 60_000
IDLE = DEFAULTS.segment_idle_ms


@pytest.fixture
def channel() -> Channel:
    """A channel after its warm-up, at 60 s."""
    return Channel.after_warm_up()


def send(
    channel: Channel, texts: Iterable[bytes], at: int, sender: str = "alice"
) -> None:
    """Send contents as messages of their own, one each millisecond."""
    for number, text in enumerate(texts):
        channel.content(f"{sender}-{at}-{number}", sender, at + number, text=text)


def messages(channel: Channel) -> tuple[int, int, int, int]:
    """Segmented messages: begun, complete, incomplete and open."""
    t = channel.totals
    return (
        t.segmented, t.segmented_complete, t.segmented_incomplete, t.segmented_open,
    )  # fmt: skip


def segments(channel: Channel) -> tuple[int, int, int]:
    """Segments: data, parity and disagreeing."""
    t = channel.totals
    return t.segments_data, t.segments_parity, t.segments_disagreeing


LAYOUTS = {
    "nim": nim_segments(1, 9, 2),
    "lip": lip_segments(1, 9, 2),
    "status": status_segments(1, 9, 2),
}


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("texts", LAYOUTS.values(), ids=LAYOUTS)
def test_message_is_complete_with_its_data_segments(
    texts: list[bytes], dialect: Dialect
) -> None:
    """In any order; parity segments that come later belong to it."""
    channel = Channel.after_warm_up(dialect=dialect)
    send(channel, texts[8:1:-1], AT)
    assert messages(channel) == (1, 0, 0, 1)
    send(channel, texts[:2], AT + 100)
    assert messages(channel) == (1, 1, 0, 0)
    send(channel, texts[9:], AT + 200)
    assert messages(channel) == (1, 1, 0, 0)
    assert segments(channel) == (9, 2, 0)


@pytest.mark.parametrize("texts", LAYOUTS.values(), ids=LAYOUTS)
def test_parity_segments_stand_for_data_segments(
    channel: Channel, texts: list[bytes]
) -> None:
    """The lost ones may come later, through a repair."""
    send(channel, [*texts[9:], *texts[:6]], AT)
    assert messages(channel) == (1, 0, 0, 1)
    send(channel, [texts[8]], AT + 100)
    assert messages(channel) == (1, 1, 0, 0)
    send(channel, texts[6:8], AT + 200)
    assert messages(channel) == (1, 1, 0, 0)
    assert segments(channel) == (9, 2, 0)


def test_message_is_incomplete_after_the_idle_time(channel: Channel) -> None:
    """Counted from the latest new segment; the clock must have passed it."""
    texts = nim_segments(1, 3)
    send(channel, [texts[0]], AT)
    send(channel, [texts[1]], AT + 1_000)
    send(channel, [texts[1]], AT + 2_000)
    channel.clock(AT + 1_000 + IDLE)
    assert messages(channel) == (1, 0, 0, 1)
    channel.clock(AT + 1_001 + IDLE)
    assert messages(channel) == (1, 0, 1, 0)
    # What comes later is another message.
    send(channel, [texts[2]], AT + 2_000 + IDLE)
    assert messages(channel) == (2, 0, 1, 1)
    channel.rest()
    assert messages(channel) == (2, 0, 2, 0)


def test_view_asks_to_be_called_when_a_message_is_given_up(channel: Channel) -> None:
    """Without another record."""
    send(channel, nim_segments(1, 3)[:2], AT)
    woken = set()
    while messages(channel)[3]:
        woken.add(channel.wake())
    assert AT + 1 + IDLE in woken


def test_rebroadcasts_and_replicas_are_no_segments(channel: Channel) -> None:
    """A segment counts once, whoever sends it again."""
    texts = nim_segments(1, 2)
    frame = channel.content("m", "alice", AT, text=texts[0], waku_hash="1")
    channel.take(frame, AT + 1, waku_hash="1")
    channel.take(frame, AT + 2, waku_hash="2")
    assert segments(channel) == (1, 0, 0)
    assert messages(channel) == (1, 0, 0, 1)


def test_same_payload_again_is_another_message(channel: Channel) -> None:
    """Such as a heartbeat that never changes; another sender's is one too."""
    for at in (AT, AT + 1_000):
        send(channel, nim_segments(1, 1), at)
    send(channel, nim_segments(1, 1), AT + 2_000, "bob")
    assert messages(channel) == (3, 3, 0, 0)
    assert segments(channel) == (3, 0, 0)


def test_segments_of_one_kind_are_known_by_their_index(channel: Channel) -> None:
    """A data segment and a parity segment may have the same one."""
    texts = nim_segments(1, 2, 1)
    send(channel, [texts[0], texts[2]], AT)
    assert segments(channel) == (1, 1, 0)
    assert messages(channel) == (1, 1, 0, 0)


@pytest.mark.parametrize(
    "other",
    [
        nim_segments(1, 4)[1],
        nim_segments(1, 4)[0],
        nim_segments(1, 3, 2)[1],
        nim_segments(1, 3, 1, last=11)[1],
    ],
    ids=["data count", "same place", "parity count", "length"],
)
def test_contradicting_segment_is_counted_and_left_out(
    channel: Channel, other: bytes
) -> None:
    """It neither completes the message nor lets it live longer."""
    texts = nim_segments(1, 3, 1)
    send(channel, [texts[0]], AT)
    send(channel, [other], AT + 1_000)
    assert segments(channel) == (1, 0, 1)
    channel.clock(AT + IDLE + 1)
    assert messages(channel) == (1, 0, 1, 0)


@pytest.mark.parametrize(
    "texts", [nim_segments(1, 1), lip_segments(1, 1)], ids=["nim", "lip"]
)
def test_whole_payload_with_another_hash_is_counted_and_left_out(
    channel: Channel, texts: list[bytes]
) -> None:
    """It begins no message; the true one is one."""
    forged = texts[0][:-1] + bytes([texts[0][-1] ^ 1])
    send(channel, [forged], AT)
    assert segments(channel) == (0, 0, 1)
    assert messages(channel) == (0, 0, 0, 0)
    send(channel, texts, AT + 1_000)
    assert segments(channel) == (1, 0, 1)
    assert messages(channel) == (1, 1, 0, 0)


def test_ephemeral_messages_are_not_followed(channel: Channel) -> None:
    """Nothing repairs them, so a missing segment would mean little."""
    for number, text in enumerate(nim_segments(1, 2)):
        channel.take(channel.frames.ephemeral("alice", text=text), AT + number)
    assert messages(channel) == (0, 0, 0, 0)


def test_too_many_open_messages_push_the_oldest_out(channel: Channel) -> None:
    """It counts as incomplete, and as left out; a new segment keeps one in."""
    texts = [nim_segments(number, 3) for number in range(MOST_SEGMENT_SETS + 1)]
    for number in range(MOST_SEGMENT_SETS):
        send(channel, texts[number][:1], AT + number)
    send(channel, texts[0][1:2], AT + 500)
    assert messages(channel) == (MOST_SEGMENT_SETS, 0, 0, MOST_SEGMENT_SETS)
    send(channel, texts[-1][:1], AT + 1_000)
    assert messages(channel) == (MOST_SEGMENT_SETS + 1, 0, 1, MOST_SEGMENT_SETS)
    assert channel.totals.left_out == {"segment_set": 1}
    send(channel, texts[0][2:], AT + 1_001)
    assert channel.totals.segmented_complete == 1
    send(channel, texts[1][1:], AT + 1_002)
    assert channel.totals.segmented == MOST_SEGMENT_SETS + 2


def test_complete_messages_are_forgotten_without_a_count(channel: Channel) -> None:
    """A channel may wrap every message."""
    for number in range(MOST_SEGMENT_SETS + 20):
        send(channel, nim_segments(number, 1), AT + number)
    done = MOST_SEGMENT_SETS + 20
    assert messages(channel) == (done, done, 0, 0)
    assert channel.totals.left_out == {}


def test_state_of_segments_is_bounded_and_ends() -> None:
    """Less than 100 bytes for a message; none once all are idle."""
    state, deadlines = SegmentsState(), Deadlines()
    followed = Segments(DEFAULTS, ChannelTotals(), deadlines, state)
    for number in range(3 * MOST_SEGMENT_SETS):
        texts = nim_segments(number, 227, 29)
        # The one half misses too many segments, the other has them all.
        for text in texts[30:] if number % 2 else texts:
            row = segment_row(0, text, b"alice")
            assert row is not None
            followed.first_copy(row[1], START_MS + number)
    packed = msgspec.msgpack.encode(state)
    assert len(state.open) <= MOST_SEGMENT_SETS
    assert len(state.complete) == MOST_SEGMENT_SETS
    assert len(packed) < 100 * 2 * MOST_SEGMENT_SETS
    assert msgspec.msgpack.decode(packed, type=SegmentsState) == state
    for deadline_ms, due, key in deadlines.passed(START_MS + 2 * IDLE):
        assert due is Due.SEGMENTS_IDLE
        followed.idle_passed(key, deadline_ms)
    followed.forget_before(START_MS + 2 * IDLE)
    assert state == SegmentsState()


def test_complete_messages_leave_the_state_with_the_clock() -> None:
    """After the idle time, at the next minute."""
    view, frame = ChannelView(), FrameFactory().content("m", "alice")
    text = nim_segments(1, 1)[0]
    view.apply([digest_of([(Record(0, frame._replace(content=text)), 0)])], START_MS)
    assert _stored(view) == 1
    view.apply([], START_MS + IDLE + 120_000)
    assert _stored(view) == 0


def _stored(view: ChannelView) -> int:
    """Number of messages with segments in the state."""
    _, rest = blob.split(blob.verified(view.to_blob()))
    state = msgspec.msgpack.decode(rest, type=ChannelState)
    return len(state.segments.open) + len(state.segments.complete)


CHOICES: list[Any] = [
    *nim_segments(1, 3, 1), *nim_segments(2, 2), *nim_segments(1, 4),
    *lip_segments(3, 2, 1), *nim_segments(4, 1), b"text",
]  # fmt: skip


@CAREFUL
@given(
    st.lists(
        st.tuples(st.sampled_from(CHOICES), st.sampled_from([1, 1_000, 61_000, IDLE])),
        max_size=12,
    ),
    st.data(),
)
def test_cut_into_batches_does_not_matter(
    sent: list[tuple[bytes, int]], data: st.DataObject
) -> None:
    """Each of the two views has the same figures and minutes at the end."""
    factory = FrameFactory()
    at, records = 0, []
    for number, (text, pause_ms) in enumerate(sent):
        at += pause_ms
        frame = factory.content(f"m{number}", "alice", number + 1, text=text)
        records.append((Record(at, frame), at))
    end_ms = START_MS + at + data.draw(st.sampled_from([0, 1, IDLE, IDLE + 1]))
    whole, cut = ChannelView(), ChannelView()
    minutes = whole.apply([digest_of(records)] if records else [], end_ms)
    in_parts = []
    for offset, one in enumerate(records):
        if data.draw(st.booleans()):
            cut = ChannelView.from_blob(BLOB_VERSION, cut.to_blob())
        in_parts += cut.apply([digest_of([one], offset)], START_MS + one[1])
    in_parts += cut.apply([], end_ms)
    assert cut.totals == whole.totals
    assert in_parts == minutes
