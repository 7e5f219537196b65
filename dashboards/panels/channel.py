"""Dashboard *Channel*: the reasons for the verdict on one channel."""

from __future__ import annotations

from grafana_foundation_sdk.models import dashboard as models

from dashboards import CHANNEL as UID
from dashboards import Links
from dashboards.panels import colours, queries
from dashboards.panels.base import (
    Link,
    Panel,
    Query,
    now,
    per_second,
    per_step,
    quantiles,
    sums,
)
from dashboards.panels.charts import figure, heat, lines, moment, states
from dashboards.panels.frame import assemble, channel_page, in_lines, one_channel
from dashboards.panels.queries import CHANNEL, select
from dashboards.thresholds import REDUNDANT_SHARE, SATURATED_RATIO
from sds_core.observer.settings import DEFAULTS


def channel(links: Links) -> models.Dashboard:
    """Return the dashboard."""
    return assemble(
        links,
        UID,
        "SDS / Channel",
        "What happens in one channel: acknowledgement, delivery, losses, repair, "
        "traffic.",
        {
            "": [*_now(), _verdict(), _excused()],
            "Acknowledgement": in_lines(_acknowledgement(), 2, 3),
            "Delivery": in_lines(_delivery(), 3),
            "Missing dependencies": in_lines(_gaps(), 3),
            "Repair": in_lines(_repair(), 4),
            "Traffic and filters": in_lines(_traffic(), 3, 3),
        },
        variables=(one_channel(),),
        pages=(
            Link("This channel's page", "/channel?id=${channel:percentencode}"),
            Link("Its incidents", "/incidents?channel=${channel:percentencode}"),
        ),
    )


def _now() -> list[Panel]:
    since = queries.greatest("sds_verdict_since_timestamp_seconds", CHANNEL)
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
        moment(
            "Verdict since",
            "Event time at which this verdict began. In a replay or while catching up "
            "that is long ago.",
            since,
        ),
        figure(
            "Missing now",
            "Messages that others refer to and that no tap has seen yet. Each is "
            "filled or found lost within five minutes; a number that stays is bad.",
            queries.total("sds_dependencies_missing", CHANNEL),
            steps=colours.ANY_IS_SUSPECT,
        ),
        figure(
            "In flight",
            "Messages within their two minutes and not yet acknowledged, and when the "
            "oldest of them was sent. Normal while people write.",
            queries.total("sds_messages_in_flight", CHANNEL),
        ),
        moment(
            "Oldest in flight",
            "When the oldest message that waits for its acknowledgement was first "
            "seen. Nothing waits if it is empty.",
            f"min({oldest})",
            absent="none",
        ),
        moment(
            "Muted until",
            "Until when alerts on this channel are silent, by the channel table.",
            f"max({muted} > time())",
            absent="not muted",
        ),
    ]


def _excused() -> Panel:
    def number(metric: str) -> str:
        return queries.or_else(queries.total(metric, CHANNEL))

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
        "The verdict at each time. Blind means that the taps missed records: what "
        "other panels show for that time may be the tap's fault.",
        Query(queries.named(queries.trouble(CHANNEL), CHANNEL), "{{name}}"),
        colours.verdict_mappings(),
    )


_DEADLINE_S = DEFAULTS.ack_deadline_ms / 1000


def _acknowledgement() -> list[Panel]:
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
            "Messages per second whose outcome was decided. Unacknowledged: no "
            "participant acknowledged them although others wrote. Unwitnessed: no "
            "other participant wrote, which is no fault.",
            per_second("sds_messages_acknowledged_in_time_total", CHANNEL, "in time"),
            per_second("sds_messages_unacknowledged_total", CHANNEL, "unacknowledged"),
            per_second("sds_messages_unwitnessed_total", CHANNEL, "unwitnessed"),
            unit="mps",
            stacked=True,
        ),
        lines(
            "Acknowledged in time",
            "Share of messages acknowledged in time, of those that others could have "
            "acknowledged, and this channel's SLO. Below it the error budget is being "
            "spent too fast.",
            Query(queries.acknowledged(CHANNEL, window="1h"), "last hour"),
            Query(queries.acknowledged(CHANNEL), "now"),
            Query(queries.objective("acknowledgement", CHANNEL), "objective"),
            unit="percentunit",
        ),
        lines(
            "Acknowledgements by evidence",
            "Messages per second and what acknowledged them. A message that was "
            "probable first and definite later counts in both. Much probable and "
            "little definite: histories may be too short for the traffic.",
            per_second("sds_messages_acknowledged_total", CHANNEL, "{{evidence}}"),
            unit="mps",
        ),
    ]


def _delivery() -> list[Panel]:
    return [
        lines(
            "Deliveries by outcome",
            "Pairs of a message and a participant per second. Recovered: it lacked "
            "the message at first. Lost: it still lacked it after five minutes. "
            "Retracted: it received the message later.",
            per_second("sds_deliveries_total", CHANNEL, "{{outcome}}"),
            per_second("sds_delivery_losses_retracted_total", CHANNEL, "retracted"),
            unit="ops",
        ),
        lines(
            "Eventual delivery",
            "Share of deliveries that were not lost in the end, and this channel's "
            "SLO. Below it the error budget is being spent too fast. Can pass 100 % "
            "when an older loss is retracted.",
            Query(queries.delivered(CHANNEL, window="1h"), "last hour"),
            Query(queries.delivered(CHANNEL), "now"),
            Query(queries.objective("delivery", CHANNEL), "objective"),
            unit="percentunit",
        ),
        lines(
            "Delivery recovery time",
            "From the first frame that showed a participant lacking a message to the "
            "first that showed it had it. Long times mean that repair or Store "
            "queries work slowly. Empty if no participant lacked anything.",
            *quantiles("sds_delivery_recovery_seconds", CHANNEL),
            unit="s",
        ),
    ]


def _gaps() -> list[Panel]:
    return [
        lines(
            "Gaps by outcome",
            "Messages that others referred to before any tap had seen them, per step "
            "of the graph. Late and repaired: the message arrived after all. Lost: "
            "only its sender has shown it. tap_gap: others had it and only the tap "
            "missed it, so check the tap. Losses are found five minutes after the "
            "fact.",
            per_step("sds_dependency_gaps_closed_total", CHANNEL, "{{outcome}}"),
            per_step("sds_dependency_losses_retracted_total", CHANNEL, "retracted"),
            bars=True,
        ),
        lines(
            "Gaps opened and open",
            "Gaps that opened per step of the graph, and those open now. Open ones "
            "that pile up mean that messages go missing faster than they are repaired.",
            per_step("sds_dependency_gaps_opened_total", CHANNEL, "opened"),
            sums("sds_dependencies_missing", CHANNEL, "open now"),
        ),
        lines(
            "Gap duration",
            "How long the gaps that were filled stood open, from the first naming to "
            "the first copy. Empty if none was sent.",
            *quantiles("sds_dependency_gap_seconds", CHANNEL),
            unit="s",
        ),
    ]


def _repair() -> list[Panel]:
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
        ),
        lines(
            "Repair episodes",
            "Repair episodes per second by outcome. Expired: no participant answered, "
            "because none has the message or those with it are offline.",
            per_second("sds_repair_episodes_total", CHANNEL, "{{outcome}}"),
            unit="ops",
            stacked=True,
        ),
        lines(
            "Redundant responses",
            "Share of responses after the first. Two in five is usual; much more "
            "means that responders do not hear each other.",
            Query(
                queries.share(
                    queries.rate(
                        "sds_repair_responses_total", CHANNEL, redundant="true"
                    ),
                    queries.rate("sds_repair_responses_total", CHANNEL),
                ),
                "redundant",
            ),
            unit="percentunit",
            limits=colours.line_at(REDUNDANT_SHARE),
        ),
        lines(
            "Repair response time",
            "From a message's first request to its answer. 5 to 6 s in the median "
            "while the sender is there; up to two minutes otherwise.",
            *quantiles("sds_repair_response_seconds", CHANNEL),
            unit="s",
        ),
    ]


def _traffic() -> list[Panel]:
    return [
        lines(
            "Frames",
            "Frames per second by kind and dialect, rebroadcasts included, replicas "
            "not. No sync frames at all: the channel has no heartbeat, and a lost "
            "last message may never be noticed.",
            per_second("sds_frames_total", CHANNEL, "{{kind}} {{dialect}}"),
            unit="pps",
        ),
        lines(
            "Copies",
            "Per second: messages sent again after a repair request or as a retry, "
            "and replicas, further copies of one broadcast, which come from several "
            "taps and are harmless.",
            per_second("sds_rebroadcasts_total", CHANNEL, "{{cause}}"),
            per_second("sds_replicas_total", CHANNEL, "replicas"),
            unit="pps",
        ),
        lines(
            "Bytes by part",
            "Bytes per second of SDS frames by part. A channel whose bytes are mostly "
            "history, bloom or repair pays more for reliability than for content.",
            per_second("sds_frame_bytes_total", CHANNEL, "{{part}}"),
            unit="Bps",
            stacked=True,
        ),
        lines(
            "Participants",
            "Distinct senders within the last ten minutes. Participants that never "
            "speak are not counted.",
            now("sds_channel_participants", CHANNEL, "participants"),
        ),
        lines(
            "Bloom filter, false positives",
            "False-positive rate of the fullest filter in use. Above the "
            f"dashed line ({SATURATED_RATIO:.0%}) participants believe too often "
            "that others have a message.",
            now("sds_bloom_false_positive_ratio", CHANNEL, "fullest filter"),
            unit="percentunit",
            limits=colours.line_at(SATURATED_RATIO),
        ),
        lines(
            "Trouble with ids and memory",
            "Per step of the graph: frames that reuse a known message id for another "
            "message, for example if ids are hashes of the text alone. Entries that "
            "left the monitor's memory early: the channel is too busy for it, and its "
            "figures are then too low. What the limits on the cost of a frame "
            "dropped: a participant sends hostile frames.",
            per_step("sds_message_id_collisions_total", CHANNEL, "id collisions"),
            per_step("sds_remembered_evicted_total", CHANNEL, "evicted"),
            per_step("sds_left_out_total", CHANNEL, "left out: {{reason}}"),
            bars=True,
        ),
    ]
