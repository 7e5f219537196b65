"""Panels of the whole fleet over time."""

from __future__ import annotations

from dashboards.panels import colours, queries
from dashboards.panels.base import Panel, Query
from dashboards.panels.charts import lines
from dashboards.panels.queries import JOB, select
from dashboards.panels.series import per_step
from sds_core.observer.channel_table import DEFAULT_SETTINGS
from sds_core.observer.settings import DEFAULTS


def verdict_counts() -> list[Query]:
    """Return a chart of the number of channels by verdict, the worst first."""
    return [
        Query(queries.total(select("sds_channels", JOB, verdict=verdict.value)), text)
        for verdict, (text, _) in colours.VERDICTS.items()
    ]


def over_time() -> list[Panel]:
    """Return charts of verdicts, failures, and both ratios with their objectives."""
    deadline_s = DEFAULTS.ack_deadline_ms // 1000
    return [
        lines(
            "Verdicts",
            "Channels by verdict over time. A red band is trouble; a purple one means "
            "that the taps were blind, not that the network was bad.",
            *verdict_counts(),
            stacked=True,
        ),
        lines(
            "Lost and unacknowledged",
            "Failures per step of the graph, by kind; lost messages that arrived "
            "later are not subtracted here but displayed as retracted. Losses are "
            "found five minutes after the fact.",
            Query(
                queries.increase(
                    select("sds_dependency_gaps_closed_total", JOB, outcome="lost")
                ),
                "lost",
            ),
            per_step("sds_dependency_losses_retracted_total", JOB, "retracted"),
            Query(
                queries.increase(select("sds_deliveries_total", JOB, outcome="lost")),
                "deliveries lost",
            ),
            per_step("sds_messages_unacknowledged_total", JOB, "unacknowledged"),
            bars=True,
        ),
        lines(
            "Eventual delivery against the default objective",
            "Share of deliveries that were not lost in the end, over the last hour, "
            "and the default objective. Below the line the error budget is being "
            "spent faster than it comes in. It can pass 100 % when a loss from before "
            "that hour is retracted.",
            Query(queries.delivered(JOB, window="1h"), "last hour"),
            Query(queries.delivered(JOB), "now"),
            unit="percentunit",
            limits=colours.line_at(
                DEFAULT_SETTINGS.delivery_objective, colours.NEUTRAL
            ),
        ),
        lines(
            "Acknowledged in time against the default objective",
            f"Share of messages acknowledged within {deadline_s} s, of those "
            "that somebody could have acknowledged, over the last hour, and the "
            "default objective.",
            Query(queries.acknowledged(JOB, window="1h"), "last hour"),
            Query(queries.acknowledged(JOB), "now"),
            unit="percentunit",
            limits=colours.line_at(
                DEFAULT_SETTINGS.acknowledgement_objective, colours.NEUTRAL
            ),
        ),
    ]
