"""Splits a payload into segments."""

from __future__ import annotations

from sds_core.reliable_channel.segmentation.erasure import parity_shards
from sds_core.reliable_channel.segmentation.errors import PayloadTooLarge
from sds_core.reliable_channel.segmentation.options import SegmentationOptions
from sds_core.reliable_channel.segmentation.writing import write_segment
from sds_core.wire.segment_header import SegmentHeader, SegmentLayout, payload_hash


class Segmenter:
    """Splits payloads.

    Args:
        options: Layout, size and parity.
    """

    __slots__ = ("_options",)

    def __init__(self, options: SegmentationOptions) -> None:
        self._options = options

    def split(self, payload: bytes) -> list[bytes]:
        """Return the data segments of a payload in order, then its parity segments.

        A payload that fits into one segment is one segment too, except in the layout of
        status-go, which sends it as it is.

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
