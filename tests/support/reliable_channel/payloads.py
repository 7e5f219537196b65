"""Payloads and options for tests of segmentation."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from sds_core.reliable_channel.segmentation import SegmentationOptions, SegmentLayout

SMALL = SegmentationOptions(
    segment_bytes=192, max_segment_bytes=4_096, max_buffered_bytes=65_536
)
"""Data segments of 192 bytes."""

EVERY_LAYOUT = [replace(SMALL, layout=layout) for layout in SegmentLayout]


def payload_of(options: SegmentationOptions, data_count: int, more: int = -1) -> bytes:
    """A payload of so many segments: one byte less than full ones, or `more` bytes.

    It does not end with a zero, which not every layout can tell from padding.
    """
    length = options.share_bytes * data_count + more
    return Random(length).randbytes(length - 1) + b"\x01"
