"""Dashboard *Repair*: are requests answered, and how much traffic do they cause?"""

from __future__ import annotations

from grafana_foundation_sdk.models import dashboard as models

from dashboards import REPAIR, Links
from dashboards.panels import colours, queries
from dashboards.panels.base import Panel, Query, per_second
from dashboards.panels.charts import figure, heat, lines
from dashboards.panels.frame import assemble, in_lines, some_channels
from dashboards.panels.queries import CHANNELS
from dashboards.panels.tables import Column, channel_rows
from dashboards.thresholds import EXPIRED_SHARE, REDUNDANT_SHARE


def repair(links: Links) -> models.Dashboard:
    """Return the dashboard."""
    return assemble(
        links,
        REPAIR,
        "SDS / Repair",
        "Do repair requests get answers, how fast, and what do they cost?",
        {
            "": _figures(),
            "Requests and answers": _answers(),
            "Cost": in_lines(_cost(), 3),
            "By channel": [_channels()],
        },
        variables=(some_channels(),),
    )


def _figures() -> list[Panel]:
    buckets = queries.in_range("sds_repair_response_seconds_bucket", CHANNELS, "le")
    return [
        figure(
            "Requests",
            "Repair requests in the chosen range, one per frame and requested "
            "message. Many on a network that loses nothing are a fault of the clients.",
            queries.counted("sds_repair_requests_total", CHANNELS),
        ),
        figure(
            "For received",
            "Share of requests for a message that the requester's own filter already "
            "holds, in the chosen range: wasted. js 0.0.8 does so for one request in "
            "five.",
            queries.share(
                queries.in_range("sds_repair_requests_for_received_total", CHANNELS),
                queries.in_range("sds_repair_requests_total", CHANNELS),
            ),
            unit="percentunit",
            absent="no requests",
        ),
        figure(
            "Expired",
            "Share of repair episodes without an answer, in the chosen range. Red "
            "from the limit of the alert on.",
            _expired(),
            unit="percentunit",
            steps=colours.up_to(EXPIRED_SHARE),
            absent="no repair",
        ),
        figure(
            "Redundant",
            "Share of responses after the first, in the chosen range. Two in five is "
            "usual; red from the limit of the alert on.",
            _redundant(),
            unit="percentunit",
            steps=colours.up_to(REDUNDANT_SHARE),
            absent="no repair",
        ),
        figure(
            "Response time",
            "Time from first request to answer within which 95 % of the answered "
            "episodes ended, in the chosen range. The histogram has no values above "
            "ten minutes.",
            f"histogram_quantile(0.95, {buckets})",
            unit="s",
            absent="no repair",
        ),
        figure(
            "Bytes for repair",
            "Share of all bytes of frames that went into repair requests and into "
            "frames that respond to them, in the chosen range. What a lossy network "
            "costs; a share that grows without losses is waste.",
            queries.share(
                queries.in_range("sds_repair_bytes_total", CHANNELS),
                queries.in_range("sds_frame_bytes_total", CHANNELS),
            ),
            unit="percentunit",
            absent="no traffic",
        ),
    ]


def _answers() -> list[Panel]:
    return [
        lines(
            "Episodes by outcome",
            "Repair episodes per second. Answered: the message was broadcast again in "
            "time. Expired: no participant answered within the repair window.",
            per_second("sds_repair_episodes_total", CHANNELS, "{{outcome}}"),
            unit="ops",
            stacked=True,
        ),
        heat(
            "Response time over time",
            "Number of episodes by time from the first request to the answer. A band "
            "at 5 to 6 s is mostly the sender itself; later answers come from others, "
            "when it is offline.",
            queries.bucket_counts("sds_repair_response_seconds", CHANNELS),
            unit="s",
        ),
        lines(
            "Requests over time",
            "Repair requests per second, and those for messages that the requester "
            "already holds.",
            per_second("sds_repair_requests_total", CHANNELS, "requests"),
            per_second(
                "sds_repair_requests_for_received_total", CHANNELS, "for received"
            ),
            unit="reqps",
        ),
        lines(
            "Timing that breaks the rules",
            "Share of requests made, and of responses given, at a time that the "
            "hashes of SDS-R do not allow, of those that could be checked. Such a "
            "client asks or answers at the wrong time. Dialect spec only.",
            Query(_at_wrong_time("request"), "early"),
            Query(_at_wrong_time("response"), "unexplained"),
            unit="percentunit",
        ),
    ]


def _cost() -> list[Panel]:
    return [
        lines(
            "Responses",
            "Responses per second: the first one, and the redundant rest, which are "
            "only cost.",
            per_second(
                "sds_repair_responses_total", CHANNELS, "first", redundant="false"
            ),
            per_second(
                "sds_repair_responses_total", CHANNELS, "redundant", redundant="true"
            ),
            unit="ops",
            stacked=True,
        ),
        lines(
            "Bytes by direction",
            "Bytes per second of repair request fields, and of whole frames that "
            "respond to them.",
            per_second("sds_repair_bytes_total", CHANNELS, "{{direction}}"),
            unit="Bps",
            stacked=True,
        ),
        lines(
            "Rebroadcasts by cause",
            "Messages broadcast again per second: after a repair request, or as a "
            "retry of the sender. Retries without losses mean that senders do not see "
            "their acknowledgements.",
            per_second("sds_rebroadcasts_total", CHANNELS, "{{cause}}"),
            unit="pps",
        ),
    ]


def _channels() -> Panel:
    return channel_rows(
        "Channels by expired repair",
        "In the chosen range, the channel with the most expired episodes first. The "
        "name leads to the channel's dashboard, the id to its status page.",
        Column(
            "Expired",
            queries.named(
                queries.counted(
                    "sds_repair_episodes_total", CHANNELS, "channel", outcome="expired"
                ),
                CHANNELS,
            ),
            steps=colours.ANY_IS_SUSPECT,
        ),
        Column(
            "Answered",
            queries.counted(
                "sds_repair_episodes_total", CHANNELS, "channel", outcome="answered"
            ),
        ),
        Column(
            "Requests",
            queries.counted("sds_repair_requests_total", CHANNELS, "channel"),
        ),
        Column(
            "Redundant",
            _redundant("channel"),
            unit="percentunit",
            steps=colours.up_to(REDUNDANT_SHARE),
        ),
        Column(
            "Missing now",
            queries.total("sds_dependencies_missing", CHANNELS, "channel"),
            steps=colours.ANY_IS_SUSPECT,
        ),
    )


def _expired() -> str:
    episodes = "sds_repair_episodes_total"
    return queries.share(
        queries.in_range(episodes, CHANNELS, outcome="expired"),
        queries.in_range(episodes, CHANNELS),
    )


def _redundant(*by: str) -> str:
    responses = "sds_repair_responses_total"
    return queries.share(
        queries.in_range(responses, CHANNELS, *by, redundant="true"),
        queries.in_range(responses, CHANNELS, *by),
    )


def _at_wrong_time(step: str) -> str:
    timing = "sds_repair_timing_total"
    return queries.share(
        queries.rate(timing, CHANNELS, step=step, conformant="false"),
        queries.rate(timing, CHANNELS, step=step),
    )
