"""The table of all figures of a group of MVDS; see ``docs/figures.md``, 14."""

from __future__ import annotations

from sds_core.observer.figure_table import FigureTable, Names
from sds_core.observer.figures import ChartShape, Limit, Scale
from sds_core.observer.mvds.figures import deliveries, health, traffic, waste
from sds_core.observer.mvds.totals import GroupTotals

_GROUPS = ("Deliveries", "Waste", "Traffic")
"""Headings of the page, in order."""

_CHARTS = (
    ChartShape(
        key="latency",
        title="Delivery time",
        note="From the first record with an id to the receiver's acknowledgement.",
        scale=Scale.SECONDS,
        limit=Limit("deadline", "ack_deadline_ms"),
    ),
    ChartShape(
        key="objectives",
        title="Objectives",
        note="Receivers that acknowledged in time, of those that were heard.",
        scale=Scale.PERCENT,
    ),
    ChartShape(
        key="traffic",
        title="Traffic",
        note="Distinct messages, and receivers that acknowledged them.",
        scale=Scale.COUNT,
    ),
    ChartShape(
        key="records", title="Records", note="Records by type.", scale=Scale.PARTS
    ),
    ChartShape(
        key="waste",
        title="Waste",
        note="Records that told the receiver nothing new.",
        scale=Scale.COUNT,
    ),
)

GROUP_FIGURES = FigureTable(
    GroupTotals,
    Names(label="channel", one="group", many="groups"),
    [*traffic.ENTRIES, *deliveries.ENTRIES, *waste.ENTRIES, *health.ENTRIES],
    groups=_GROUPS,
    charts=_CHARTS,
)
"""All figures of a group, in the order in which their metrics are exported."""
