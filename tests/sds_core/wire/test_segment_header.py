"""Segment headers in three layouts, and bytes that only resemble one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.wire.protobuf_fields import BrokenProtobuf, protobuf_fields
from sds_core.wire.segment_header import SegmentLayout, read_segment_header

HASH = bytes(range(32))
OPENING = "0a20" + HASH.hex()

STATUS_OR_LIP = (SegmentLayout.STATUS_GO, SegmentLayout.LIP_243)
NIM = (SegmentLayout.NIM_SEGMENTATION,)


def segment(rest: str) -> bytes:
    """A segment: the hash, and the fields behind it in hexadecimal."""
    return bytes.fromhex(OPENING + rest)


@pytest.mark.parametrize(
    ("rest", "layouts", "index", "data_count", "whole_bytes", "payload"),
    [
        # The vectors of nim-segmentation.
        ("10f403180120033a03aabbcc", NIM, 1, 3, 500, b"\xaa\xbb\xcc"),
        ("2001", NIM, 0, 1, 0, b""),
        ("100118032203aabbcc", STATUS_OR_LIP, 1, 3, None, b"\xaa\xbb\xcc"),
        ("18022203aabbcc", STATUS_OR_LIP, 0, 2, None, b"\xaa\xbb\xcc"),
        # Status does not wrap what fits into one message; LIP-243 always does.
        ("18012203aabbcc", (SegmentLayout.LIP_243,), 0, 1, None, b"\xaa\xbb\xcc"),
        ("180222003800", (SegmentLayout.LIP_243,), 0, 2, None, b""),
    ],
)
def test_data_segments_are_read_in_every_layout(
    rest: str,
    layouts: tuple[SegmentLayout, ...],
    index: int,
    data_count: int,
    whole_bytes: int | None,
    payload: bytes,
) -> None:
    """With all layouts that fit the bytes."""
    header = read_segment_header(segment(rest))
    assert header is not None
    assert header.layouts == layouts
    assert not header.is_parity
    assert header.payload_hash == HASH
    assert (header.index, header.data_count) == (index, data_count)
    assert (header.whole_bytes, header.payload) == (whole_bytes, payload)


@pytest.mark.parametrize(
    ("rest", "layout", "index", "data_count", "parity_count"),
    [
        # The vector of nim-segmentation.
        (
            "10f4032003280130013a021122",
            SegmentLayout.NIM_SEGMENTATION,
            0,
            3,
            1,
        ),
        ("2202112228013002", SegmentLayout.STATUS_GO, 1, None, 2),
        ("1810220211222801300238" + "01", SegmentLayout.LIP_243, 1, 16, 2),
    ],
)
def test_parity_segments_are_read_in_every_layout(
    rest: str,
    layout: SegmentLayout,
    index: int,
    data_count: int | None,
    parity_count: int,
) -> None:
    """Their index counts parity segments only."""
    header = read_segment_header(segment(rest))
    assert header is not None
    assert header.layouts == (layout,)
    assert header.is_parity
    assert header.payload == b"\x11\x22"
    assert (header.index, header.data_count, header.parity_count) == (
        index,
        data_count,
        parity_count,
    )


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"good morning",
        bytes.fromhex(OPENING),
        # A hash of another length.
        bytes.fromhex("0a1f" + "00" * 31 + "2001"),
        # An index that is not below its count, in each layout.
        segment("100318032203aabbcc"),
        segment("10f403180320033a03aabbcc"),
        segment("2202112228023002"),
        # No count, more segments than there may be, more bytes than the whole has.
        segment("10012203aabbcc"),
        segment("1881022203aabbcc"),
        segment("100220033a03aabbcc"),
        # Parity by LIP-243 without saying of how much data.
        segment("2202112228013002" + "3801"),
        # Unknown field, two of a kind, another order, another type, a cut end.
        segment("18022203aabbcc4001"),
        segment("180218022203aabbcc"),
        segment("2203aabbcc1802"),
        segment("1d00000000"),
        segment("18022203aabb"),
    ],
)
def test_other_bytes_are_no_segment(content: bytes) -> None:
    """Any value that does not fit makes the bytes no segment."""
    assert read_segment_header(content) is None


@given(st.binary(max_size=60))
def test_any_bytes_after_a_hash_are_read_or_refused(rest: bytes) -> None:
    """No other error is raised, and values that are read are possible."""
    header = read_segment_header(bytes.fromhex(OPENING) + rest)
    if header is not None:
        count = header.parity_count if header.is_parity else header.data_count
        assert count is not None
        assert 0 <= header.index < count <= 256


@pytest.mark.parametrize(
    ("message", "offset", "said"),
    [
        ("0a0161ff", 3, "ends within a number"),
        ("0a0161" + "08" + "ff" * 10, 3, "more than ten bytes"),
        ("0a0161120561", 3, "field 2 needs 5 bytes, but only 1 are left"),
        ("0a0161" + "00", 3, "a field has number 0"),
        ("0b", 0, "wire type 3"),
        ("0d000000", 0, "field 1 needs 4 bytes, but only 3 are left"),
    ],
)
def test_broken_protobuf_says_where_and_why(
    message: str, offset: int, said: str
) -> None:
    """The offset is that of the field that cannot be read."""
    with pytest.raises(BrokenProtobuf, match=said) as caught:
        list(protobuf_fields(bytes.fromhex(message)))
    assert caught.value.offset == offset
