"""Digests of what a tap wrote."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from sds_core.observer.tap_view import TapDigest
from tests.support.frames import START_MS


def digest_by_own_clock(*records: tuple[int, int, int]) -> TapDigest:
    """Return frames in one partition: topic's clock, number, and tap's own clock."""
    times, numbers, own_times = zip(*records, strict=True)
    columns = [
        array("q", values).tobytes()
        for values in ([START_MS + at for at in times], numbers)
    ]
    own = array("q", [START_MS + at for at in own_times]).tobytes()
    return TapDigest(*columns, b"", b"", own)


def digest(
    *records: tuple[int, int], heartbeats: Sequence[tuple[int, int]] = ()
) -> TapDigest:
    """Return frames and heartbeats of the tap in one partition as a digest."""
    columns = [
        array("q", values).tobytes()
        for rows in (records, heartbeats)
        for values in ([START_MS + at for at, _ in rows], [seq for _, seq in rows])
    ]
    return TapDigest(*columns)
