"""Dashboard *Channel*: the reasons for the verdict on one channel."""

from __future__ import annotations

from grafana_foundation_sdk.models import dashboard as models

from dashboards.links import CHANNEL as UID
from dashboards.links import Links
from dashboards.panels import colours, queries
from dashboards.panels.base import Link, Panel, Query
from dashboards.panels.channel_losses import gaps, repair
from dashboards.panels.channel_messages import acknowledgement, delivery
from dashboards.panels.channel_traffic import traffic
from dashboards.panels.charts import figure, lines, states
from dashboards.panels.frame import (
    Frame,
    Section,
    assemble,
    channel_page,
    one_channel,
)
from dashboards.panels.queries import CHANNEL, select

_FRAME = Frame(
    UID,
    "SDS / Channel",
    "What happens in one channel: acknowledgement, delivery, losses, repair, traffic.",
    variables=(one_channel(),),
    pages=(
        Link("This channel's page", "/channel?id=${channel:percentencode}"),
        Link("Its incidents", "/incidents?channel=${channel:percentencode}"),
    ),
)


def channel(links: Links) -> models.Dashboard:
    """Return the dashboard."""
    return assemble(
        _FRAME,
        links,
        [
            Section("", [*_now(), _verdict(), _excused()]),
            Section("Acknowledgement", acknowledgement()),
            Section("Delivery", delivery()),
            Section("Missing dependencies", gaps()),
            Section("Repair", repair()),
            Section("Traffic and filters", traffic()),
        ],
    )


def _now() -> list[Panel]:
    since = queries.greatest(select("sds_verdict_since_timestamp_seconds", CHANNEL))
    oldest = select("sds_oldest_unacknowledged_timestamp_seconds", CHANNEL)
    muted = select("sds_channel_muted_until_timestamp_seconds", CHANNEL)
    return [
        figure(
            "Verdict now",
            "The verdict on the last ten minutes. A click leads to the channel's "
            "status page, which has the reason.",
            f"max({queries.trouble(CHANNEL)})",
            mappings=colours.verdict_mappings(),
            link=channel_page("channel"),
            absent="no verdict",
        ),
        figure(
            "Verdict since",
            "Event time at which this verdict began. In a replay or while catching up "
            "that is long ago.",
            f"1000 * {since}",
            unit="dateTimeFromNow",
        ),
        figure(
            "Missing now",
            "Messages that others refer to and that no tap has seen yet. Each is "
            "filled or found lost within five minutes; a number that stays is bad.",
            queries.total(select("sds_dependencies_missing", CHANNEL)),
            steps=colours.ANY_IS_SUSPECT,
        ),
        figure(
            "In flight",
            "Messages within their two minutes and not yet acknowledged, and when the "
            "oldest of them was sent. Normal while people write.",
            queries.total(select("sds_messages_in_flight", CHANNEL)),
        ),
        figure(
            "Oldest in flight",
            "When the oldest message that waits for its acknowledgement was first "
            "seen. Nothing waits if it is empty.",
            f"1000 * min({oldest})",
            unit="dateTimeFromNow",
            absent="none",
        ),
        figure(
            "Muted until",
            "Until when alerts on this channel are silent, by the channel table.",
            f"1000 * max({muted} > time())",
            unit="dateTimeFromNow",
            absent="not muted",
        ),
    ]


def _excused() -> Panel:
    def number(metric: str) -> str:
        return queries.or_else(queries.total(select(metric, CHANNEL)))

    return lines(
        "Findings that do not count",
        "Findings in the verdict's window that the taps, or the mirror, may have "
        "caused, and those of the same kinds that count. While alerts are held back, "
        "the third line is above 0; the status page says until when.",
        Query(number("sds_excused_findings"), "do not count"),
        Query(number("sds_unexcused_findings"), "count"),
        Query(number("sds_alert_held_back"), "held back"),
        width=24,
    )


def _verdict() -> Panel:
    return states(
        "Verdict",
        "Which verdict held when. Blind means that the taps missed records: what "
        "other panels show for that time may be the tap's fault.",
        Query(queries.named(queries.trouble(CHANNEL), CHANNEL), "{{name}}"),
        colours.verdict_mappings(),
    )
