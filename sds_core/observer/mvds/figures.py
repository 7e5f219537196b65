"""The table of all figures of an MVDS group; see ``docs/figures.md``, 14."""

from __future__ import annotations

from sds_core.observer.figure_table import FigureTable, Names
from sds_core.observer.figures import (
    ChartShape,
    Figure,
    Limit,
    Line,
    Objective,
    Percentile,
    Scale,
    Share,
    Unit,
    counter,
    gauge,
    histogram,
    left_out_counter,
    under,
    verdict_entries,
)
from sds_core.observer.mvds.limits import LeftOut
from sds_core.observer.mvds.totals import GroupTotals

_GROUPS = ("Deliveries", "Waste", "Traffic")
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
        title="SLOs",
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

_TYPES = ("ack", "offer", "request", "message")

_PAYLOADS = counter(
    "mvds_payloads_total",
    'Distinct payloads of all groups, counted in group "unknown".',
    "empty",
)
_RECORDS = counter("mvds_records_total", "Records by type.", "type")
_BYTES = counter(
    "mvds_bytes_total",
    'Bytes by type of record; type "other" counts the bytes of payloads outside of '
    'records, and only group "unknown" has this type.',
    "type",
)
_RETRANSMISSIONS = counter(
    "mvds_retransmissions_total",
    "Records with the type, id, sender and receiver of an earlier record.",
    "type",
)

_TRAFFIC = under(
    "Traffic",
    Figure(
        "messages",
        "Distinct message ids in MESSAGEs.",
        report=("messages",),
        series=(counter("mvds_messages_total").of(),),
        group="Deliveries",
        heading="Messages",
        column=1,
        line=Line("traffic", "messages"),
    ),
    Figure(
        "payloads",
        'Distinct payloads of all groups, counted in group "unknown".',
        report=("payloads.all",),
        heading="Payloads",
    ),
    Figure(
        "payloads_filled",
        'Payloads with at least one byte, of all groups, counted in group "unknown".',
        series=(_PAYLOADS.of("false"),),
    ),
    Figure(
        "payloads_empty",
        'Payloads with zero bytes, of all groups, counted in group "unknown".',
        report=("payloads.empty",),
        series=(_PAYLOADS.of("true"),),
        heading="Empty payloads",
    ),
    Share(
        key="empty",
        help="Payloads with zero bytes, of all.",
        part=("payloads_empty",),
        rest=("payloads_filled",),
        group="Waste",
        heading="Empty payloads",
        more_is_better=False,
    ),
    Figure(
        "replicas",
        "Copies, in all groups, of payloads that another tap had already captured; "
        'counted in group "unknown".',
        report=("replicas",),
        series=(counter("mvds_replicas_total").of(),),
        heading="Replicas",
    ),
    *(
        Figure(
            f"records_{one}",
            f"Records of type {one.upper()}.",
            report=(f"records.{one}",),
            series=(_RECORDS.of(one),),
            heading=f"{one.upper()} records",
            line=Line("records", one.upper()),
        )
        for one in _TYPES
    ),
    *(
        Figure(
            f"bytes_{one}",
            f"Bytes of records of type {one.upper()}.",
            Unit.BYTES,
            report=(f"bytes.{one}",),
            series=(_BYTES.of(one),),
        )
        for one in _TYPES
    ),
    Figure(
        "bytes_other",
        "Bytes of payloads that belong to no record; counted only in the group "
        "unknown.",
        Unit.BYTES,
        report=("bytes.other",),
        series=(_BYTES.of("other"),),
    ),
    *(
        Figure(
            f"retransmissions_{one}",
            f"Records of type {one.upper()} that were sent before.",
            report=(f"retransmissions.{one}",),
            series=(_RETRANSMISSIONS.of(one),),
            group="Waste",
            heading=f"{one.upper()} sent again",
        )
        for one in _TYPES
    ),
)

_DELIVERIES = under(
    "Deliveries",
    Figure(
        "deliveries",
        "Pairs of a message and a peer that acknowledged the message to at least one "
        "other peer.",
        report=("deliveries",),
        series=(counter("mvds_deliveries_total").of(),),
        heading="Deliveries",
        column=2,
        line=Line("traffic", "deliveries"),
    ),
    Figure(
        "delivery",
        "Time from the first record about a message to a peer's first acknowledgement "
        "of this message.",
        Unit.DURATIONS,
        report=("delivery_ms",),
        series=(histogram("mvds_delivery_seconds").of(),),
        heading="Delivery",
        percentiles=(Percentile(50, column=3), Percentile(95, column=4)),
        line=Line("latency"),
        growth_key="delivery_ms",
    ),
    Figure(
        "ack_latency",
        "Time from the first MESSAGE that a sender sends to a receiver until this "
        "receiver first acknowledges the message to this sender.",
        Unit.DURATIONS,
        report=("ack_latency_ms",),
        series=(histogram("mvds_ack_latency_seconds").of(),),
        heading="Acknowledgement",
        key="ack",
        percentiles=(Percentile(50), Percentile(95)),
    ),
    Share(
        key="in_time",
        help="Pairs of a message and a receiver acknowledged by their deadline, of "
        "those whose receiver was heard.",
        part=("acknowledged_in_time",),
        rest=("unacknowledged",),
        heading="In time",
        column=5,
        line=Line("objectives", "in time"),
        objective=Objective("Acknowledged in time", "acknowledgement_objective"),
    ),
    Figure(
        "addressed",
        "Pairs of a message and a receiver to which the message was sent.",
        report=("addressed",),
        series=(counter("mvds_addressed_total").of(),),
        heading="Addressed",
    ),
    Figure(
        "acknowledged_in_time",
        "Pairs of a message and a receiver that acknowledged it by the deadline.",
        report=("acknowledged_in_time",),
        series=(counter("mvds_acknowledged_in_time_total").of(),),
    ),
    Figure(
        "unacknowledged",
        "Pairs of a message and a receiver that sent payloads, but did not "
        "acknowledge the message by the deadline.",
        report=("unacknowledged",),
        series=(counter("mvds_unacknowledged_total").of(),),
        heading="Unacknowl\N{SOFT HYPHEN}edged",
        grave=True,
        retracted="resolved",
        column=6,
    ),
    Figure(
        "resolved",
        "Pairs of a message and a receiver that counted as unacknowledged, but whose "
        "acknowledgement came later.",
        report=("resolved",),
        series=(counter("mvds_unacknowledged_resolved_total").of(),),
        heading="Came later",
    ),
    Figure(
        "unwitnessed",
        "Pairs of a message and a receiver that did not acknowledge the message by the "
        "deadline; no fault, because the receiver sent no payload or holds the "
        "message.",
        report=("unwitnessed",),
        series=(counter("mvds_unwitnessed_total").of(),),
        heading="Receiver not heard",
    ),
    Figure(
        "in_flight",
        "Pairs of a message and a receiver that has not acknowledged the message, but "
        "still has time until the deadline.",
        report=("in_flight",),
        series=(gauge("mvds_in_flight").of(),),
        heading="In flight",
    ),
    Figure(
        "sends_messages",
        "MESSAGEs that were sent to a receiver before the receiver first acknowledged "
        "the message.",
        report=("sends.messages",),
        series=(counter("mvds_sends_until_delivery_total").of(),),
    ),
    Figure(
        "sends_deliveries",
        "Deliveries in which at least one MESSAGE was sent to the peer before the peer "
        "acknowledged the message.",
        report=("sends.deliveries",),
        series=(counter("mvds_sent_deliveries_total").of(),),
    ),
)

_WASTE = under(
    "Waste",
    Share(
        key="needless",
        help="Offers to peers that were known to hold the message, of all offers.",
        part=("needless_offers",),
        rest=("offers_of_use",),
        heading="Needless offers",
        more_is_better=False,
    ),
    Share(
        key="duplicate",
        help="MESSAGEs to receivers that had acknowledged the message, of all "
        "MESSAGEs.",
        part=("duplicates",),
        rest=("messages_of_use",),
        heading="Duplicates",
        more_is_better=False,
    ),
    Figure(
        "duplicates",
        "MESSAGEs to receivers that had already acknowledged the message.",
        report=("duplicates",),
        series=(counter("mvds_duplicates_total").of(),),
        line=Line("waste", "duplicates"),
    ),
    Figure(
        "needless_offers",
        "OFFERs to peers that were known to hold the message.",
        report=("needless_offers",),
        series=(counter("mvds_needless_offers_total").of(),),
        line=Line("waste", "needless offers"),
    ),
    Figure(
        "unrequested_offers",
        "OFFERs that the receiver did not answer by the deadline.",
        report=("unrequested_offers",),
        series=(counter("mvds_unrequested_offers_total").of(),),
        heading="Unrequested offers",
    ),
    Figure(
        "unanswered_requests",
        "REQUESTs that no MESSAGE answered by the deadline.",
        report=("unanswered_requests",),
        series=(counter("mvds_unanswered_requests_total").of(),),
        heading="Unanswered requests",
        grave=True,
    ),
)

_HEALTH = (
    *verdict_entries(
        "group",
        "mvds_group_verdict",
        "mvds_verdict_since_timestamp_seconds",
        ", if that is known",
    ),
    Figure(
        "remembered_evicted",
        'Entries of all groups, counted in group "unknown", that the monitor removed '
        "from its memory early because a limit was reached.",
        series=(counter("mvds_remembered_evicted_total").of(),),
    ),
    left_out_counter(
        "mvds_left_out_total",
        "Entries of all groups that were discarded because of a limit, counted in "
        'group "unknown"; only large groups or hostile traffic reach these limits.',
        LeftOut,
    ),
)

GROUP_FIGURES = FigureTable(
    GroupTotals,
    Names(label="channel", one="group", many="groups"),
    [*_TRAFFIC, *_DELIVERIES, *_WASTE, *_HEALTH],
    groups=_GROUPS,
    charts=_CHARTS,
)
"""All figures of a group, in the order in which their metrics are exported."""
