"""Segments as bytes, in three layouts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.reliable_channel.segmentation.segmenter import write_segment
from sds_core.wire.segment_header import (
    SegmentHeader,
    SegmentLayout,
    read_segment_header,
)
from tests.support.properties import CAREFUL

HASH = bytes(range(32))
OPENING = "0a20" + HASH.hex()

STATUS, LIP, NIM = (
    SegmentLayout.STATUS_GO,
    SegmentLayout.LIP_243,
    SegmentLayout.NIM_SEGMENTATION,
)


def header(
    layout: SegmentLayout,
    index: int,
    data_count: int | None,
    parity_count: int | None = None,
    *,
    whole_bytes: int | None = None,
    is_parity: bool = False,
    payload: bytes = b"",
) -> SegmentHeader:
    """A header of one layout."""
    return SegmentHeader(
        layouts=(layout,),
        payload_hash=HASH,
        index=index,
        is_parity=is_parity,
        data_count=data_count,
        parity_count=parity_count,
        whole_bytes=whole_bytes,
        payload=payload,
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # The three vectors of nim-segmentation: tests/test_wire_vectors.nim.
        (
            header(NIM, 1, 3, whole_bytes=500, payload=b"\xaa\xbb\xcc"),
            "10f403180120033a03aabbcc",
        ),
        (
            header(NIM, 0, 3, 1, whole_bytes=500, is_parity=True, payload=b"\x11\x22"),
            "10f403200328013001" + "3a021122",
        ),
        (header(NIM, 0, 1, whole_bytes=0), "2001"),
        # By the schemas of status-go and LIP-243.
        (header(STATUS, 1, 3, payload=b"\xaa"), "1001" + "1803" + "2201aa"),
        (
            header(STATUS, 1, 3, 2, is_parity=True, payload=b"\x11\x22"),
            "22021122" + "2801" + "3002",
        ),
        (header(LIP, 1, 3, 2, payload=b"\xaa"), "1001" + "1803" + "2201aa" + "3002"),
        (
            header(LIP, 1, 16, 2, is_parity=True, payload=b"\x11\x22"),
            "1810" + "22021122" + "2801" + "3002" + "3801",
        ),
    ],
)
def test_segments_have_the_bytes_of_their_layout(
    given: SegmentHeader, expected: str
) -> None:
    """Zero values are left out."""
    assert write_segment(given).hex() == OPENING + expected


@CAREFUL
@given(data=st.data(), layout=st.sampled_from(SegmentLayout))
def test_what_is_written_is_read_again(
    data: st.DataObject, layout: SegmentLayout
) -> None:
    """By the reader that the monitor uses."""
    data_count = data.draw(st.integers(2, 200))
    parity_count = data.draw(st.integers(0, 256 - data_count))
    is_parity = data.draw(st.booleans()) and parity_count > 0
    payload = data.draw(st.binary(max_size=300))
    written = header(
        layout,
        data.draw(st.integers(0, (parity_count if is_parity else data_count) - 1)),
        data_count,
        parity_count or None,
        whole_bytes=data.draw(st.integers(300, 2**40)) if layout is NIM else None,
        is_parity=is_parity,
        payload=payload,
    )
    read = read_segment_header(write_segment(written))
    assert read is not None
    assert layout in read.layouts
    assert read.payload == payload
    assert (read.index, read.is_parity) == (written.index, is_parity)
    assert read.whole_bytes == written.whole_bytes
    # What the layout does not hold is unknown.
    has_data_count = layout is not STATUS or not is_parity
    has_parity_count = layout is not STATUS or is_parity
    assert read.data_count == (data_count if has_data_count else None)
    assert read.parity_count == (written.parity_count if has_parity_count else None)
