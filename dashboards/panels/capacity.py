"""Dashboard *Capacity*: how much traffic do channels cause, which limits are near?"""

from __future__ import annotations

from grafana_foundation_sdk.models import dashboard as models

from dashboards import CAPACITY, Links
from dashboards.panels import colours, forecast, queries
from dashboards.panels.base import Panel
from dashboards.panels.charts import figure, lines, ratio, ratios
from dashboards.panels.frame import assemble, in_lines, some_channels
from dashboards.panels.queries import CHANNELS, JOB, select
from dashboards.panels.series import Query, now, per_second, per_step, sums
from dashboards.panels.tables import Column, channel_rows, moment
from dashboards.thresholds import (
    BUDGET_NEARLY_SPENT,
    NEAR_SATURATION_RATIO,
    SATURATED_RATIO,
)


def capacity(links: Links) -> models.Dashboard:
    """Return the dashboard."""
    return assemble(
        links,
        CAPACITY,
        "SDS / Capacity",
        "How much traffic do channels cause, and which limits are near?",
        {
            "": _FIGURES,
            "Traffic": in_lines(_TRAFFIC, 2, 3),
            "Participants and their limits": in_lines(_PARTICIPANTS, 3, 1),
            "Segments": in_lines(_SEGMENTS, 3, 2),
            "Filters": in_lines(_FILTERS, 3),
            "Forecast": [*forecast.LIMITS, *forecast.costs("sds", "channels")],
            "The monitor's own limits": in_lines(_OWN_LIMITS, 4, 2),
        },
        variables=(some_channels(),),
    )


_BYTES = "sds_frame_bytes_total"


def _ten_worst(per_channel: str, is_per_step: bool = False) -> Query:
    return Query(queries.worst(per_channel, CHANNELS), "{{name}}", is_per_step)


def _busiest(metric: str) -> Query:
    return _ten_worst(queries.rate(metric, CHANNELS, "channel"))


def _greatest(metric: str, **labels: str) -> Query:
    return _ten_worst(queries.greatest(metric, CHANNELS, "channel", **labels))


def _new() -> str:
    every = queries.rate("sds_frames_total", CHANNELS)
    sync = queries.rate("sds_frames_total", CHANNELS, kind="sync")
    again = queries.rate("sds_rebroadcasts_total", CHANNELS)
    return f"clamp_min({every} - {sync} - {again}, 0)"


_FILTER_STEPS: colours.Steps = (
    (None, colours.GOOD),
    (NEAR_SATURATION_RATIO, colours.WARNING),
    (SATURATED_RATIO, colours.BAD),
)
"""Colours of a bloom filter's false-positive rate. From the lower limit on, an alert
fires on the channel. Above the upper limit, the channel's verdict is degraded."""

_FIGURES: list[Panel] = [
    figure(
        "Bytes",
        "Bytes of SDS frames per second now. Each broadcast counts once. Waku's "
        "overhead and gossip do not count.",
        queries.rate(_BYTES, CHANNELS),
        unit="Bps",
    ),
    figure(
        "Frames",
        "Frames per second now, including rebroadcasts.",
        queries.rate("sds_frames_total", CHANNELS),
        unit="pps",
    ),
    figure(
        "Bytes per message",
        "All bytes of frames in the chosen range, divided by the number of distinct "
        "content messages. The value includes the bytes that reliability costs.",
        queries.share_in_range(_BYTES, "sds_messages_total", CHANNELS),
        unit="bytes",
        absent="no messages",
    ),
    ratio(
        "Content",
        "Share of content in the bytes of all frames in the chosen range. The other "
        "bytes are the cost of reliability.",
        queries.share_in_range(_BYTES, _BYTES, CHANNELS, part="content"),
        absent="no traffic",
    ),
    figure(
        "Participants",
        "Number of participants that sent a frame in the last ten minutes, summed "
        "over channels. A sender in five channels counts five times.",
        queries.total("sds_channel_participants", CHANNELS),
    ),
    ratio(
        "Fullest filter",
        "False-positive rate of the fullest bloom filter in any channel. Yellow: an "
        "alert fires on the filter's channel. Red: this channel is degraded.",
        queries.greatest("sds_bloom_false_positive_ratio", CHANNELS),
        steps=_FILTER_STEPS,
        absent="no filter",
    ),
]

_TRAFFIC: list[Panel] = [
    lines(
        "Bytes by part",
        "Bytes of frames per second, by part of the frame. Every frame contains a "
        "whole bloom filter. If a message is short, the filter is most of its frame.",
        per_second(_BYTES, CHANNELS, "{{part}}"),
        unit="Bps",
        stacked=True,
    ),
    lines(
        "Bytes by channel",
        "The ten channels with the most bytes per second.",
        _busiest(_BYTES),
        unit="Bps",
    ),
    lines(
        "Frames by kind",
        "Frames per second, by kind and dialect. Quiet channels send sync frames as "
        "heartbeats. If a channel sends few content frames but many sync frames, most "
        "of its frames are overhead.",
        per_second("sds_frames_total", CHANNELS, "{{kind}} {{dialect}}"),
        unit="pps",
        stacked=True,
    ),
    lines(
        "Frames by channel",
        "The ten channels with the most frames per second.",
        _busiest("sds_frames_total"),
        unit="pps",
    ),
    lines(
        "Copies",
        "Rebroadcasts per second by cause, and replicas per second. If several taps "
        "capture the same broadcast, each copy after the first is a replica. Replicas "
        "cost the network nothing.",
        per_second("sds_rebroadcasts_total", CHANNELS, "{{cause}}"),
        per_second("sds_replicas_total", CHANNELS, "replicas"),
        unit="pps",
    ),
]


_PARTICIPANTS: list[Panel] = [
    lines(
        "Participants by channel",
        "Number of participants that sent a frame in the last ten minutes. Shows the "
        "ten channels with the highest values. More senders fill the filters faster, "
        "and cause more repair requests and answers.",
        _greatest("sds_channel_participants"),
    ),
    lines(
        "Messages per epoch",
        "Number of messages and retries that the busiest participant of a channel sent "
        "in the previous epoch of ten minutes. Shows the ten channels with the highest "
        "values.",
        _greatest("sds_epoch_messages_max"),
    ),
    ratios(
        "Rate-limit budget used",
        "Share of the rate-limit budget that a channel's busiest participant has used "
        "in the current epoch. Shows the ten channels with the highest values. At the "
        "dashed line, an alert fires. Waku rejects messages beyond the budget. The "
        "share is a lower bound: answers to repair requests also use a participant's "
        "budget, but no frame shows which participant answers.",
        _greatest("sds_epoch_budget_used_ratio", epoch="current"),
        limits=colours.line_at(BUDGET_NEARLY_SPENT),
    ),
    lines(
        "Budget by purpose",
        "Broadcasts per second: new messages, answers to repair requests, retries and "
        "sync messages. If less than half of the broadcasts are new messages, most "
        "broadcasts serve reliability.",
        Query(_new(), "new messages"),
        per_second("sds_rebroadcasts_total", CHANNELS, "{{cause}}"),
        per_second("sds_frames_total", CHANNELS, "sync", kind="sync"),
        unit="pps",
        stacked=True,
    ),
]

_FILTERS: list[Panel] = [
    ratios(
        "False positives by channel",
        "False-positive rate of the fullest filter that a channel now uses. Shows the "
        "ten channels with the highest values. If the rate is above the dashed line "
        f"({SATURATED_RATIO:.0%}), the channel is degraded, because the filter too "
        "often matches messages that its sender lacks.",
        _greatest("sds_bloom_false_positive_ratio"),
        limits=colours.line_at(SATURATED_RATIO),
    ),
    lines(
        "Ids in the filter by channel",
        "Number of message ids in the fullest filter that a channel now uses. Shows "
        "the ten channels with the highest values. If a line falls, the filter dropped "
        "old ids. If a line only rises, the filter will saturate.",
        _greatest("sds_bloom_ids"),
    ),
    channel_rows(
        "When filters pass 1 %",
        "False-positive rate of each channel's fullest filter. The channel with the "
        "highest rate comes first. The column 'Passes 1 %' shows when this rate passes "
        "1 %, if the filter continues to grow as it does now.",
        Column(
            "False positives",
            queries.worst(
                queries.greatest("sds_bloom_false_positive_ratio", CHANNELS, "channel"),
                CHANNELS,
                count=20,
            ),
            unit="percentunit",
            steps=_FILTER_STEPS,
        ),
        moment(
            "Passes 1 %",
            queries.greatest(
                "sds_bloom_one_percent_timestamp_seconds", CHANNELS, "channel"
            ),
        ),
        height=8,
    ),
]

_STATE = queries.total("sds_monitor_state_bytes", JOB)
_STATE_CHANNELS = queries.total("sds_monitor_state_channels", JOB)

_OWN_LIMITS: list[Panel] = [
    figure(
        "Channels and groups without a label",
        "Number of channels and MVDS groups beyond the cardinality limit. Their "
        "figures are summed as 'other', and only the status page shows their "
        "verdicts. Raise the limit (--label-budget), or assign labels in the channel "
        "table.",
        now("sds_monitor_dropped_label_channels", JOB, "channels"),
        now("sds_monitor_dropped_label_groups", JOB, "groups of MVDS"),
        steps=colours.ANY_IS_SUSPECT,
    ),
    figure(
        "Channels and groups",
        "Number of channels and MVDS groups in the monitor's state, and number of "
        "channels and groups with a label. The value 'other' counts as a label.",
        Query(_STATE_CHANNELS, "all channels"),
        Query(f"count({select('sds_channel_info', JOB)})", "channels with a label"),
        sums("sds_monitor_state_groups", JOB, "all groups"),
        Query(f"count({select('mvds_group_info', JOB)})", "groups with a label"),
    ),
    figure("State", "Memory of the monitor's state store.", _STATE, unit="bytes"),
    figure(
        "State per channel",
        "Memory of the state store, divided by the number of channels.",
        queries.share(_STATE, _STATE_CHANNELS),
        unit="bytes",
        absent="no channels",
    ),
    lines(
        "State over time",
        "Memory of the state store. The memory grows with the numbers of recent "
        "messages, channels and participants. If the memory grows although these "
        "numbers do not, look for a fault.",
        Query(_STATE, "state"),
        unit="bytes",
    ),
    lines(
        "Entries evicted by channel",
        "Number of entries per graph step that the monitor evicted from memory. If a "
        "channel reaches its memory limit, the monitor evicts entries of this channel "
        "early. Shows the ten channels with the highest values. If a value is above 0, "
        "the channel's figures may be too low.",
        _ten_worst(
            queries.increase("sds_remembered_evicted_total", CHANNELS, "channel"),
            is_per_step=True,
        ),
    ),
]


_SEGMENTS: list[Panel] = [
    lines(
        "Segmented messages",
        "Segmented messages per graph step, by outcome. If too few segments arrive in "
        "time, the message is incomplete, and the application cannot receive it. For "
        "SDS, each segment is a message.",
        per_step("sds_segmented_messages_ended_total", CHANNELS, "{{outcome}}"),
    ),
    lines(
        "Segmented messages begun and open",
        "Begun: new segmented messages per graph step. Open: messages that wait for "
        "segments now. If many messages wait for a long time, they are large, or their "
        "segments are lost.",
        per_step("sds_segmented_messages_total", CHANNELS, "begun"),
        sums("sds_segmented_messages_open", CHANNELS, "open"),
    ),
    lines(
        "Segments per message",
        "Mean number of segments per segmented message. Each segment counts as one "
        "message in the rate-limit budget.",
        Query(
            queries.share(
                queries.rate("sds_segments_total", CHANNELS),
                queries.rate("sds_segmented_messages_total", CHANNELS),
            ),
            "segments",
        ),
    ),
    lines(
        "Segments by kind",
        "Segments per second, by kind. Parity segments replace lost data segments. In "
        "a channel that also uses repair, parity segments are mostly overhead.",
        per_second("sds_segments_total", CHANNELS, "{{kind}}"),
        unit="pps",
        stacked=True,
    ),
    lines(
        "Contradicting segments",
        "Number of wrong segments per graph step. A wrong segment contradicts an "
        "earlier segment of the same message, or the hash of the payload. If the value "
        "is above 0, a client is broken, or a participant forges segments.",
        per_step("sds_segments_disagreeing_total", CHANNELS, "segments"),
    ),
]
