"""What becomes of segments: order, losses, tampering, repeats, limits."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from sds_core.reliable_channel.segmentation import (
    DroppedSet,
    DropReason,
    NotASegment,
    Outcome,
    PayloadHashMismatch,
    Progress,
    Reassembler,
    SegmentationOptions,
    Segmenter,
    SegmentLayout,
    SegmentsDisagree,
    SegmentTooLarge,
    SetTooLarge,
    payload_hash,
    segment_set,
)
from sds_core.reliable_channel.segmentation.erasure import recover
from sds_core.reliable_channel.segmentation.segmenter import write_segment
from sds_core.wire.segment_header import read_segment_header
from tests.support.frames import START_MS
from tests.support.reliable_channel.payloads import EVERY_LAYOUT, SMALL, payload_of

STATUS, LIP, NIM = (
    SegmentLayout.STATUS_GO,
    SegmentLayout.LIP_243,
    SegmentLayout.NIM_SEGMENTATION,
)

PARITY = [replace(one, parity_rate=0.125) for one in EVERY_LAYOUT]


def by_layout(options: SegmentationOptions) -> str:
    """Id of a parameter."""
    return str(options.layout)


def feed(
    reassembler: Reassembler, segments: list[bytes], sender_id: str = ""
) -> list[Progress]:
    """The progress after each segment, all at one time."""
    return [reassembler.add(one, START_MS, sender_id) for one in segments]


def changed(segment: bytes, at: int = -1) -> bytes:
    """A segment with one byte changed."""
    bad = bytearray(segment)
    bad[at] ^= 1
    return bytes(bad)


@pytest.mark.parametrize("options", EVERY_LAYOUT, ids=by_layout)
@pytest.mark.rule("rc-seg-reassembled", "rc-seg-order", "rc-seg-sequence")
def test_segments_make_the_payload_in_every_order(options: SegmentationOptions) -> None:
    """All 24 orders of four; only the last to arrive completes it."""
    payload = payload_of(options, 4)
    for order in permutations(Segmenter(options).split(payload)):
        *stored, complete = feed(Reassembler(options), list(order))
        assert [one.outcome for one in stored] == [Outcome.STORED] * 3
        assert [one.payload for one in stored] == [None] * 3
        assert complete.outcome is Outcome.COMPLETE
        assert complete.payload == payload


@pytest.mark.parametrize("payload", [b"", b"short"])
@pytest.mark.parametrize("options", EVERY_LAYOUT, ids=by_layout)
def test_a_short_payload_is_complete_at_once(
    options: SegmentationOptions, payload: bytes
) -> None:
    """With status-go it arrives without a header."""
    (only,) = feed(Reassembler(options), Segmenter(options).split(payload))
    assert only == Progress(
        outcome=Outcome.COMPLETE,
        payload_hash=payload_hash(payload),
        received=1,
        needed=1,
        total=1,
        payload=payload,
    )


@pytest.mark.parametrize("options", EVERY_LAYOUT, ids=by_layout)
@pytest.mark.parametrize("reader", EVERY_LAYOUT, ids=by_layout)
def test_every_layout_is_read_whatever_is_written(
    options: SegmentationOptions, reader: SegmentationOptions
) -> None:
    """The reader's own layout concerns only what it writes."""
    payload = payload_of(options, 3)
    assert feed(Reassembler(reader), Segmenter(options).split(payload))[-1].payload == (
        payload
    )


@pytest.mark.rule("rc-seg-index")
def test_progress_counts_different_segments() -> None:
    """From 1 of 6 to 6 of 6; a repeat counts nothing."""
    options = SMALL
    segments = Segmenter(options).split(payload_of(options, 6))
    reassembler = Reassembler(options)
    progress = feed(reassembler, segments[:5])
    assert [(one.received, one.needed, one.total) for one in progress] == [
        (count, 6, 6) for count in range(1, 6)
    ]
    repeat = reassembler.add(segments[2], START_MS)
    assert (repeat.outcome, repeat.received) == (Outcome.DUPLICATE, 5)
    assert reassembler.add(segments[5], START_MS).received == 6


@pytest.mark.parametrize("options", PARITY, ids=by_layout)
@pytest.mark.parametrize("lost", range(8))
def test_parity_stands_in_for_any_lost_segment(
    options: SegmentationOptions, lost: int
) -> None:
    """One of eight, the short last one too."""
    payload = payload_of(options, 8)
    segments = Segmenter(options).split(payload)
    assert len(segments) == 9
    del segments[lost]
    assert feed(Reassembler(options), segments)[-1].payload == payload


@pytest.mark.parametrize("options", PARITY, ids=by_layout)
def test_parity_that_comes_first_is_used(options: SegmentationOptions) -> None:
    """Of status-go it does not tell how many data segments there are."""
    payload = payload_of(options, 16)
    segments = Segmenter(options).split(payload)
    assert len(segments) == 18
    progress = feed(Reassembler(options), [*segments[:1:-1]])
    assert progress[0].needed == (None if options.layout is STATUS else 16)
    assert progress[-1].payload == payload
    assert [one.received for one in progress] == list(range(1, 17))


@pytest.mark.parametrize("options", PARITY, ids=by_layout)
def test_too_few_segments_give_nothing(options: SegmentationOptions) -> None:
    """Two of eight are lost, and there is one parity segment."""
    segments = Segmenter(options).split(payload_of(options, 8))
    assert {one.outcome for one in feed(Reassembler(options), segments[2:])} == {
        Outcome.STORED
    }


@pytest.mark.parametrize("options", PARITY[:2], ids=by_layout)
def test_zeros_at_the_end_of_a_recovered_segment_need_the_original(
    options: SegmentationOptions,
) -> None:
    """These layouts do not tell the length: the payload is awaited, never guessed."""
    payload = payload_of(options, 8, -20) + b"\0\0\0"
    segments = Segmenter(options).split(payload)
    last = segments.pop(7)
    reassembler = Reassembler(options)
    assert feed(reassembler, segments)[-1].outcome is Outcome.STORED
    assert reassembler.add(last, START_MS).payload == payload


@pytest.mark.parametrize("options", PARITY, ids=by_layout)
def test_zeros_at_the_end_of_a_received_segment_are_kept(
    options: SegmentationOptions,
) -> None:
    """Though its padded form served to recover another."""
    payload = payload_of(options, 8, -20) + b"\0\0\0"
    segments = Segmenter(options).split(payload)
    del segments[2]
    assert feed(Reassembler(options), segments)[-1].payload == payload


def test_what_awaits_its_last_segment_is_not_computed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or a stranger's segments would cost much more time than bytes."""
    options = replace(SMALL, layout=LIP, parity_rate=0.5)
    payload = payload_of(options, 8, -20) + b"\0\0\0"
    segments = Segmenter(options).split(payload)
    computed = []

    def counted(*arguments: Any) -> list[bytes]:
        computed.append(arguments)
        return recover(*arguments)

    monkeypatch.setattr(segment_set, "recover", counted)
    last = segments.pop(7)
    reassembler = Reassembler(options)
    assert feed(reassembler, segments)[-1].received == 11
    assert len(computed) == 1
    assert reassembler.add(last, START_MS).payload == payload


def test_a_last_segment_with_its_padding_is_understood() -> None:
    """LIP-243 can be read as sending it so."""
    options = replace(SMALL, layout=LIP)
    payload = payload_of(options, 2, -70)
    first, last = Segmenter(options).split(payload)
    share = last[last.index(payload[options.share_bytes :]) :]
    padded = Segmenter(options).split(payload.ljust(2 * options.share_bytes, b"\0"))
    # The padded payload's last segment, with the hash of the payload.
    padded_last = first[:34] + padded[1][34:]
    assert len(share) < options.share_bytes
    assert feed(Reassembler(options), [first, padded_last])[-1].payload == payload


def test_a_changed_segment_is_found_if_the_last_one_was_recovered() -> None:
    """With the layout that has the payload's length there is nothing to wait for."""
    options = replace(SMALL, parity_rate=0.125)
    segments = Segmenter(options).split(payload_of(options, 8))
    segments[0] = changed(segments[0])
    del segments[7]
    reassembler = Reassembler(options)
    feed(reassembler, segments[:-1])
    with pytest.raises(PayloadHashMismatch):
        reassembler.add(segments[-1], START_MS)


@pytest.mark.rule("rc-seg-metadata")
@pytest.mark.parametrize("options", PARITY, ids=by_layout)
@pytest.mark.parametrize("bad", [0, 7, 8])
def test_a_changed_segment_gives_an_error_and_no_payload(
    options: SegmentationOptions, bad: int
) -> None:
    """Data or parity; segment 3 is missing, so that all are used."""
    segments = Segmenter(options).split(payload_of(options, 8))
    # The last byte of a short segment is its share; of LIP-243 a parity marker is last.
    segments[bad] = changed(segments[bad], 60)
    del segments[3]
    reassembler = Reassembler(options)
    feed(reassembler, segments[:-1])
    with pytest.raises(PayloadHashMismatch) as caught:
        reassembler.add(segments[-1], START_MS)
    assert caught.value.payload_hash == payload_hash(payload_of(options, 8))
    assert (reassembler.incomplete, reassembler.held_bytes) == (0, 0)


def test_a_segment_of_another_length_is_a_changed_one() -> None:
    """Parity is only of segments of one length."""
    options = replace(SMALL, segment_bytes=64, parity_rate=0.5)
    segments = Segmenter(options).split(payload_of(options, 4))
    shorter = Segmenter(options).split(payload_of(options, 3, -1) + b"longer")[3]
    # The header of the second segment, with a share that is too short.
    head = segments[1][: segments[1].index(b":\x40")]
    segments[1] = head + b":\x06" + shorter[-6:]
    reassembler = Reassembler(options)
    feed(reassembler, segments[1:4])
    with pytest.raises(PayloadHashMismatch):
        reassembler.add(segments[4], START_MS)


@pytest.mark.rule("rc-seg-count")
@pytest.mark.parametrize("options", EVERY_LAYOUT, ids=by_layout)
def test_a_count_that_disagrees_is_refused_and_the_set_stays(
    options: SegmentationOptions,
) -> None:
    """Someone names the same payload with another number of segments."""
    payload = payload_of(options, 3)
    segments = Segmenter(options).split(payload)
    other = bytearray(Segmenter(options).split(payload_of(options, 4))[3])
    other[:34] = segments[0][:34]
    if options.layout is NIM:
        # The same length, too.
        other[35:37] = segments[0][35:37]
    reassembler = Reassembler(options)
    reassembler.add(segments[0], START_MS)
    with pytest.raises(SegmentsDisagree, match="4 data segments, not 3") as caught:
        reassembler.add(bytes(other), START_MS)
    assert caught.value.payload_hash == payload_hash(payload)
    assert feed(reassembler, segments[1:])[-1].payload == payload


def test_parity_counts_that_disagree_are_refused() -> None:
    """With nim-segmentation every segment has both, and none stands for zero."""
    payload = payload_of(SMALL, 4)
    plain = Segmenter(SMALL).split(payload)
    coded = Segmenter(replace(SMALL, parity_rate=0.5)).split(payload)
    reassembler = Reassembler(SMALL)
    reassembler.add(plain[0], START_MS)
    with pytest.raises(SegmentsDisagree, match="2 parity segments, not 0"):
        reassembler.add(coded[1], START_MS)


def test_parity_of_another_layout_is_refused() -> None:
    """Its code is another one."""
    lip, status = (
        replace(SMALL, layout=one, parity_rate=0.25) for one in (LIP, STATUS)
    )
    payload = payload_of(lip, 8)
    reassembler = Reassembler(SMALL)
    reassembler.add(Segmenter(lip).split(payload)[-1], START_MS)
    with pytest.raises(SegmentsDisagree, match="layout status-go, not lip-243"):
        reassembler.add(Segmenter(status).split(payload)[-1], START_MS)


def test_more_segments_than_there_may_be_are_refused() -> None:
    """Parity of status-go and data together."""
    options = replace(SMALL, layout=STATUS, parity_rate=0.125)
    payload = payload_of(options, 16)
    data, parity = Segmenter(options).split(payload)[::17]
    many = payload_of(options, 255)
    large = Segmenter(options).split(many)[0]
    reassembler = Reassembler(options)
    reassembler.add(large[:2] + data[2:34] + large[34:], START_MS)
    with pytest.raises(SegmentsDisagree, match="255 data and 2 parity segments"):
        reassembler.add(parity, START_MS)


def test_as_many_segments_as_there_may_be_are_accepted() -> None:
    """228 and 28, of which each tells only its own number."""
    options = replace(SMALL, layout=STATUS, parity_rate=0.125)
    payload = payload_of(options, 228)
    segments = Segmenter(options).split(payload)
    assert len(segments) == 256
    reassembler = Reassembler(options)
    assert feed(reassembler, segments[:27:-1])[-1].payload == payload


def test_parity_that_cannot_be_computed_is_no_error() -> None:
    """Leopard-RS has 225 and 29 in another field: all data segments are needed."""
    payload = payload_of(SMALL, 225)
    plain = Segmenter(SMALL).split(payload)
    headers = [read_segment_header(one) for one in plain]
    segments = [write_segment(replace(one, parity_count=29)) for one in headers if one]
    parity = [
        write_segment(replace(one, parity_count=29, is_parity=True, payload=bytes(64)))
        for one in headers[:29]
        if one
    ]
    reassembler = Reassembler(SMALL)
    progress = feed(reassembler, [*parity, *segments])
    assert [one.outcome for one in progress[:-1]] == [Outcome.STORED] * 253
    assert progress[-1].payload == payload


@pytest.mark.parametrize("layout", [LIP, NIM])
@pytest.mark.parametrize("content", [b"", b"hello", bytes(100)])
def test_other_bytes_are_no_segment(layout: SegmentLayout, content: bytes) -> None:
    """Both layouts wrap every payload."""
    with pytest.raises(NotASegment, match=f"{len(content)} bytes are not a segment"):
        Reassembler(replace(SMALL, layout=layout)).add(content, START_MS)


def test_a_segment_that_the_transport_does_not_carry_is_refused() -> None:
    """Before it is read."""
    reassembler = Reassembler(SMALL)
    with pytest.raises(SegmentTooLarge, match="4097 bytes, but at most 4096"):
        reassembler.add(bytes(4_097), START_MS)
    with pytest.raises(NotASegment):
        reassembler.add(bytes(4_096), START_MS)


@pytest.mark.parametrize("options", PARITY, ids=by_layout)
def test_what_comes_after_the_payload_opens_no_new_set(
    options: SegmentationOptions,
) -> None:
    """Parity that was not needed."""
    segments = Segmenter(options).split(payload_of(options, 8))
    reassembler = Reassembler(options)
    feed(reassembler, segments[:8])
    late = reassembler.add(segments[8], START_MS + 1)
    assert (late.outcome, late.received, late.total) == (Outcome.LATE, 9, 9)
    assert late.payload is None
    assert reassembler.incomplete == 0


@pytest.mark.parametrize("options", PARITY, ids=by_layout)
@pytest.mark.parametrize("data_count", [1, 3, 8])
def test_a_payload_that_is_sent_twice_is_received_twice(
    options: SegmentationOptions, data_count: int
) -> None:
    """Like a heartbeat; repeats of one sending are the business of SDS."""
    payload = payload_of(options, data_count)
    segments = Segmenter(options).split(payload)
    progress = feed(Reassembler(options), segments * 2)
    assert [one.payload for one in progress if one.payload is not None] == [payload] * 2


@pytest.mark.rule("rc-seg-buffer")
def test_equal_payloads_of_two_senders_are_two_payloads() -> None:
    """Their segments may be mixed."""
    payload = payload_of(SMALL, 2)
    first, second = Segmenter(SMALL).split(payload)
    reassembler = Reassembler(SMALL)
    feed(reassembler, [first], "alice")
    feed(reassembler, [first], "bob")
    assert reassembler.incomplete == 2
    assert feed(reassembler, [second], "alice")[0].payload == payload
    assert feed(reassembler, [second], "bob")[0].payload == payload


@pytest.mark.rule("rc-seg-partial", "rc-seg-timeout")
def test_an_incomplete_payload_expires_when_nothing_comes() -> None:
    """A new segment extends its life, a repeat does not."""
    options = replace(SMALL, idle_timeout_ms=1_000)
    payload = payload_of(options, 3)
    first, second, third = Segmenter(options).split(payload)
    reassembler = Reassembler(options)
    assert reassembler.next_deadline_ms is None
    reassembler.add(first, START_MS, "alice")
    reassembler.add(second, START_MS + 500, "alice")
    reassembler.add(second, START_MS + 900, "alice")
    assert reassembler.next_deadline_ms == START_MS + 1_500
    assert reassembler.expire(START_MS + 1_499) == ()
    assert reassembler.expire(START_MS + 1_500) == (
        DroppedSet(
            payload_hash=payload_hash(payload),
            sender_id="alice",
            received=2,
            needed=3,
            reason=DropReason.EXPIRED,
        ),
    )
    assert (reassembler.incomplete, reassembler.held_bytes) == (0, 0)
    assert reassembler.expire(START_MS + 1_500) == ()
    assert reassembler.add(third, START_MS + 1_600, "alice").received == 1


def test_late_segments_are_known_as_long_as_incomplete_ones_are_held() -> None:
    """Afterwards they begin a new set."""
    options = replace(SMALL, parity_rate=0.5, idle_timeout_ms=1_000)
    segments = Segmenter(options).split(payload_of(options, 4))
    reassembler = Reassembler(options)
    feed(reassembler, segments[:4])
    at_end = reassembler.add(segments[4], START_MS + 999)
    assert at_end.outcome is Outcome.LATE
    after = reassembler.add(segments[5], START_MS + 1_000)
    assert after.outcome is Outcome.STORED


def test_late_segments_of_few_payloads_are_known() -> None:
    """Of as many as may be incomplete; older ones begin a new set."""
    options = replace(SMALL, parity_rate=0.5, max_sets=2)
    every = [
        Segmenter(options).split(payload_of(options, 4, more)) for more in (-1, -2, -3)
    ]
    reassembler = Reassembler(options)
    for segments in every:
        assert feed(reassembler, segments[:4])[-1].outcome is Outcome.COMPLETE
    outcomes = [reassembler.add(one[4], START_MS).outcome for one in every]
    assert outcomes == [Outcome.STORED, Outcome.LATE, Outcome.LATE]


@pytest.mark.rule("rc-seg-partial")
def test_the_least_recently_updated_payload_makes_room_for_a_new_one() -> None:
    """A set counts as updated by each new segment."""
    options = replace(SMALL, max_sets=2)
    first, second, third = (
        Segmenter(options).split(payload_of(options, 3, more)) for more in (-1, -2, -3)
    )
    reassembler = Reassembler(options)
    feed(reassembler, [first[0], second[0], first[1]])
    progress = reassembler.add(third[0], START_MS)
    (dropped,) = progress.dropped
    assert dropped.payload_hash == payload_hash(payload_of(options, 3, -2))
    assert dropped.reason is DropReason.EVICTED
    assert reassembler.incomplete == 2
    assert reassembler.add(first[2], START_MS).payload == payload_of(options, 3, -1)


@pytest.mark.rule("rc-seg-partial")
def test_bytes_are_limited_as_payloads_are() -> None:
    """The oldest go until a new segment fits."""
    options = replace(SMALL, segment_bytes=3_968, max_buffered_bytes=9_800)
    share = options.share_bytes
    payloads = [payload_of(options, 2, more) for more in (-1, -2, -3)]
    reassembler = Reassembler(options)
    for payload in payloads[:2]:
        reassembler.add(Segmenter(options).split(payload)[0], START_MS)
    progress = reassembler.add(Segmenter(options).split(payloads[2])[0], START_MS)
    assert [one.payload_hash for one in progress.dropped] == [payload_hash(payloads[0])]
    assert reassembler.held_bytes == 2 * share <= options.max_buffered_bytes


def test_the_limits_themselves_are_allowed() -> None:
    """One set, or two, of just so many bytes."""
    options = replace(
        SMALL, layout=LIP, max_segment_bytes=320, max_buffered_bytes=2 * 192
    )
    payloads = [payload_of(options, 3, more) for more in (-1, -2)]
    first, second = (Segmenter(options).split(one) for one in payloads)
    reassembler = Reassembler(options)
    assert feed(reassembler, [first[0], second[0]])[-1].dropped == ()
    assert reassembler.held_bytes == options.max_buffered_bytes
    (dropped,) = reassembler.add(second[1], START_MS).dropped
    assert dropped.payload_hash == payload_hash(payloads[0])
    assert reassembler.held_bytes == options.max_buffered_bytes


def test_what_made_room_for_a_bad_segment_is_reported_later() -> None:
    """An error has no progress to carry it."""
    options = replace(SMALL, segment_bytes=3_968, max_buffered_bytes=9_800)
    first, second = (payload_of(options, 2, more) for more in (-1, 0))
    reassembler = Reassembler(options)
    reassembler.add(Segmenter(options).split(first)[0], START_MS)
    bad, last = Segmenter(options).split(second)
    reassembler.add(changed(bad), START_MS)
    with pytest.raises(PayloadHashMismatch):
        reassembler.add(last, START_MS)
    (dropped,) = reassembler.expire(START_MS)
    assert dropped.payload_hash == payload_hash(first)


def test_a_payload_that_can_never_be_held_is_refused_at_once() -> None:
    """By the length in its first segment."""
    options = replace(
        SMALL, segment_bytes=64, max_segment_bytes=192, max_buffered_bytes=192
    )
    reassembler = Reassembler(options)
    other = Segmenter(options).split(payload_of(options, 2))[0]
    reassembler.add(other, START_MS)
    with pytest.raises(
        SetTooLarge, match="needs 255 bytes of memory, but at most 192 are allowed"
    ):
        reassembler.add(Segmenter(options).split(payload_of(options, 4))[0], START_MS)
    assert reassembler.incomplete == 1


def test_a_set_that_grows_over_the_limit_is_dropped_alone() -> None:
    """Other layouts do not tell the length beforehand."""
    options = replace(SMALL, layout=LIP, max_segment_bytes=320, max_buffered_bytes=500)
    segments = Segmenter(options).split(payload_of(options, 4))
    reassembler = Reassembler(options)
    reassembler.add(Segmenter(options).split(payload_of(options, 2, -190))[1], START_MS)
    feed(reassembler, segments[:2])
    with pytest.raises(
        SetTooLarge, match="needs 576 bytes of memory, but at most 500 are allowed"
    ):
        reassembler.add(segments[2], START_MS)
    assert reassembler.incomplete == 1
    assert reassembler.held_bytes == 2
