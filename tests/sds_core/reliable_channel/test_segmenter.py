"""How payloads are split: sizes, counts and limits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sds_core.reliable_channel.segmentation import (
    PayloadTooLarge,
    SegmentationOptions,
    Segmenter,
    SegmentLayout,
    payload_hash,
)
from sds_core.wire.segment_header import SegmentHeader, read_segment_header
from tests.support.reliable_channel.payloads import EVERY_LAYOUT, SMALL, payload_of

STATUS, LIP, NIM = (
    SegmentLayout.STATUS_GO,
    SegmentLayout.LIP_243,
    SegmentLayout.NIM_SEGMENTATION,
)

MEBIBYTE = 2**20


def headers(options: SegmentationOptions, payload: bytes) -> list[SegmentHeader]:
    """The segments of a payload, read."""
    read = [read_segment_header(one) for one in Segmenter(options).split(payload)]
    assert None not in read
    return [one for one in read if one is not None]


@pytest.mark.rule("rc-seg-metadata")
@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        # The digests that Ethereum uses for nothing and for "abc".
        (b"", "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"),
        (b"abc", "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45"),
    ],
)
def test_hash_is_keccak_before_sha_3(payload: bytes, expected: str) -> None:
    """`hashlib.sha3_256` gives others."""
    assert payload_hash(payload).hex() == expected


@pytest.mark.parametrize(
    ("layout", "rate", "expected"),
    [
        (STATUS, 0.125, (11, 1)),
        (LIP, 0.125, (11, 2)),
        (NIM, 0.125, (11, 2)),
        (NIM, 0.0, (11, 0)),
    ],
)
@pytest.mark.rule("rc-seg-split", "rc-seg-target", "rc-seg-cut", "rc-seg-chunks")
def test_a_mebibyte_has_eleven_segments_of_about_100_kb(
    layout: SegmentLayout, rate: float, expected: tuple[int, int]
) -> None:
    """status-go rounds the number of parity segments down, the others up."""
    options = SegmentationOptions(layout=layout, parity_rate=rate)
    segments = Segmenter(options).split(bytes(MEBIBYTE))
    read = headers(options, bytes(MEBIBYTE))
    parity = sum(one.is_parity for one in read)
    assert (len(read) - parity, parity) == expected
    assert [one.is_parity for one in read] == sorted(one.is_parity for one in read)
    assert max(map(len, segments)) < 102_400 + 100


@pytest.mark.rule("rc-seg-room", "rc-seg-overhead")
@pytest.mark.parametrize("layout", SegmentLayout)
def test_header_of_a_segment_has_at_most_128_bytes(layout: SegmentLayout) -> None:
    """Also that of a payload with as many segments as there can be."""
    options = SegmentationOptions(layout=layout, parity_rate=0.125)
    segments = Segmenter(options).split(bytes(options.max_payload_bytes))
    longest = max(map(len, segments))
    assert options.share_bytes < longest <= options.segment_bytes + 128


@pytest.mark.rule("rc-seg-unsegmented", "rc-seg-target")
@pytest.mark.parametrize("layout", SegmentLayout)
def test_payload_of_100_kb_is_not_segmented(layout: SegmentLayout) -> None:
    """Up to 102,400 bytes, in every layout; one byte more takes two segments."""
    segmenter = Segmenter(SegmentationOptions(layout=layout))
    for length, count in ((102_272, 1), (102_273, 1), (102_400, 1), (102_401, 2)):
        assert len(segmenter.split(bytes(length))) == count


@pytest.mark.parametrize("options", EVERY_LAYOUT, ids=lambda one: one.layout)
@pytest.mark.parametrize(("more", "expected"), [(-1, 3), (0, 3), (1, 4)])
def test_a_payload_has_no_more_segments_than_it_needs(
    options: SegmentationOptions, more: int, expected: int
) -> None:
    """An exact multiple has no empty segment at its end."""
    payload = payload_of(options, 3, more)
    read = headers(options, payload)
    assert [one.index for one in read] == list(range(expected))
    assert b"".join(one.payload for one in read) == payload
    assert {one.payload_hash for one in read} == {payload_hash(payload)}
    assert {one.data_count for one in read} == {expected}


@pytest.mark.parametrize("layout", [LIP, NIM])
@pytest.mark.parametrize("payload", [b"", b"short"])
def test_a_short_payload_is_one_segment(layout: SegmentLayout, payload: bytes) -> None:
    """These two layouts always wrap."""
    (only,) = headers(replace(SMALL, layout=layout), payload)
    assert (only.payload, only.data_count, only.index) == (payload, 1, 0)


def test_status_go_sends_a_short_payload_as_it_is() -> None:
    """It wraps only what does not fit."""
    options = replace(SMALL, layout=STATUS)
    payload = payload_of(options, 1, 0)
    assert Segmenter(options).split(payload) == [payload]
    assert len(Segmenter(options).split(payload + b"!")) == 2


@pytest.mark.parametrize(
    ("layout", "rate", "data_count", "expected"),
    [
        (STATUS, 0.125, 7, 0),
        (STATUS, 0.125, 8, 1),
        (STATUS, 0.125, 17, 2),
        (STATUS, 0.125, 228, 28),
        (STATUS, 0.125, 229, 0),
        (NIM, 0.125, 8, 1),
        (NIM, 0.125, 9, 2),
        # In floating point the product is just above 3.
        (NIM, 0.1, 30, 3),
        (NIM, 1.0, 5, 5),
        (NIM, 0.0, 5, 0),
        (LIP, 0.125, 2, 1),
        (LIP, 0.125, 1, 0),
    ],
)
def test_number_of_parity_segments_follows_the_layout(
    layout: SegmentLayout, rate: float, data_count: int, expected: int
) -> None:
    """One segment gets none by default, since its parity is a copy."""
    options = replace(SMALL, layout=layout, parity_rate=rate)
    assert options.parity_count(data_count) == expected


def test_parity_of_one_segment_is_a_copy() -> None:
    """Which nim-segmentation sends; the option `parity_from` allows it."""
    options = replace(SMALL, parity_rate=0.125, parity_from=1)
    data, parity = headers(options, b"short")
    assert parity.payload.rstrip(b"\0") == data.payload


@pytest.mark.rule("rc-error-size")
@pytest.mark.parametrize(
    ("layout", "rate", "expected"),
    [
        (STATUS, 0.125, 256),
        (LIP, 0.125, 224),
        (NIM, 0.125, 224),
        (NIM, 0.0, 256),
        (NIM, 1.0, 128),
    ],
)
def test_a_payload_beyond_the_limit_is_refused(
    layout: SegmentLayout, rate: float, expected: int
) -> None:
    """There are 256 segments; with parity, as many as the code has points for."""
    options = replace(SMALL, layout=layout, parity_rate=rate)
    longest = payload_of(options, expected, 0)
    assert options.max_payload_bytes == len(longest)
    read = headers(options, longest)
    assert sum(not one.is_parity for one in read) == expected
    with pytest.raises(PayloadTooLarge, match=f"at most {len(longest)}") as caught:
        Segmenter(options).split(longest + b"!")
    assert caught.value.actual_bytes == len(longest) + 1


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("segment_bytes", 63),
        ("parity_rate", 1.01),
        ("parity_rate", -0.01),
        ("parity_from", 0),
        ("max_segment_bytes", 319),
        ("max_sets", 0),
        ("max_buffered_bytes", 4_095),
        ("idle_timeout_ms", 0),
    ],
)
def test_options_out_of_range_are_refused(option: str, value: float) -> None:
    """The error names option and value."""
    with pytest.raises(ValueError, match=f"{option} is {value}, but must be "):
        replace(SMALL, **{option: value})
