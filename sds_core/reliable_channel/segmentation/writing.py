"""Writes segments; `sds_core.wire.segment_header` reads them, and has the layouts."""

from __future__ import annotations

from sds_core.wire.protobuf_fields import LENGTH_DELIMITED, VARINT
from sds_core.wire.segment_header import SegmentHeader, SegmentLayout


def write_segment(header: SegmentHeader) -> bytes:
    """Return a segment in the first of its header's layouts.

    Fields are in the order of their numbers; those of value zero are left out, as
    protobuf's third version does.
    """
    layout = header.layouts[0]
    if layout is SegmentLayout.NIM_SEGMENTATION:
        fields = {
            2: header.whole_bytes,
            3: header.index,
            4: header.data_count,
            5: header.parity_count,
            6: int(header.is_parity),
            7: header.payload,
        }
    elif header.is_parity:
        fields = {4: header.payload, 5: header.index, 6: header.parity_count}
        if layout is SegmentLayout.LIP_243:
            fields |= {3: header.data_count, 7: 1}
    else:
        fields = {2: header.index, 3: header.data_count, 4: header.payload}
        if layout is SegmentLayout.LIP_243:
            fields[6] = header.parity_count
    fields[1] = header.payload_hash
    return b"".join(
        _field(number, value) for number, value in sorted(fields.items()) if value
    )


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3 | VARINT) + _varint(value)
    return _varint(number << 3 | LENGTH_DELIMITED) + _varint(len(value)) + value


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)
