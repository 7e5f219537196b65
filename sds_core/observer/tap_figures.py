"""The table of the figures of a tap; what they mean: ``docs/figures.md``, 8."""

from __future__ import annotations

from sds_core.observer.figure_table import FigureTable, Names
from sds_core.observer.figures import Figure, Unit, counter, gauge
from sds_core.observer.tap_view import TapTotals

TAP_FIGURES = FigureTable(
    TapTotals,
    Names(label="observer", one="tap", many="taps"),
    [
        Figure(
            "last_seen_ms",
            Unit.TIME,
            "Event time of the tap's last record, heartbeats included.",
            report=("last_seen",),
            series=(gauge("sds_tap_last_seen_timestamp_seconds").of(),),
        ),
        Figure(
            "missing_records",
            Unit.COUNT,
            "Sequence numbers of the tap that never arrived.",
            report=("missing_records",),
            series=(counter("sds_tap_missing_records_total").of(),),
        ),
        Figure(
            "last_hole_ms",
            Unit.TIME,
            "Event time at which the tap's newest hole was found.",
            report=("last_hole",),
        ),
    ],
)
