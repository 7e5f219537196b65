"""Panels of one channel: missing messages and their repair."""

from __future__ import annotations

from dashboards.panels import colours, queries
from dashboards.panels.base import Panel, Query
from dashboards.panels.charts import lines
from dashboards.panels.queries import CHANNEL, select
from dashboards.panels.series import per_second, per_step, quantiles
from dashboards.thresholds import REDUNDANT_SHARE


def gaps() -> list[Panel]:
    """Return panels of messages that others refer to and no tap has seen."""
    return [
        lines(
            "Gaps by outcome",
            "Messages that others referred to before any tap had seen them, per step "
            "of the graph. Late and repaired are healed; lost: nobody but the sender "
            "has shown it; tap_gap: others had it, only the tap missed it, so look at "
            "the tap. Losses are found five minutes after the fact.",
            per_step(
                "sds_dependency_gaps_closed_total", CHANNEL, "{{outcome}}", "outcome"
            ),
            per_step("sds_dependency_losses_retracted_total", CHANNEL, "retracted"),
            bars=True,
            width=8,
        ),
        lines(
            "Gaps opened and open",
            "Gaps that opened per step of the graph, and those open now. Open ones "
            "that pile up mean that messages go missing faster than they are repaired.",
            per_step("sds_dependency_gaps_opened_total", CHANNEL, "opened"),
            Query(
                queries.total(select("sds_dependencies_missing", CHANNEL)), "open now"
            ),
            width=8,
        ),
        lines(
            "Gap duration",
            "How long the gaps that were filled stood open, from the first naming to "
            "the first copy. Empty if there were none.",
            *quantiles("sds_dependency_gap_seconds", CHANNEL),
            unit="s",
            width=8,
        ),
    ]


def repair() -> list[Panel]:
    """Return panels of repair requests and their answers."""
    return [
        lines(
            "Repair requests",
            "Requests per second, and those for a message that the requester's own "
            "filter already holds, which are wasted.",
            per_second("sds_repair_requests_total", CHANNEL, "requests"),
            per_second(
                "sds_repair_requests_for_received_total", CHANNEL, "for received"
            ),
            unit="reqps",
            width=6,
        ),
        lines(
            "Repair episodes",
            "Repair episodes per second by outcome. Expired: nobody answered, because "
            "nobody has the message or those who have it are away.",
            per_second("sds_repair_episodes_total", CHANNEL, "{{outcome}}", "outcome"),
            unit="ops",
            stacked=True,
            width=6,
        ),
        lines(
            "Redundant responses",
            "Share of responses after the first. Two in five is usual; much more "
            "means that responders do not hear each other.",
            Query(
                queries.share(
                    queries.rate(
                        select("sds_repair_responses_total", CHANNEL, redundant="true")
                    ),
                    queries.rate(select("sds_repair_responses_total", CHANNEL)),
                ),
                "redundant",
            ),
            unit="percentunit",
            limits=colours.line_at(REDUNDANT_SHARE),
            width=6,
        ),
        lines(
            "Repair response time",
            "From a message's first request to its answer. 5 to 6 s in the median "
            "while the sender is there; up to two minutes otherwise.",
            *quantiles("sds_repair_response_seconds", CHANNEL),
            unit="s",
            width=6,
        ),
    ]
