"""Splits a payload into segments."""

from __future__ import annotations

from sds_core.reliable_channel.segmentation.erasure import parity_shards
from sds_core.reliable_channel.segmentation.errors import PayloadTooLarge
from sds_core.reliable_channel.segmentation.options import SegmentationOptions
from sds_core.wire.protobuf_fields import LENGTH_DELIMITED, VARINT
from sds_core.wire.segment_header import SegmentHeader, SegmentLayout, payload_hash


def write_segment(header: SegmentHeader) -> bytes:
    """Return a segment as bytes, in the first layout of `header.layouts`.

    As in proto3, fields are in the order of their numbers, and fields with the value
    zero are omitted.
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


class Segmenter:
    """Splits payloads into segments."""

    def __init__(self, options: SegmentationOptions) -> None:
        self._options = options

    def split(self, payload: bytes) -> list[bytes]:
        """Return the data segments of a payload in order, then its parity segments.

        A payload that fits into one segment becomes one data segment. In status-go's
        layout, such a payload is returned unchanged, without a header.

        Raises:
            PayloadTooLarge: The payload needs too many segments.
        """
        options = self._options
        if len(payload) > options.max_payload_bytes:
            raise PayloadTooLarge(len(payload), options.max_payload_bytes)
        share = options.share_bytes
        data_count = options.data_count(len(payload))
        if data_count == 1 and options.layout is SegmentLayout.STATUS_GO:
            return [payload]
        data = [payload[share * i : share * (i + 1)] for i in range(data_count)]
        parity_count = options.parity_count(data_count)
        parity = []
        if parity_count:
            padded = [*data[:-1], data[-1].ljust(share, b"\0")]
            parity = parity_shards(options.code, padded, parity_count)
        digest = payload_hash(payload)
        is_nim = options.layout is SegmentLayout.NIM_SEGMENTATION
        return [
            write_segment(
                SegmentHeader(
                    layouts=(options.layout,),
                    payload_hash=digest,
                    index=index,
                    is_parity=is_parity,
                    data_count=data_count,
                    parity_count=parity_count,
                    whole_bytes=len(payload) if is_nim else None,
                    payload=own,
                )
            )
            for is_parity, shares in ((False, data), (True, parity))
            for index, own in enumerate(shares)
        ]
