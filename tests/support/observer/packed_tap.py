"""A view of one tap, in times relative to the start."""

from __future__ import annotations

from sds_core.observer import blob
from sds_core.observer.tap_view import (
    BLOB_VERSION,
    Hole,
    TapDigest,
    TapState,
    TapTotals,
    TapView,
)
from tests.support.frames import START_MS
from tests.support.tap import digest


class Tap:
    """A view that is packed into its blob and unpacked again at every call."""

    def __init__(self) -> None:
        self._packed = TapView().to_blob()

    @property
    def view(self) -> TapView:
        """The view."""
        return TapView.from_blob(BLOB_VERSION, self._packed)

    def apply(self, *digests: TapDigest, clock_ms: int) -> None:
        """One batch."""
        view = self.view
        view.apply(digests, START_MS + clock_ms)
        self._packed = view.to_blob()

    def take(self, *records: tuple[int, int]) -> None:
        """Records of one partition, with the clock at the last of them."""
        self.apply(digest(*records), clock_ms=max(at for at, _ in records))

    @property
    def figures(self) -> tuple[int, int | None]:
        """Missing records and when the newest hole was found, relative."""
        totals = self.view.totals
        hole_ms = totals.last_hole_ms
        return totals.missing_records, None if hole_ms is None else hole_ms - START_MS

    @property
    def awaited(self) -> list[Hole]:
        """The sequence gaps that may still be filled."""
        body = blob.verified(self._packed)
        return blob.unpack(body, TapTotals, TapState)[1].holes

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Spans of the holes, relative."""
        holes = self.view.totals.holes
        return [(from_ms - START_MS, to_ms - START_MS) for from_ms, to_ms in holes]

    @property
    def hole_since_ms(self) -> int | None:
        """From when on there was always a hole in the window, relative."""
        since_ms = self.view.totals.hole_since_ms
        return None if since_ms is None else since_ms - START_MS

    @property
    def deadline_ms(self) -> int | None:
        """The next deadline, relative."""
        deadline_ms = self.view.next_deadline_ms
        return None if deadline_ms is None else deadline_ms - START_MS
