"""Acknowledgement of messages: docs/figures.md, 4."""

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

_ACKNOWLEDGED = counter(
    "sds_messages_acknowledged_total",
    "Acknowledged messages, by kind of evidence.",
    "evidence",
)
_ACK_LATENCY = histogram(
    "sds_ack_latency_seconds",
    "Time from a message's first copy to its acknowledgement.",
    "evidence",
)

ENTRIES = under(
    "Acknowledgement",
    Figure(
        "acknowledged_definite",
        "Messages that another participant's causal history names.",
        report=("acknowledged.definite",),
        series=(_ACKNOWLEDGED.of("definite"),),
        heading="Definite",
    ),
    Figure(
        "acknowledged_probable",
        "Messages acknowledged by bloom filters of others before a causal history.",
        report=("acknowledged.probable",),
        series=(_ACKNOWLEDGED.of("probable"),),
        heading="Probable at first",
    ),
    Figure(
        "definite_latency",
        "Time from a message's first copy to its definite acknowledgement.",
        Unit.DURATIONS,
        report=("ack_latency_ms.definite",),
        detail="ack_latencies",
        series=(_ACK_LATENCY.of("definite"),),
        key="ack",
        percentiles=(
            Percentile(50, column=2),
            Percentile(95, column=3),
            Percentile(99),
        ),
        line=Line("latency"),
        growth_key="ack_latency_ms",
    ),
    Figure(
        "probable_latency",
        "Time from a message's first copy to its probable acknowledgement.",
        Unit.DURATIONS,
        report=("ack_latency_ms.probable",),
        series=(_ACK_LATENCY.of("probable"),),
    ),
    Share(
        key="in_time",
        help="Messages acknowledged by their deadline, of those that others could have "
        "acknowledged.",
        part=("acknowledged_in_time",),
        rest=("unacknowledged",),
        heading="In time",
        column=4,
        line=Line("objectives", "in time"),
        objective=Objective("Acknowledged in time", "acknowledgement_objective"),
    ),
    Figure(
        "acknowledged_in_time",
        "Messages acknowledged at or before their deadline.",
        report=("acknowledged_in_time",),
        series=(counter("sds_messages_acknowledged_in_time_total").of(),),
    ),
    Figure(
        "unacknowledged",
        "Messages that were not acknowledged by their deadline, although another "
        "participant could have acknowledged them.",
        report=("unacknowledged",),
        series=(counter("sds_messages_unacknowledged_total").of(),),
        heading="Unacknowl\N{SOFT HYPHEN}edged",
        grave=True,
        column=5,
    ),
    Figure(
        "unwitnessed",
        "Messages that were not acknowledged by their deadline, because no other "
        "participant could have acknowledged them; this is not a fault.",
        report=("unwitnessed",),
        series=(counter("sds_messages_unwitnessed_total").of(),),
        heading="Nobody else spoke",
    ),
    Figure(
        "in_flight",
        "Messages that await acknowledgement and whose deadline has not passed.",
        report=("in_flight",),
        series=(gauge("sds_messages_in_flight").of(),),
        heading="In flight",
    ),
    Figure(
        "oldest_in_flight_ms",
        "Event time of the oldest message in flight.",
        Unit.TIME,
        series=(gauge("sds_oldest_unacknowledged_timestamp_seconds").of(),),
    ),
)
