"""Taps as a kind of view."""

from __future__ import annotations

from sds_core.observer.figure_table import FigureTable, Names
from sds_core.observer.figures import Figure, Unit, counter, gauge
from sds_core.observer.forgotten import Forgotten
from sds_core.observer.kinds import Kind, Outlet
from sds_core.observer.tap_view import (
    BLOB_VERSION,
    CHECKSUM_SINCE,
    TapDigest,
    TapTotals,
    TapView,
)

TAP_FIGURES = FigureTable(
    TapTotals,
    Names(label="observer", one="tap", many="taps"),
    [
        Figure(
            "last_seen_ms",
            "Event time of the tap's last record, including heartbeats.",
            Unit.TIME,
            report=("last_seen",),
            series=(gauge("sds_tap_last_seen_timestamp_seconds").of(),),
        ),
        Figure(
            "missing_records",
            "Number of the tap's sequence numbers that never arrived.",
            report=("missing_records",),
            series=(counter("sds_tap_missing_records_total").of(),),
        ),
        Figure(
            "last_hole_ms",
            "Event time at which the tap's newest capture gap was found.",
            Unit.TIME,
            report=("last_hole",),
        ),
    ],
)


def _was_seen(totals: TapTotals) -> bool:
    return bool(totals.last_seen_ms)


def _remains(totals: TapTotals) -> TapTotals:
    return TapTotals(missing_records=totals.missing_records)


TAPS: Kind[TapDigest, TapTotals, Forgotten] = Kind(
    prefix="tap",
    digest=TapDigest,
    view=TapView,
    totals=TapTotals,
    blob_version=BLOB_VERSION,
    checksum_since=CHECKSUM_SINCE,
    label_file="taps.json",
    label_budget=50,
    outlets={Forgotten: Outlet.FORGOTTEN},
    is_known=_was_seen,
    figures=TAP_FIGURES,
    remains=_remains,
    ignores_forget_ms=True,
)
"""The kind of view for taps. A view's name is its tap's id (docs/figures.md, 8)."""
