"""Panels of one channel: acknowledgement and delivery of its messages."""

from __future__ import annotations

from dashboards.panels import colours, queries
from dashboards.panels.base import Panel, Query
from dashboards.panels.charts import heat, lines
from dashboards.panels.queries import CHANNEL
from dashboards.panels.series import per_second, quantiles
from sds_core.observer.settings import DEFAULTS

_DEADLINE_S = DEFAULTS.ack_deadline_ms / 1000


def acknowledgement() -> list[Panel]:
    """Return panels of acknowledged messages and the time until acknowledgement."""
    return [
        heat(
            "Acknowledgement latency",
            "From a message's first copy to the first frame of another "
            "participant that names it (definite evidence): how many messages "
            "took how long. A cloud that rises means slower feedback; what "
            f"lies above {_DEADLINE_S:g} s is too late.",
            queries.bucket_counts(
                "sds_ack_latency_seconds", CHANNEL, evidence="definite"
            ),
            unit="s",
        ),
        lines(
            "Acknowledgement latency, quantiles",
            "Half, 95 % and 99 % of the messages were acknowledged within this time: "
            "definite by a causal history that names them, probable by filters that "
            "hold them. The dashed line is the deadline. The histogram has no values "
            "above ten minutes.",
            *quantiles("sds_ack_latency_seconds", CHANNEL, evidence="definite"),
            *quantiles("sds_ack_latency_seconds", CHANNEL, evidence="probable"),
            unit="s",
            limits=colours.line_at(_DEADLINE_S),
        ),
        lines(
            "Messages by end",
            "Messages per second whose fate was settled. Unacknowledged: nobody "
            "acknowledged them although others wrote. Unwitnessed: nobody else wrote, "
            "which is no fault.",
            per_second("sds_messages_acknowledged_in_time_total", CHANNEL, "in time"),
            per_second("sds_messages_unacknowledged_total", CHANNEL, "unacknowledged"),
            per_second("sds_messages_unwitnessed_total", CHANNEL, "unwitnessed"),
            unit="mps",
            stacked=True,
            width=8,
        ),
        lines(
            "Acknowledged in time",
            "Share of messages acknowledged in time, of those that somebody could "
            "have acknowledged, and this channel's objective. Below it the error "
            "budget is being spent too fast.",
            Query(queries.acknowledged(CHANNEL, window="1h"), "last hour"),
            Query(queries.acknowledged(CHANNEL), "now"),
            Query(queries.objective("acknowledgement", CHANNEL), "objective"),
            unit="percentunit",
            width=8,
        ),
        lines(
            "Acknowledgements by evidence",
            "Messages per second and what acknowledged them. A message that was "
            "probable first and definite later counts in both. Much probable and "
            "little definite: histories may be too short for the traffic.",
            per_second(
                "sds_messages_acknowledged_total", CHANNEL, "{{evidence}}", "evidence"
            ),
            unit="mps",
            width=8,
        ),
    ]


def delivery() -> list[Panel]:
    """Return panels of deliveries and the time until delivery."""
    return [
        lines(
            "Deliveries by outcome",
            "Pairs of a message and a participant per second. Recovered: it lacked "
            "the message at first. Lost: it still lacked it after five minutes. "
            "Retracted: it got it after that.",
            per_second("sds_deliveries_total", CHANNEL, "{{outcome}}", "outcome"),
            per_second("sds_delivery_losses_retracted_total", CHANNEL, "retracted"),
            unit="ops",
            width=8,
        ),
        lines(
            "Eventual delivery",
            "Share of deliveries that were not lost in the end, and this channel's "
            "objective. Below it the error budget is being spent too fast. Can pass "
            "100 % when an older loss is retracted.",
            Query(queries.delivered(CHANNEL, window="1h"), "last hour"),
            Query(queries.delivered(CHANNEL), "now"),
            Query(queries.objective("delivery", CHANNEL), "objective"),
            unit="percentunit",
            width=8,
        ),
        lines(
            "Delivery recovery time",
            "From the first frame that showed a participant lacking a message to the "
            "first that showed it had it. Long times mean that repair or Store "
            "queries work slowly. Empty if nobody lacked anything.",
            *quantiles("sds_delivery_recovery_seconds", CHANNEL),
            unit="s",
            width=8,
        ),
    ]
