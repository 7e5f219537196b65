"""Panels of messages that are sent in segments."""

from __future__ import annotations

from dashboards.panels import queries
from dashboards.panels.base import Panel, Query
from dashboards.panels.charts import lines
from dashboards.panels.queries import CHANNELS, select
from dashboards.panels.series import per_second, per_step


def segments() -> list[Panel]:
    """Return panels of segmented messages and their segments."""
    return [
        lines(
            "Segmented messages",
            "Per step of the graph: messages that became complete, and those of which "
            "too few segments came in time. Incomplete ones are lost to their "
            "application, although each segment is a message of its own.",
            per_step(
                "sds_segmented_messages_ended_total",
                CHANNELS,
                "{{outcome}}",
                "outcome",
            ),
            bars=True,
            width=8,
        ),
        lines(
            "Begun and not complete",
            "Segmented messages begun per step of the graph, and those whose segments "
            "are awaited now. A number that stays high is large messages, or segments "
            "that are lost.",
            per_step("sds_segmented_messages_total", CHANNELS, "begun"),
            Query(
                queries.total(select("sds_segmented_messages_open", CHANNELS)), "open"
            ),
            width=8,
        ),
        lines(
            "Segments per message",
            "Segments by segmented messages that began, averaged. Each segment costs "
            "one message of the rate-limit budget.",
            Query(
                queries.share(
                    queries.rate(select("sds_segments_total", CHANNELS)),
                    queries.rate(select("sds_segmented_messages_total", CHANNELS)),
                ),
                "segments",
            ),
            width=8,
        ),
        lines(
            "Segments by kind",
            "Segments per second. Parity segments replace lost data segments; beside "
            "repair they are mostly cost.",
            per_second("sds_segments_total", CHANNELS, "{{kind}}", "kind"),
            unit="pps",
            stacked=True,
        ),
        lines(
            "Contradicting segments",
            "Segments per step of the graph that contradict earlier ones of their "
            "message in its length or in the number of segments, or that are a whole "
            "payload with another hash. Above 0, a client is broken or somebody sends "
            "false segments.",
            per_step("sds_segments_disagreeing_total", CHANNELS, "segments"),
            bars=True,
        ),
    ]
