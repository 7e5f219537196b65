"""Properties of segments for any payload, order, loss and change."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.reliable_channel.segmentation import (
    Outcome,
    Reassembler,
    SegmentationError,
    SegmentationOptions,
    Segmenter,
    SegmentLayout,
)
from sds_core.reliable_channel.segmentation.segmenter import write_segment
from sds_core.wire.segment_header import SegmentHeader
from tests.support.frames import START_MS
from tests.support.properties import CAREFUL
from tests.support.reliable_channel.payloads import SMALL

layouts = st.sampled_from(SegmentLayout)
options_of_writers = st.builds(
    SegmentationOptions,
    layout=layouts,
    segment_bytes=st.sampled_from([192, 256, 300]),
    parity_rate=st.sampled_from([0.0, 0.125, 0.3, 1.0]),
    parity_from=st.integers(1, 3),
)
# Zeros at the end resemble padding.
payloads = st.one_of(
    st.binary(max_size=900),
    st.builds(
        lambda seed, length, zeros: Random(seed).randbytes(length) + bytes(zeros),
        st.integers(0, 2**32),
        st.integers(0, 5_000),
        st.integers(0, 200),
    ),
)


@CAREFUL
@given(options=options_of_writers, payload=payloads, random=st.randoms())
@pytest.mark.rule("rc-seg-order")
def test_any_sufficient_segments_in_any_order_make_the_payload(
    options: SegmentationOptions, payload: bytes, random: Random
) -> None:
    """As many as there are data segments, with repeats among them."""
    segments = Segmenter(options).split(payload)
    data_count = options.data_count(len(payload))
    chosen = random.sample(range(len(segments)), data_count)
    has_length = options.layout is SegmentLayout.NIM_SEGMENTATION
    if not has_length and payload.endswith(b"\0") and data_count - 1 not in chosen:
        # The only case in which a layout without the length needs this segment.
        chosen.append(data_count - 1)
    is_status = options.layout is SegmentLayout.STATUS_GO
    if is_status and all(one >= data_count for one in chosen):
        # Its parity segments do not have the number of data segments.
        chosen[0] = 0
    repeats = [one for one in chosen[:-1] if random.random() < 0.3]
    before = chosen[:-1] + repeats
    reassembler = Reassembler(options)
    for index in [*random.sample(before, len(before)), chosen[-1]]:
        progress = reassembler.add(segments[index], START_MS)
        assert progress.received <= progress.total
        if progress.payload is not None:
            break
    assert progress.payload == payload
    assert reassembler.held_bytes == 0


def tampered(segments: list[bytes], other: list[bytes], random: Random) -> list[bytes]:
    """Segments with bytes changed, inserted or removed, or exchanged; shuffled."""
    bad = []
    for segment in segments:
        content = bytearray(segment)
        match random.randrange(6):
            case 0:
                content[random.randrange(len(content))] ^= 1 << random.randrange(8)
            case 1:
                del content[random.randrange(len(content)) :]
            case 2:
                content[random.randrange(len(content)) :] = random.randbytes(5)
            case 3:
                # Another payload's header or share.
                cut = random.randrange(34, 50)
                content[cut:] = random.choice(other)[cut:]
            case 4:
                content[:34] = random.choice(other)[:34]
        bad.append(bytes(content))
    bad += random.sample(segments, random.randrange(len(segments)))
    return random.sample(bad, len(bad))


@CAREFUL
@given(
    options=options_of_writers.filter(
        lambda one: one.layout is not SegmentLayout.STATUS_GO
    ),
    payload=payloads.filter(len),
    random=st.randoms(),
)
def test_tampering_gives_an_error_or_the_payload(
    options: SegmentationOptions, payload: bytes, random: Random
) -> None:
    """Never another payload, and nothing stays behind after the timeout."""
    other = Random(len(payload)).randbytes(len(payload) + 700)
    segments = Segmenter(options).split(payload)
    mixed = tampered(segments, Segmenter(options).split(other), random)
    reassembler = Reassembler(options)
    for segment in mixed:
        try:
            progress = reassembler.add(segment, START_MS)
        except SegmentationError:
            continue
        assert progress.payload in (None, payload, other)
        assert (progress.payload is not None) == (progress.outcome is Outcome.COMPLETE)
    reassembler.expire(START_MS + options.idle_timeout_ms)
    assert (reassembler.incomplete, reassembler.held_bytes) == (0, 0)
    assert reassembler.next_deadline_ms is None


@st.composite
def headers(draw: st.DrawFn) -> SegmentHeader:
    """Any segment, mostly of few payloads, with counts that may contradict others."""
    layout = draw(layouts)
    data_count = draw(st.integers(1, 128))
    parity_count = draw(st.integers(0, 128))
    is_parity = parity_count > 0 and draw(st.booleans())
    share = bytes(draw(st.sampled_from([0, 1, 64, 128, 1_000])))
    is_nim = layout is SegmentLayout.NIM_SEGMENTATION
    return SegmentHeader(
        layouts=(layout,),
        payload_hash=bytes([draw(st.integers(0, 30))]) * 32,
        index=draw(st.integers(0, (parity_count if is_parity else data_count) - 1)),
        is_parity=is_parity,
        data_count=data_count,
        parity_count=parity_count,
        whole_bytes=draw(st.sampled_from([1_000, 2_000, 2**50])) if is_nim else None,
        payload=share,
    )


@CAREFUL
@given(
    flood=st.lists(
        st.tuples(headers(), st.sampled_from(["alice", "bob"]), st.integers(0, 400)),
        max_size=60,
    )
)
def test_floods_are_bounded(flood: list[tuple[SegmentHeader, str, int]]) -> None:
    """Every set that began has an end: an error, a payload or a report of its drop."""
    options = replace(
        SMALL,
        max_segment_bytes=2_048,
        max_sets=5,
        max_buffered_bytes=3_000,
        idle_timeout_ms=5_000,
    )
    reassembler = Reassembler(options)
    now_ms = START_MS
    reported = 0
    for header, sender_id, passed_ms in flood:
        now_ms += passed_ms
        reported += len(reassembler.expire(now_ms))
        try:
            progress = reassembler.add(write_segment(header), now_ms, sender_id)
        except SegmentationError:
            pass
        else:
            reported += len(progress.dropped)
        assert reassembler.incomplete <= options.max_sets
        assert reassembler.held_bytes <= options.max_buffered_bytes
        deadline_ms = reassembler.next_deadline_ms
        assert (deadline_ms is None) == (reassembler.incomplete == 0)
        assert deadline_ms is None or deadline_ms > now_ms
    left = reassembler.incomplete
    assert len(reassembler.expire(now_ms + options.idle_timeout_ms)) >= left
    assert reassembler.held_bytes == 0
    assert reported + left <= len(flood)
