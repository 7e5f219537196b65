"""Options for splitting payloads, and for holding incomplete payloads."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Final

from sds_core.ranges import check_least
from sds_core.reliable_channel.segmentation.erasure import (
    LEOPARD_ALIGNMENT_BYTES,
    ErasureCode,
    is_supported,
)
from sds_core.wire.segment_header import SegmentLayout

MOST_SEGMENTS: Final = 256
"""Maximum number of a payload's data and parity segments together, in all layouts."""

HEADER_ROOM_BYTES: Final = 128
"""Bytes that are reserved for a segment's header, as in nim-segmentation."""

_RATE_STEPS = 1_000_000
"""The parity rate is rounded to a fraction with this denominator.

nim-segmentation uses the same denominator.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentationOptions:
    """Options of `Segmenter` and `Reassembler`.

    Attributes:
        layout: Layout of the fields in segments that `Segmenter` writes. `Reassembler`
            reads all three layouts.
        segment_bytes: Maximum bytes of the payload in one segment, without the header;
            see `share_bytes`. The same option of nim-segmentation includes 128 bytes
            for the header. So 102,400 bytes in nim-segmentation equal 102,272 bytes
            here.
        parity_rate: Number of parity segments divided by the number of data segments,
            in [0, 1]. If the value is 0, no parity segments are sent. nim-segmentation
            has the same default; status-go and LIP-243 use 0.125.
        parity_from: Minimum number of data segments for which parity segments are sent.
            If a payload has only one data segment, nim-segmentation sends a copy of the
            data segment as its parity segment.
        max_segment_bytes: Maximum length of an accepted segment. The default is the
            routing layer's limit.
        max_sets, max_buffered_bytes: Maximum number of incomplete payloads, and maximum
            total size of their segments. If a limit would be exceeded, the incomplete
            payload that has waited longest for a new segment is dropped.
        idle_timeout_ms: If no new segment of an incomplete payload arrives within this
            time, the payload is dropped.
    """

    layout: SegmentLayout = SegmentLayout.NIM_SEGMENTATION
    # RELIABLE-CHANNEL-API, "Message segmentation", requires segments with 102,400 bytes
    # of user payload. The defaults from `max_segment_bytes` on are those of
    # nim-segmentation. 64/WAKU2-NETWORK has the same limit as `max_segment_bytes`.
    segment_bytes: int = 102_400
    parity_rate: float = 0.0
    parity_from: int = 2
    max_segment_bytes: int = 153_600
    max_sets: int = 100
    max_buffered_bytes: int = 32 * 1024 * 1024
    idle_timeout_ms: int = 300_000

    def __post_init__(self) -> None:
        """Raise ValueError if an option is out of its range."""
        at_least = {
            "segment_bytes": LEOPARD_ALIGNMENT_BYTES,
            "parity_from": 1,
            "max_segment_bytes": self.segment_bytes + HEADER_ROOM_BYTES,
            "max_sets": 1,
            "max_buffered_bytes": self.max_segment_bytes,
            "idle_timeout_ms": 1,
        }
        check_least(self, at_least)
        if not 0 <= self.parity_rate <= 1:
            message = f"parity_rate is {self.parity_rate}, but must be from 0 to 1"
            raise ValueError(message)

    @property
    def code(self) -> ErasureCode:
        """The erasure code that computes the parity segments of the option `layout`."""
        return code_of(self.layout)

    @property
    def share_bytes(self) -> int:
        """Number of the payload's bytes in each data segment except the last.

        The result is `segment_bytes`. For Leopard-RS, `segment_bytes` is rounded down
        to a multiple of 64.
        """
        share = self.segment_bytes
        if self.code is ErasureCode.LEOPARD:
            share -= share % LEOPARD_ALIGNMENT_BYTES
        return share

    @property
    def max_payload_bytes(self) -> int:
        """Length of the longest payload that can be split, in bytes."""
        counts = range(MOST_SEGMENTS, 0, -1)
        return self.share_bytes * next(filter(self._is_possible, counts))

    def data_count(self, payload_bytes: int) -> int:
        """Return how many data segments (at least 1) a payload of this length needs."""
        return max(1, -(-payload_bytes // self.share_bytes))

    def parity_count(self, data_count: int) -> int:
        """Return how many parity segments are sent for a number of data segments.

        In status-go's layout, the result is rounded down. If data and parity segments
        together would then exceed `MOST_SEGMENTS`, the result is 0. In other layouts,
        the result is rounded up, but never exceeds the number of data segments.
        """
        if data_count < self.parity_from:
            return 0
        scaled = Fraction(round(self.parity_rate * _RATE_STEPS), _RATE_STEPS)
        exact = scaled * data_count
        if self.layout is SegmentLayout.STATUS_GO:
            count = int(exact)
            return count if data_count + count <= MOST_SEGMENTS else 0
        return min(data_count, ceil(exact))

    def _is_possible(self, data_count: int) -> bool:
        parity_count = self.parity_count(data_count)
        return not parity_count or is_supported(self.code, data_count, parity_count)


def code_of(layout: SegmentLayout) -> ErasureCode:
    """Return the erasure code that computes the parity segments of a layout."""
    is_status = layout is SegmentLayout.STATUS_GO
    return ErasureCode.CLASSICAL if is_status else ErasureCode.LEOPARD
