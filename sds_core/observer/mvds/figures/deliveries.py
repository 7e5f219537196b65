"""Deliveries and acknowledgements: docs/figures.md, 14."""

from __future__ import annotations

from sds_core.observer.figures import (
    Figure,
    Line,
    Objective,
    Percentile,
    Share,
    Unit,
    counter,
    gauge,
    histogram,
    under,
)

ENTRIES = under(
    "Deliveries",
    Figure(
        "deliveries",
        "Pairs of a message and a peer that acknowledged it to anybody.",
        report=("deliveries",),
        series=(counter("mvds_deliveries_total").of(),),
        heading="Deliveries",
        column=2,
        line=Line("traffic", "deliveries"),
    ),
    Figure(
        "delivery",
        "Time from the first record with an id to a peer's first acknowledgement.",
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
        "Time from the first MESSAGE to the first acknowledgement back to its sender.",
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
        "Pairs of a message and a receiver to which it was sent.",
        report=("addressed",),
        series=(counter("mvds_addressed_total").of(),),
        heading="Addressed",
    ),
    Figure(
        "acknowledged_in_time",
        "Pairs of a message and a receiver acknowledged at or before the deadline.",
        report=("acknowledged_in_time",),
        series=(counter("mvds_acknowledged_in_time_total").of(),),
    ),
    Figure(
        "unacknowledged",
        "Pairs of a message and a receiver that was heard, but did not acknowledge it.",
        report=("unacknowledged",),
        series=(counter("mvds_unacknowledged_total").of(),),
        heading="Unacknowl\N{SOFT HYPHEN}edged",
        grave=True,
        retracted="resolved",
        column=6,
    ),
    Figure(
        "resolved",
        "Unacknowledged pairs whose acknowledgement came after the deadline.",
        report=("resolved",),
        series=(counter("mvds_unacknowledged_resolved_total").of(),),
        heading="Came later",
    ),
    Figure(
        "unwitnessed",
        "Pairs of a message and a receiver that was not heard, or that holds it: not a "
        "fault.",
        report=("unwitnessed",),
        series=(counter("mvds_unwitnessed_total").of(),),
        heading="Receiver not heard",
    ),
    Figure(
        "in_flight",
        "Pairs of a message and a receiver whose deadline has not passed.",
        report=("in_flight",),
        series=(gauge("mvds_in_flight").of(),),
        heading="In flight",
    ),
    Figure(
        "sends_messages",
        "MESSAGEs to receivers before their first acknowledgement.",
        report=("sends.messages",),
        series=(counter("mvds_sends_until_delivery_total").of(),),
    ),
    Figure(
        "sends_deliveries",
        "Deliveries before which a MESSAGE to the peer was seen.",
        report=("sends.deliveries",),
        series=(counter("mvds_sent_deliveries_total").of(),),
    ),
)
