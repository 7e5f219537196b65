"""Errors for payloads that cannot be split, and for segments that cannot be used.

    SegmentationError (a ReliableChannelError and ValueError)
    ├── PayloadTooLarge         split: the payload needs too many segments
    ├── NotASegment             add: the bytes are not a segment
    ├── SegmentTooLarge         add: the segment is too long
    ├── SegmentsDisagree        add: the segment contradicts others of its payload
    ├── SetTooLarge             add: the segment's payload is too long to be stored
    └── PayloadHashMismatch     add: the payload does not have the hash of its segments

Each value in the text of an error is also an attribute of the error.
"""

from __future__ import annotations

from sds_core.reliable_channel.errors import ReliableChannelError


class SegmentationError(ReliableChannelError, ValueError):
    """Base class of all errors of this module."""


class PayloadTooLarge(SegmentationError):
    """A payload needs more than the maximum number of segments, so it is not split."""

    def __init__(self, actual_bytes: int, limit_bytes: int) -> None:
        super().__init__(
            f"the payload has {actual_bytes} bytes, but at most {limit_bytes} are "
            "allowed"
        )
        self.actual_bytes = actual_bytes
        self.limit_bytes = limit_bytes


class NotASegment(SegmentationError):
    """The bytes are not a segment in any of the three layouts."""

    def __init__(self, actual_bytes: int) -> None:
        super().__init__(f"the {actual_bytes} bytes are not a segment")
        self.actual_bytes = actual_bytes


class SegmentTooLarge(SegmentationError):
    """A segment is longer than `max_segment_bytes`, so it is not read."""

    def __init__(self, actual_bytes: int, limit_bytes: int) -> None:
        super().__init__(
            f"a segment has {actual_bytes} bytes, but at most {limit_bytes} are allowed"
        )
        self.actual_bytes = actual_bytes
        self.limit_bytes = limit_bytes


class SegmentsDisagree(SegmentationError):
    """A segment contradicts earlier segments of its payload. The segment is dropped."""

    def __init__(self, payload_hash: bytes, detail: str) -> None:
        super().__init__(f"a segment of payload {payload_hash.hex()}: {detail}")
        self.payload_hash = payload_hash
        self.detail = detail


class SetTooLarge(SegmentationError):
    """A payload exceeds `max_buffered_bytes`, so all its segments are dropped."""

    def __init__(
        self, payload_hash: bytes, actual_bytes: int, limit_bytes: int
    ) -> None:
        super().__init__(
            f"payload {payload_hash.hex()} needs {actual_bytes} bytes of memory, but "
            f"at most {limit_bytes} are allowed"
        )
        self.payload_hash = payload_hash
        self.actual_bytes = actual_bytes
        self.limit_bytes = limit_bytes


class PayloadHashMismatch(SegmentationError):
    """A payload does not have the hash that its segments state, so it is dropped."""

    def __init__(self, payload_hash: bytes) -> None:
        super().__init__(
            "the payload that was joined from segments does not have the hash "
            f"{payload_hash.hex()}"
        )
        self.payload_hash = payload_hash
