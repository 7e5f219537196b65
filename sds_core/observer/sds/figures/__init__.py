"""The table of all figures of an SDS channel; see ``docs/figures.md``.

Each module of this package has the figures of one or two sections of docs/figures.md.
To add a figure, add a field to `ChannelTotals` and an entry to a module. Metrics,
report, pages, charts, history and the tables of the documentation are generated from
the entry.
"""

from __future__ import annotations

from sds_core.observer.figure_table import FigureTable, Names
from sds_core.observer.figures import ChartShape, Limit, Scale
from sds_core.observer.sds.figures import (
    acknowledgement,
    capacity,
    deliveries,
    gaps,
    health,
    repair,
    segments,
    traffic,
)
from sds_core.observer.sds.totals import ChannelTotals

_GROUPS = (
    "Acknowledgement",
    "Deliveries",
    "Missing dependencies",
    "Repair",
    "Traffic",
    "Rate-limit budget",
    "Segments",
)
"""Headings on the page of a channel, in order."""

_CHARTS = (
    ChartShape(
        key="latency",
        title="Acknowledgement latency",
        note="Definite acknowledgements.",
        scale=Scale.SECONDS,
        limit=Limit("deadline", "ack_deadline_ms"),
    ),
    ChartShape(
        key="objectives",
        title="SLOs",
        note="Messages acknowledged in time, and deliveries that reached their "
        "participant.",
        scale=Scale.PERCENT,
    ),
    ChartShape(
        key="gaps",
        title="Missing dependencies",
        note="Those that ended, by outcome.",
        scale=Scale.PARTS,
    ),
    ChartShape(
        key="repair",
        title="Repair",
        note="Episodes that were answered or expired, and responses after the first.",
        scale=Scale.COUNT,
    ),
    ChartShape(
        key="traffic",
        title="Traffic",
        note="Distinct messages, and frames by kind with rebroadcasts.",
        scale=Scale.COUNT,
    ),
)

_REPORT_ORDER = (
    "frames",
    "messages",
    "replicas",
    "rebroadcasts",
    "acknowledged",
    "acknowledged_in_time",
    "unacknowledged",
    "unwitnessed",
    "in_flight",
    "message_id_collisions",
    "deliveries",
    "gaps",
    # `gaps.retracted` comes after `gaps.open` in the report, but before `gaps.open` in
    # `CHANNEL_FIGURES`.
    "gaps.retracted",
    "repair",
    "repair_timing",
    "bytes",
    "repair_bytes",
    "ack_latency_ms",
    "repair_response_ms",
    "gap_ms",
    "delivery_recovery_ms",
    "participants",
    "verdict",
    "reason",
)
"""Paths, or prefixes of paths, in the order that the report of release 0.5.0 has.

The columns of the history have the same order, and users load the history's files by
the positions of columns. Therefore, never change this tuple. A figure whose path is not
covered by the tuple comes last.
"""

CHANNEL_FIGURES = FigureTable(
    ChannelTotals,
    Names("channel", one="channel", many="channels", incidents="incidents"),
    [
        *traffic.ENTRIES,
        *acknowledgement.ENTRIES,
        *deliveries.ENTRIES,
        *gaps.ENTRIES,
        *repair.ENTRIES,
        *capacity.ENTRIES,
        *health.ENTRIES,
        *segments.ENTRIES,
    ],
    groups=_GROUPS,
    charts=_CHARTS,
    report_order=_REPORT_ORDER,
)
"""All figures of a channel. Their order is the order in which metrics are exported."""
