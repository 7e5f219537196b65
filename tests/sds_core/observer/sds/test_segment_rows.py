"""Which contents count as segments (docs/figures.md, 13)."""

from __future__ import annotations

import pytest

from sds_core.observer.sds.segment_rows import segment_row
from tests.support.written_segments import (
    lip_segments,
    nim_segments,
    status_segments,
    unchecked_hash,
    written,
)

HASH = unchecked_hash(5)
HASH_OF_NOTHING = bytes.fromhex(
    "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
)


@pytest.mark.parametrize(
    "segments",
    [
        nim_segments(1, 1),
        nim_segments(1, 2, last=64),
        nim_segments(1, 12, 2),
        lip_segments(1, 1),
        lip_segments(1, 8, 1),
        status_segments(1, 16, 2),
    ],
    ids=["nim", "nim full", "nim parity", "lip", "lip parity", "status parity"],
)
def test_all_segments_of_every_layout_count(segments: list[bytes]) -> None:
    """Those of one payload and sender belong together; places are distinct."""
    rows = [segment_row(7, one, b"alice") for one in segments]
    found = [row for row in rows if row is not None]
    assert len(found) == len(segments)
    assert {offset for offset, _ in found} == {7}
    assert len({one.payload for _, one in found}) == 1
    assert len({(one.place, one.is_parity) for _, one in found}) == len(segments)


def test_payloads_and_senders_are_told_apart() -> None:
    """By one number."""
    one, two = (nim_segments(number, 2)[0] for number in (1, 2))
    rows = [segment_row(0, *each) for each in ((one, b"a"), (one, b"b"), (two, b"a"))]
    assert len({row[1].payload for row in rows if row is not None}) == 3


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"text",
        HASH,
        written((1, HASH)),
        written((1, HASH), (2, 5)),
        written((1, HASH), (4, b"text")),
        written((1, HASH), (2, 3), (3, 3), (4, b"text")),
        written((1, HASH), (2, 1), (3, 3), (4, b"text"), (8, 1)),
        written((1, HASH[:31]), (3, 3), (4, b"text")),
        # An id in hexadecimal digits.
        written((1, HASH[:16].hex().encode()), (2, 1), (3, 3), (4, b"text")),
        written((1, HASH), (3, 3)),
        written((1, HASH), (4, 1)),
        written((1, HASH), (3, 200), (4, b"text"), (5, 0), (6, 200), (7, 1)),
    ],
    ids=lambda content: content.hex()[:12] + str(len(content)),
)
def test_content_of_an_application_is_no_segment(content: bytes) -> None:
    """Even if it begins with a field of 32 bytes."""
    assert segment_row(0, content, b"alice") is None


@pytest.mark.parametrize(
    ("whole", "index", "count", "is_parity", "size", "counts"),
    [
        (10, 0, 1, 0, 10, True),
        (10, 0, 1, 0, 9, False),
        (74, 0, 2, 0, 64, True),
        (129, 0, 2, 0, 64, False),
        (64, 0, 2, 0, 64, False),
        (74, 1, 2, 0, 10, True),
        (74, 1, 2, 0, 70, False),
        (138, 2, 3, 0, 10, True),
        (139, 2, 3, 0, 10, False),
        (128, 0, 2, 1, 64, True),
        (129, 0, 2, 1, 64, False),
    ],
)
def test_lengths_must_fit_together_where_the_layout_has_them(
    whole: int, index: int, count: int, is_parity: int, size: int, counts: bool
) -> None:
    """All data segments but the last one are equally long."""
    parity = [(5, 1), (6, 1)] if is_parity else []
    fields = [(1, HASH), (2, whole), (3, index), (4, count), *parity, (7, bytes(size))]
    assert (segment_row(0, written(*fields), b"") is not None) == counts


@pytest.mark.parametrize(
    ("segment", "is_wrong"),
    [
        (nim_segments(1, 1)[0], False),
        (lip_segments(1, 1)[0], False),
        (written((1, HASH), (2, 4), (4, 1), (7, b"text")), True),
        (written((1, HASH), (3, 1), (4, b"text")), True),
        (written((1, HASH), (2, 4), (4, 1), (5, 1), (6, 1), (7, b"text")), False),
        (nim_segments(1, 2)[0], False),
        (status_segments(1, 2, 1)[2], False),
    ],
    ids=["nim", "lip", "nim wrong", "lip wrong", "parity", "one of two", "no count"],
)
def test_hash_of_a_whole_payload_is_checked(segment: bytes, is_wrong: bool) -> None:
    """Of a part, or of parity, nobody can say whether it belongs to the hash."""
    row = segment_row(0, segment, b"alice")
    assert row is not None
    assert row[1].has_wrong_hash is is_wrong


def test_empty_payload_is_known_by_its_hash() -> None:
    """nim-segmentation sends one as a segment without bytes."""
    assert segment_row(0, written((1, HASH_OF_NOTHING), (4, 1)), b"") is not None
