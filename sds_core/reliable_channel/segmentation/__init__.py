"""Splits payloads that are too long for one message, and reassembles them.

Each segment contains its index, counts of the payload's segments, and the Keccak-256
hash of the whole payload. A reassembled payload that has a different hash is dropped.
Parity segments can replace lost segments.
"""

from sds_core.reliable_channel.segmentation.errors import (
    NotASegment,
    PayloadHashMismatch,
    PayloadTooLarge,
    SegmentationError,
    SegmentsDisagree,
    SegmentTooLarge,
    SetTooLarge,
)
from sds_core.reliable_channel.segmentation.options import SegmentationOptions
from sds_core.reliable_channel.segmentation.reassembler import (
    DroppedSet,
    DropReason,
    Finished,
    Outcome,
    Progress,
    Reassembler,
)
from sds_core.reliable_channel.segmentation.segmenter import Segmenter
from sds_core.wire.segment_header import SegmentLayout, payload_hash

__all__ = [
    "DropReason",
    "DroppedSet",
    "Finished",
    "NotASegment",
    "Outcome",
    "PayloadHashMismatch",
    "PayloadTooLarge",
    "Progress",
    "Reassembler",
    "SegmentLayout",
    "SegmentTooLarge",
    "SegmentationError",
    "SegmentationOptions",
    "Segmenter",
    "SegmentsDisagree",
    "SetTooLarge",
    "payload_hash",
]
