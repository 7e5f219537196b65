"""Dashboard *Channel*: the reasons for the verdict on one channel."""

from __future__ import annotations

from grafana_foundation_sdk.models import dashboard as models

from dashboards import CHANNEL as UID
from dashboards import Links
from dashboards.panels import colours, queries
from dashboards.panels.base import Link, Panel
from dashboards.panels.charts import figure, heat, lines, moment, ratios, states
from dashboards.panels.frame import assemble, channel_page, in_lines, one_channel
from dashboards.panels.queries import CHANNEL, select
from dashboards.panels.series import Query, now, per_second, per_step, quantiles, sums
from dashboards.thresholds import REDUNDANT_SHARE, SATURATED_RATIO
from sds_core.observer.settings import DEFAULTS


def channel(links: Links) -> models.Dashboard:
    """Return the dashboard."""
    return assemble(
        links,
        UID,
        "SDS / Channel",
        "Shows acknowledgement, delivery, losses, repair and traffic of one channel.",
        {
            "": _NOW,
            "Acknowledgement": in_lines(_ACKNOWLEDGEMENT, 2, 3),
            "Delivery": in_lines(_DELIVERY, 3),
            "Missing dependencies": in_lines(_GAPS, 3),
            "Repair": in_lines(_REPAIR, 4),
            "Traffic and filters": in_lines(_TRAFFIC, 3, 3),
        },
        variables=(one_channel(),),
        pages=(
            Link("This channel's page", "/channel?id=${channel:percentencode}"),
            Link("Its incidents", "/incidents?channel=${channel:percentencode}"),
        ),
    )


_OLDEST = select("sds_oldest_unacknowledged_timestamp_seconds", CHANNEL)
_MUTED = select("sds_channel_muted_until_timestamp_seconds", CHANNEL)

_NOW: list[Panel] = [
    figure(
        "Verdict now",
        "The channel's verdict on the last ten minutes. The verdict links to the "
        "channel's status page, which shows the reason.",
        f"max({queries.trouble(CHANNEL)})",
        mappings=colours.VERDICT_MAPPINGS,
        link=channel_page("channel"),
        absent="no verdict",
    ),
    moment(
        "Verdict since",
        "Event time at which the current verdict began. While the monitor replays "
        "records or catches up, this time is long ago.",
        queries.greatest("sds_verdict_since_timestamp_seconds", CHANNEL),
    ),
    figure(
        "Missing now",
        "Number of messages that no tap has seen yet, although frames name these "
        "messages. If a message does not arrive within five minutes, it then counts as "
        "'lost' or 'tap_gap', and no longer as missing. If the number stays above 0, "
        "new messages keep going missing.",
        queries.total("sds_dependencies_missing", CHANNEL),
        steps=colours.ANY_IS_SUSPECT,
    ),
    figure(
        "In flight",
        "Number of unacknowledged messages that are less than two minutes old. A "
        "value above 0 is normal while participants write.",
        queries.total("sds_messages_in_flight", CHANNEL),
    ),
    moment(
        "Oldest in flight",
        "Event time of the oldest unacknowledged message that is less than two minutes "
        "old.",
        f"min({_OLDEST})",
        absent="none",
    ),
    moment(
        "Muted until",
        "Until this time, the channel table mutes alerts on this channel.",
        f"max({_MUTED} > time())",
        absent="not muted",
    ),
    states(
        "Verdict",
        "The channel's verdict over time. Blind: the taps missed records, so losses "
        "in other panels may be the taps' fault.",
        Query(queries.named(queries.trouble(CHANNEL), CHANNEL), "{{name}}"),
        colours.VERDICT_MAPPINGS,
    ),
    lines(
        "Findings that do not count",
        "Number of findings, such as lost messages, in the last ten minutes. If the "
        "taps or the mirror may have caused a finding, the finding does not count. If "
        "all findings of a kind count, the panel omits this kind. While the monitor "
        "holds back an alert because findings do not count, the line 'held back' is "
        "above 0. The status page shows why the monitor holds back the alert.",
        *(
            Query(queries.or_else(queries.total(metric, CHANNEL)), legend)
            for metric, legend in (
                ("sds_excused_findings", "do not count"),
                ("sds_unexcused_findings", "count"),
                ("sds_alert_held_back", "held back"),
            )
        ),
        width=24,
    ),
]

_DEADLINE_S = DEFAULTS.ack_deadline_ms / 1000

_ACKNOWLEDGEMENT: list[Panel] = [
    heat(
        "Acknowledgement latency",
        "Number of messages by acknowledgement latency. The latency is the time from "
        "the first copy to the first frame in which another participant names the "
        f"message. An acknowledgement after more than {_DEADLINE_S:g} s is too late.",
        "sds_ack_latency_seconds",
        CHANNEL,
        evidence="definite",
    ),
    lines(
        "Acknowledgement latency, quantiles",
        "The lines show the times within which 50 %, 95 % and 99 % of the "
        "acknowledgements came. Definite: a causal history names the message. "
        "Probable: filters of other participants contain the message. The dashed line "
        "is the deadline. Times above ten minutes appear as ten minutes.",
        *quantiles("sds_ack_latency_seconds", CHANNEL, evidence="definite"),
        *quantiles("sds_ack_latency_seconds", CHANNEL, evidence="probable"),
        unit="s",
        limits=colours.line_at(_DEADLINE_S),
    ),
    lines(
        "Messages by outcome",
        "Messages per second by outcome. Unacknowledged: other participants sent "
        "frames, but no frame acknowledged the message. Unwitnessed: no other "
        "participant sent a frame that could acknowledge the message, so this is not "
        "a fault.",
        per_second("sds_messages_acknowledged_in_time_total", CHANNEL, "in time"),
        per_second("sds_messages_unacknowledged_total", CHANNEL, "unacknowledged"),
        per_second("sds_messages_unwitnessed_total", CHANNEL, "unwitnessed"),
        unit="mps",
        stacked=True,
    ),
    ratios(
        "Acknowledged in time",
        "Share of messages that were acknowledged in time, and this channel's SLO. "
        "Messages that no other participant could acknowledge do not count. If the "
        "share is below the SLO, the channel uses up its error budget too fast.",
        Query(queries.acknowledged(CHANNEL, window="1h"), "last hour"),
        Query(queries.acknowledged(CHANNEL), "now"),
        Query(queries.objective("acknowledgement", CHANNEL), "SLO"),
    ),
    lines(
        "Acknowledgements by evidence",
        "Acknowledged messages per second, by evidence. If the evidence for a message "
        "is first probable and later definite, both lines count the message. If most "
        "evidence is probable, causal histories may be too short for the channel's "
        "traffic.",
        per_second("sds_messages_acknowledged_total", CHANNEL, "{{evidence}}"),
        unit="mps",
    ),
]

_DELIVERY: list[Panel] = [
    lines(
        "Deliveries by outcome",
        "Number of deliveries that ended, per second. A delivery is a pair of a "
        "message and a participant. Recovered: the participant lacked the message at "
        "first, and then received it. Lost: the participant still lacked the message "
        "after five minutes. Retracted: the delivery counted as lost, but then the "
        "message arrived.",
        per_second("sds_deliveries_total", CHANNEL, "{{outcome}}"),
        per_second("sds_delivery_losses_retracted_total", CHANNEL, "retracted"),
        unit="ops",
    ),
    ratios(
        "Eventual delivery",
        "Share of deliveries that succeeded in the end, and this channel's SLO. If the "
        "share is below the SLO, the channel uses up its error budget too fast. If the "
        "monitor retracts earlier losses, the share can exceed 100 %.",
        Query(queries.delivered(CHANNEL, window="1h"), "last hour"),
        Query(queries.delivered(CHANNEL), "now"),
        Query(queries.objective("delivery", CHANNEL), "SLO"),
    ),
    lines(
        "Delivery recovery time",
        "How long a participant lacked a message, according to the participant's "
        "frames. Long times mean that repair or Store queries are slow. "
        "If no participant lacked a message, the panel is empty.",
        *quantiles("sds_delivery_recovery_seconds", CHANNEL),
        unit="s",
    ),
]

_GAPS: list[Panel] = [
    lines(
        "Gaps by outcome",
        "Number of gaps that ended per graph step. A gap begins when a frame names a "
        "message that no tap has seen. Outcomes 'late', 'repaired' and "
        "'recovered_late': the message arrived. Outcome 'lost': only the sender has "
        "the message. Outcome 'tap_gap': other participants have the message, but the "
        "taps missed it, so check the taps. If a message does not arrive within five "
        "minutes, its gap ends as 'lost' or 'tap_gap'. Retracted: the message arrived "
        "after its gap had ended as 'lost'.",
        per_step("sds_dependency_gaps_closed_total", CHANNEL, "{{outcome}}"),
        per_step("sds_dependency_losses_retracted_total", CHANNEL, "retracted"),
    ),
    lines(
        "Gaps opened and open",
        "Gaps that opened per graph step, and gaps that are open now. A gap is a "
        "message that frames name, but that no tap has seen. If the number of open "
        "gaps rises, messages go missing faster than participants repair them.",
        per_step("sds_dependency_gaps_opened_total", CHANNEL, "opened"),
        sums("sds_dependencies_missing", CHANNEL, "open now"),
    ),
    lines(
        "Gap duration",
        "Duration of gaps whose message arrived. A gap begins when a frame names an "
        "unseen message, and ends with the first copy of this message. If no "
        "missing message arrived, the panel is empty.",
        *quantiles("sds_dependency_gap_seconds", CHANNEL),
        unit="s",
    ),
]

_REPAIR: list[Panel] = [
    lines(
        "Repair requests",
        "Repair requests per second. The line 'for received' shows useless requests: "
        "the requester's own filter already contains the message.",
        per_second("sds_repair_requests_total", CHANNEL, "requests"),
        per_second("sds_repair_requests_for_received_total", CHANNEL, "for received"),
        unit="reqps",
    ),
    lines(
        "Repair episodes",
        "Repair episodes per second by outcome. An episode begins with the first "
        "request for a message. Expired: no participant answered, for example because "
        "no online participant has the message.",
        per_second("sds_repair_episodes_total", CHANNEL, "{{outcome}}"),
        unit="ops",
        stacked=True,
    ),
    ratios(
        "Redundant responses",
        "Share of responses that came after another response to the same repair "
        "request. Usually, about 40 % of the responses are redundant. If the share is "
        "much higher, responders do not receive each other's responses in time.",
        Query(
            queries.share(
                queries.rate("sds_repair_responses_total", CHANNEL, redundant="true"),
                queries.rate("sds_repair_responses_total", CHANNEL),
            ),
            "redundant",
        ),
        limits=colours.line_at(REDUNDANT_SHARE),
    ),
    lines(
        "Repair response time",
        "Time from the first repair request for a message to the answer. While the "
        "message's sender is online, the median time is 5 to 6 s. While the sender is "
        "offline, answers take up to two minutes.",
        *quantiles("sds_repair_response_seconds", CHANNEL),
        unit="s",
    ),
]

_TRAFFIC: list[Panel] = [
    lines(
        "Frames",
        "Frames per second by kind and dialect. Rebroadcasts count, but replicas do "
        "not. If the channel has no sync frames, the loss of its last message may "
        "stay unnoticed.",
        per_second("sds_frames_total", CHANNEL, "{{kind}} {{dialect}}"),
        unit="pps",
    ),
    lines(
        "Copies",
        "Rebroadcasts per second by cause, and replicas per second. If several taps "
        "capture the same broadcast, each copy after the first is a replica. Replicas "
        "are harmless.",
        per_second("sds_rebroadcasts_total", CHANNEL, "{{cause}}"),
        per_second("sds_replicas_total", CHANNEL, "replicas"),
        unit="pps",
    ),
    lines(
        "Bytes by part",
        "Bytes of SDS frames per second, by part of the frame. If most bytes are in "
        "the parts 'history', 'bloom' and 'repair', reliability costs more than "
        "content.",
        per_second("sds_frame_bytes_total", CHANNEL, "{{part}}"),
        unit="Bps",
        stacked=True,
    ),
    lines(
        "Participants",
        "Number of participants that sent a frame in the last ten minutes.",
        now("sds_channel_participants", CHANNEL, "participants"),
    ),
    ratios(
        "Bloom filter, false positives",
        "False-positive rate of the fullest filter in use. If the rate is above the "
        f"dashed line ({SATURATED_RATIO:.0%}), the filter too often matches messages "
        "that its sender lacks.",
        now("sds_bloom_false_positive_ratio", CHANNEL, "fullest filter"),
        limits=colours.line_at(SATURATED_RATIO),
    ),
    lines(
        "Trouble with ids and memory",
        "Number of id collisions, evicted entries and dropped entries per graph step. "
        "Id collisions: a frame has a known message id, but contains another message, "
        "for example because a client computes ids from the text alone. Evicted: the "
        "channel exceeds the monitor's memory limits, so the channel's figures may be "
        "too low. Dropped: the monitor discarded entries because of a limit that only "
        "large channels or hostile traffic reach.",
        per_step("sds_message_id_collisions_total", CHANNEL, "id collisions"),
        per_step("sds_remembered_evicted_total", CHANNEL, "evicted"),
        per_step("sds_left_out_total", CHANNEL, "dropped: {{reason}}"),
    ),
]
