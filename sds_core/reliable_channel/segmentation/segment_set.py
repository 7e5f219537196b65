"""Collects the segments of one payload, and reassembles the payload."""

from __future__ import annotations

from collections.abc import Iterator

from sds_core.reliable_channel.segmentation.erasure import is_supported, recover
from sds_core.reliable_channel.segmentation.errors import (
    PayloadHashMismatch,
    SegmentsDisagree,
)
from sds_core.reliable_channel.segmentation.options import MOST_SEGMENTS, code_of
from sds_core.wire.segment_header import SegmentHeader, SegmentLayout, payload_hash

Slot = tuple[bool, int]
"""A segment's place in its set: whether it is a parity segment, and its index."""


class SegmentSet:
    """The arrived segments of one payload.

    Attributes:
        layouts: The layouts that fit all arrived segments.
        data_count: Number of the payload's data segments; None while only parity
            segments of status-go have arrived.
        parity_count: Number of the payload's parity segments; None until a segment
            states this number.
        updated_ms: When the last segment was added, Unix ms.
    """

    __slots__ = (
        "_awaits_last",
        "_data",
        "_parity",
        "_whole_bytes",
        "data_count",
        "held_bytes",
        "layouts",
        "parity_count",
        "payload_hash",
        "updated_ms",
    )

    def __init__(self, header: SegmentHeader) -> None:
        self.payload_hash = header.payload_hash
        self.layouts = header.layouts
        self.data_count = header.data_count
        self.parity_count = header.parity_count
        self.held_bytes = 0
        self.updated_ms = 0
        self._awaits_last = False
        self._whole_bytes = header.whole_bytes
        self._data: dict[int, bytes] = {}
        self._parity: dict[int, bytes] = {}

    @property
    def received(self) -> int:
        """Number of data and parity segments that have arrived."""
        return len(self._data) + len(self._parity)

    @property
    def total(self) -> int:
        """Number of the payload's segments that are known to exist, data and parity."""
        return max(self.received, (self.data_count or 0) + (self.parity_count or 0))

    @property
    def slots(self) -> set[Slot]:
        """The `Slot` of each segment that has arrived."""
        data = {(False, index) for index in self._data}
        return data | {(True, index) for index in self._parity}

    def has(self, header: SegmentHeader) -> bool:
        """Return whether a segment of the header's kind and index has arrived."""
        return header.index in self._shares(header)

    def check(self, header: SegmentHeader) -> None:
        """Check that a segment can belong to this payload.

        Raises:
            SegmentsDisagree: The segment differs from earlier segments of the payload
                in its layout or its stated number of segments, or the payload would
                have too many segments.
        """
        if not set(self.layouts) & set(header.layouts):
            self._disagree(f"layout {header.layouts[0]}, not {self.layouts[0]}")
        has_all_fields = SegmentLayout.NIM_SEGMENTATION in self.layouts
        for what, own, other in (
            ("data", self.data_count or 0, header.data_count or 0),
            ("parity", self.parity_count or 0, header.parity_count or 0),
        ):
            # Some segments of LIP-243 and status-go contain only one of the counts, so
            # a missing count is not a contradiction.
            if own != other and (has_all_fields or (own and other)):
                self._disagree(f"{other} {what} segments, not {own}")
        data_count = self.data_count or header.data_count or 0
        parity_count = self.parity_count or header.parity_count or 0
        if data_count + parity_count > MOST_SEGMENTS:
            self._disagree(f"{data_count} data and {parity_count} parity segments")

    def put(self, header: SegmentHeader, now_ms: int) -> None:
        """Add a segment that `check` accepts, and for which `has` returns False."""
        self.layouts = tuple(one for one in self.layouts if one in header.layouts)
        self.data_count = self.data_count or header.data_count
        self.parity_count = self.parity_count or header.parity_count
        self.held_bytes += len(header.payload)
        self.updated_ms = now_ms
        self._shares(header)[header.index] = header.payload

    def payload(self) -> bytes | None:
        """Return the payload; None if more segments are needed.

        The layouts of status-go and LIP-243 do not contain the payload's length. If the
        last data segment is recovered from parity, zeros at its end may be padding or a
        part of the payload. The payload's hash is checked with and without these zeros.
        If both hashes are wrong, the set waits for the last data segment.

        Raises:
            PayloadHashMismatch: The payload does not have the hash that the segments
                state.
        """
        if self.data_count is None or self.received < self.data_count:
            return None
        has_last = self.data_count - 1 in self._data
        # Recovery from parity is expensive. If the recovered payload had a wrong hash,
        # the recovery is not repeated for each further segment.
        if self._awaits_last and not has_last:
            return None
        shares = self._all_shares(self.data_count)
        if shares is None:
            return None
        for candidate in self._candidates(shares):
            if payload_hash(candidate) == self.payload_hash:
                return candidate
        if self._whole_bytes is None and not has_last:
            self._awaits_last = True
            return None
        raise PayloadHashMismatch(self.payload_hash)

    def _candidates(self, shares: list[bytes]) -> Iterator[bytes]:
        """Yield the possible payloads: with, and without, zeros at the end.

        If the segments state the payload's length, only one payload is possible.
        """
        joined = b"".join(shares)
        if self._whole_bytes is not None:
            yield joined[: self._whole_bytes]
            return
        yield joined
        # The zeros may be padding even if the last data segment arrived, because
        # senders that use LIP-243 may send this segment with padding.
        padding = len(shares[-1]) - len(shares[-1].rstrip(b"\0"))
        if padding:
            yield joined[:-padding]

    def _all_shares(self, data_count: int) -> list[bytes] | None:
        """Return the bytes of all data segments; None if they cannot be recovered."""
        if len(self._data) == data_count:
            return [self._data[index] for index in range(data_count)]
        code = code_of(self.layouts[0])
        parity_count = self.parity_count or 0
        if not is_supported(code, data_count, parity_count):
            return None
        share_bytes = len(next(iter(self._parity.values())))
        shares = dict(self._data)
        last = shares.get(data_count - 1)
        if last is not None:
            shares[data_count - 1] = last.ljust(share_bytes, b"\0")
        every = (*shares.values(), *self._parity.values())
        if any(len(share) != share_bytes for share in every):
            raise PayloadHashMismatch(self.payload_hash)
        recovered = recover(code, shares, self._parity, data_count, parity_count)
        return recovered if last is None else [*recovered[:-1], last]

    def _shares(self, header: SegmentHeader) -> dict[int, bytes]:
        return self._parity if header.is_parity else self._data

    def _disagree(self, detail: str) -> None:
        raise SegmentsDisagree(self.payload_hash, detail)
