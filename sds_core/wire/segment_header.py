"""Recognises segments of a split payload, and reads the segments' headers.

Three layouts are in use, and a segment does not name its layout. All layouts have the
hash of the whole payload in field 1. The types of the other fields distinguish the
layouts, but some segments fit two layouts. The layouts have these fields after field 1:

    field  status-go, LIP-243        nim-segmentation
    2      index                     length of the whole payload
    3      count of data segments    index within its class
    4      payload (bytes)           count of data segments (a number)
    5      index of a parity segment count of parity segments
    6      count of parity segments  whether it is a parity segment
    7      LIP-243 only: is parity   payload (bytes)

Sources: status-go protocol/protobuf/segment_message.proto; LIP-243; logos-messaging
nim-segmentation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from Crypto.Hash import keccak

from sds_core.native import native
from sds_core.wire.protobuf_fields import (
    LENGTH_DELIMITED,
    BrokenProtobuf,
    protobuf_fields,
)

_HASH_BYTES = 32
_MOST_SEGMENTS = 256
_LARGEST_LENGTH = 2**63 - 1
_FEWEST_STATUS_SEGMENTS = 2

# Every segment begins with the tag and the length of field 1, the hash.
_OPENING = bytes([1 << 3 | LENGTH_DELIMITED, _HASH_BYTES])

_BYTES_FIELDS_LIP = frozenset({1, 4})
_BYTES_FIELDS_NIM = frozenset({1, 7})


class SegmentLayout(StrEnum):
    """Field layout of a segment, named after the software or document of its origin."""

    STATUS_GO = "status-go"
    LIP_243 = "lip-243"
    NIM_SEGMENTATION = "nim-segmentation"


@dataclass(frozen=True, slots=True)
class SegmentHeader:
    """Header of one segment.

    Attributes:
        layouts: All layouts that the segment fits, at least one; a data segment of
            status-go also fits LIP-243.
        payload_hash: Keccak-256 of the whole payload, 32 bytes.
        index: Position, from 0, among the payload's segments of the same class (data
            segments or parity segments).
        is_parity: Whether the segment is a parity segment (erasure code). If not, it is
            a data segment.
        data_count: Number of the payload's data segments, in [1, 256]. None if the
            segment does not state the number, as in parity segments of status-go.
        parity_count: Number of the payload's parity segments; None if the segment does
            not state the number.
        whole_bytes: Length of the whole payload; None if the layout has no field for
            the length.
    """

    layouts: tuple[SegmentLayout, ...]
    payload_hash: bytes
    index: int
    is_parity: bool
    data_count: int | None
    parity_count: int | None
    whole_bytes: int | None
    payload: bytes


@native
def read_segment_header(content: bytes) -> SegmentHeader | None:
    """Decode a segment; None if the bytes are not a segment.

    The function checks the fields, their order, the length of the hash, and the index.
    Bytes that are not a segment pass these checks only if they are crafted.
    """
    if not content.startswith(_OPENING):
        return None
    numbers: dict[int, int] = {}
    parts: dict[int, bytes] = {}
    last = 0
    try:
        for number, wire_type, _, value in protobuf_fields(content):
            # The libraries of all three layouts write fields in the order of their
            # numbers.
            if not last < number <= 7:
                return None
            last = number
            if isinstance(value, int):
                numbers[number] = value
            elif wire_type == LENGTH_DELIMITED:
                parts[number] = value
            else:
                return None
    except BrokenProtobuf:
        return None
    header = None
    if parts.keys() <= _BYTES_FIELDS_NIM and 4 in numbers:
        header = _nim_segmentation(numbers, parts)
    elif parts.keys() <= _BYTES_FIELDS_LIP and 4 not in numbers:
        header = _lip(numbers, parts)
    return header if header is not None and _is_possible(header) else None


def _lip(numbers: Mapping[int, int], parts: Mapping[int, bytes]) -> SegmentHeader:
    data_count = numbers.get(3, 0)
    parity_count = numbers.get(6, 0)
    layouts = [SegmentLayout.LIP_243]
    if 7 in numbers:
        is_parity = numbers[7] == 1
    else:
        # status-go writes no field 7. Its parity segments do not state the number of
        # data segments. status-go splits only payloads that do not fit into one
        # message, so a split payload has at least two data segments.
        is_parity = data_count == 0
        if is_parity:
            layouts = [SegmentLayout.STATUS_GO]
        elif data_count >= _FEWEST_STATUS_SEGMENTS:
            layouts.insert(0, SegmentLayout.STATUS_GO)
    return SegmentHeader(
        layouts=tuple(layouts),
        payload_hash=parts[1],
        index=numbers.get(5 if is_parity else 2, 0),
        is_parity=is_parity,
        data_count=data_count or None,
        parity_count=parity_count or None,
        whole_bytes=None,
        payload=parts.get(4, b""),
    )


def _nim_segmentation(
    numbers: Mapping[int, int], parts: Mapping[int, bytes]
) -> SegmentHeader:
    return SegmentHeader(
        layouts=(SegmentLayout.NIM_SEGMENTATION,),
        payload_hash=parts[1],
        index=numbers.get(3, 0),
        is_parity=numbers.get(6, 0) == 1,
        data_count=numbers[4],
        parity_count=numbers.get(5),
        whole_bytes=numbers.get(2, 0),
        payload=parts.get(7, b""),
    )


def _is_possible(header: SegmentHeader) -> bool:
    if header.data_count is None and SegmentLayout.STATUS_GO not in header.layouts:
        return False
    count = header.parity_count if header.is_parity else header.data_count
    if count is None or not header.index < count:
        return False
    if (header.data_count or 0) + (header.parity_count or 0) > _MOST_SEGMENTS:
        return False
    whole_bytes = header.whole_bytes
    if whole_bytes is None:
        return True
    # A parity segment is padded, so it can be longer than the whole payload.
    fits = header.is_parity or len(header.payload) <= whole_bytes
    return fits and whole_bytes <= _LARGEST_LENGTH


def payload_hash(payload: bytes) -> bytes:
    """Return the hash that all segments of a payload contain: Keccak-256, 32 bytes.

    `hashlib` cannot compute this hash. It has only SHA-3, the standardised form of
    Keccak, which pads the input differently.
    """
    return keccak.new(digest_bits=256, data=payload).digest()
