"""Digests of what a tap wrote."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from sds_core.observer.tap_view import TapDigest
from tests.support.frames import START_MS


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
