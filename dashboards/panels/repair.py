"""Dashboard *Repair*: are repair requests answered, how fast, and at what cost?"""

from __future__ import annotations

from grafana_foundation_sdk.models import dashboard as models

from dashboards import REPAIR, Links
from dashboards.panels import colours, queries
from dashboards.panels.base import Panel
from dashboards.panels.charts import figure, heat, lines, ratio, ratios
from dashboards.panels.frame import assemble, in_lines, some_channels
from dashboards.panels.queries import CHANNELS
from dashboards.panels.series import Query, per_second
from dashboards.panels.tables import Column, channel_rows
from dashboards.thresholds import EXPIRED_SHARE, REDUNDANT_SHARE


def repair(links: Links) -> models.Dashboard:
    """Return the dashboard."""
    return assemble(
        links,
        REPAIR,
        "SDS / Repair",
        "Do participants answer repair requests, how fast, and at what cost?",
        {
            "": _FIGURES,
            "Requests and answers": _ANSWERS,
            "Cost": in_lines(_COST, 3),
            "By channel": [_CHANNELS],
        },
        variables=(some_channels(),),
    )


_REQUESTS = "sds_repair_requests_total"
_EPISODES = "sds_repair_episodes_total"
_RESPONSES = "sds_repair_responses_total"


def _redundant(*by: str) -> str:
    return queries.share_in_range(
        _RESPONSES, _RESPONSES, CHANNELS, *by, redundant="true"
    )


def _at_wrong_time(step: str) -> str:
    timing = "sds_repair_timing_total"
    return queries.share(
        queries.rate(timing, CHANNELS, step=step, conformant="false"),
        queries.rate(timing, CHANNELS, step=step),
    )


_FIGURES: list[Panel] = [
    figure(
        "Requests",
        "Number of repair requests in the chosen range. Each message that a frame "
        "requests counts as one request. If the network loses nothing, many requests "
        "mean that clients are faulty.",
        queries.counted(_REQUESTS, CHANNELS),
    ),
    ratio(
        "For received",
        "Share of useless requests in the chosen range. A request is useless if the "
        "requester's own filter already contains the message. In @waku/sds 0.0.8, one "
        "request in five is useless.",
        queries.share_in_range(
            "sds_repair_requests_for_received_total", _REQUESTS, CHANNELS
        ),
        absent="no requests",
    ),
    ratio(
        "Expired",
        "Share of repair episodes that ended without an answer, in the chosen range. "
        "An episode begins with the first request for a message. Red: the alert's "
        "limit is reached.",
        queries.share_in_range(_EPISODES, _EPISODES, CHANNELS, outcome="expired"),
        steps=colours.up_to(EXPIRED_SHARE),
        absent="no repair",
    ),
    ratio(
        "Redundant",
        "Share of redundant responses in the chosen range. A response is redundant if "
        "it comes after another response to the same request. Usually, about 40 % of "
        "the responses are redundant. Red: the alert's limit is reached.",
        _redundant(),
        steps=colours.up_to(REDUNDANT_SHARE),
        absent="no repair",
    ),
    figure(
        "Response time",
        "Time within which 95 % of the answers in the chosen range came, counted from "
        "the first request for the message. Times above ten minutes appear as ten "
        "minutes.",
        queries.quantile_in_range(0.95, "sds_repair_response_seconds", CHANNELS),
        unit="s",
        absent="no repair",
    ),
    ratio(
        "Bytes for repair",
        "Bytes for repair as a share of the bytes of all frames, in the chosen range. "
        "Bytes for repair are the bytes of requests, and of frames that respond to "
        "requests. If the share grows although no messages are lost, the repair "
        "traffic is useless.",
        queries.share_in_range(
            "sds_repair_bytes_total", "sds_frame_bytes_total", CHANNELS
        ),
        absent="no traffic",
    ),
]

_ANSWERS: list[Panel] = [
    lines(
        "Episodes by outcome",
        "Ended repair episodes per second, by outcome. Answered: a participant "
        "broadcast the message within the repair window. Expired: no participant "
        "answered within the repair window.",
        per_second(_EPISODES, CHANNELS, "{{outcome}}"),
        unit="ops",
        stacked=True,
    ),
    heat(
        "Response time over time",
        "Number of answered episodes by response time. The response time is the time "
        "from the first request to the answer. Answers after 5 to 6 s mostly come "
        "from the message's sender. While the sender is offline, other participants "
        "answer later.",
        "sds_repair_response_seconds",
        CHANNELS,
    ),
    lines(
        "Requests over time",
        "Repair requests per second. The line 'for received' shows useless requests: "
        "the requester already has the message.",
        per_second(_REQUESTS, CHANNELS, "requests"),
        per_second("sds_repair_requests_for_received_total", CHANNELS, "for received"),
        unit="reqps",
    ),
    ratios(
        "Timing that breaks the rules",
        "Share of checked requests and responses that came at a wrong time. In SDS-R, "
        "hashes determine the times at which participants may request and respond. "
        "The monitor checks only frames of the dialect 'spec'.",
        Query(_at_wrong_time("request"), "early"),
        Query(_at_wrong_time("response"), "unexplained"),
    ),
]

_COST: list[Panel] = [
    lines(
        "Responses",
        "Responses to repair requests per second. First responses are useful. "
        "Redundant responses, which come after the first response to a request, are "
        "overhead.",
        per_second(_RESPONSES, CHANNELS, "first", redundant="false"),
        per_second(_RESPONSES, CHANNELS, "redundant", redundant="true"),
        unit="ops",
        stacked=True,
    ),
    lines(
        "Bytes by direction",
        "Bytes per second of repair requests, and of frames that respond to repair "
        "requests.",
        per_second("sds_repair_bytes_total", CHANNELS, "{{direction}}"),
        unit="Bps",
        stacked=True,
    ),
    lines(
        "Rebroadcasts by cause",
        "Rebroadcasts per second, by cause. Repair: a participant answered a repair "
        "request. Retry: the sender repeated its message. If retries occur although "
        "no messages are lost, senders do not receive acknowledgements.",
        per_second("sds_rebroadcasts_total", CHANNELS, "{{cause}}"),
        unit="pps",
    ),
]

_CHANNELS = channel_rows(
    "Channels by expired repair",
    "Number of expired repair episodes of each channel in the chosen range. The "
    "channel with the most expired episodes comes first. The name links to the "
    "channel's dashboard. The id links to the channel's status page.",
    Column(
        "Expired",
        queries.named(
            queries.counted(_EPISODES, CHANNELS, "channel", outcome="expired"),
            CHANNELS,
        ),
        steps=colours.ANY_IS_SUSPECT,
    ),
    Column(
        "Answered",
        queries.counted(_EPISODES, CHANNELS, "channel", outcome="answered"),
    ),
    Column(
        "Requests",
        queries.counted(_REQUESTS, CHANNELS, "channel"),
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
