"""Taps as a kind of view."""

from __future__ import annotations

from sds_core.observer.kinds import Kind
from sds_core.observer.tap_figures import TAP_FIGURES
from sds_core.observer.tap_view import (
    BLOB_VERSION,
    CHECKSUM_SINCE,
    TapDigest,
    TapTotals,
    TapView,
)


def _was_seen(totals: TapTotals) -> bool:
    return bool(totals.last_seen_ms)


TAPS: Kind[TapDigest, TapTotals, object] = Kind(
    prefix="tap",
    digest=TapDigest,
    view=TapView,
    totals=TapTotals,
    blob_version=BLOB_VERSION,
    checksum_since=CHECKSUM_SINCE,
    label_file="taps.json",
    label_budget=50,
    is_known=_was_seen,
    figures=TAP_FIGURES,
)
"""A view for each tap, by its id (docs/figures.md, 8)."""
