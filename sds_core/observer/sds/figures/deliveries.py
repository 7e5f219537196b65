"""Figures of deliveries of messages to participants: docs/figures.md, 5."""

from __future__ import annotations

from sds_core.observer.figures import (
    Figure,
    Line,
    Objective,
    Percentile,
    Share,
    Unit,
    counter,
    histogram,
    under,
)

_DELIVERED = counter(
    "sds_deliveries_total",
    "Ended deliveries by outcome; a delivery is a pair of a message and an active "
    "participant.",
    "outcome",
)

ENTRIES = under(
    "Deliveries",
    Share(
        key="delivered",
        help="Pairs of a message and a participant that reached it, of all that ended.",
        part=("deliveries_first_pass", "deliveries_recovered"),
        rest=("deliveries_lost",),
        retracted=("deliveries_retracted",),
        heading="Delivered",
        column=6,
        line=Line("objectives", "delivered"),
        objective=Objective("Delivered", "delivery_objective"),
    ),
    Figure(
        "deliveries_first_pass",
        "Deliveries to participants of which no frame had lacked the message.",
        report=("deliveries.first_pass",),
        series=(_DELIVERED.of("first_pass"),),
        heading="First pass",
    ),
    Figure(
        "deliveries_recovered",
        "Deliveries to participants of which a frame had lacked the message.",
        report=("deliveries.recovered",),
        series=(_DELIVERED.of("recovered"),),
        heading="Recovered",
    ),
    Figure(
        "deliveries_lost",
        "Messages that a participant still lacked after the deadline, counted for "
        "each participant.",
        report=("deliveries.lost",),
        series=(_DELIVERED.of("lost"),),
        heading="Not delivered",
        grave=True,
        retracted="deliveries_retracted",
        column=7,
    ),
    Figure(
        "deliveries_retracted",
        "Deliveries that counted as lost until a later frame showed that the "
        "participant has the message.",
        report=("deliveries.retracted",),
        series=(counter("sds_delivery_losses_retracted_total").of(),),
        heading="Came later",
    ),
    Figure(
        "delivery_recovery",
        "Recovery time of a delivery: from the participant's first frame that shows "
        "the message as missing to its first frame that shows the message as received.",
        Unit.DURATIONS,
        report=("delivery_recovery_ms",),
        series=(histogram("sds_delivery_recovery_seconds").of(),),
        heading="Recovery",
        percentiles=(Percentile(95),),
    ),
)
