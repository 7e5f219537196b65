"""Dashboard *Capacity*: the traffic that channels cause, and limits that are near."""

from __future__ import annotations

from grafana_foundation_sdk.models import dashboard as models

from dashboards import CAPACITY, Links
from dashboards.panels import colours, forecast, queries
from dashboards.panels.base import Panel, Query, per_second, per_step, sums
from dashboards.panels.charts import figure, lines
from dashboards.panels.frame import assemble, in_lines, some_channels
from dashboards.panels.queries import CHANNELS, JOB, select
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
        "What channels cost in bytes and frames, and which limit is near.",
        {
            "": _figures(),
            "Traffic": in_lines(_traffic(), 2, 3),
            "Participants and their limits": in_lines(_participants(), 3, 1),
            "Segments": in_lines(_segments(), 3, 2),
            "Filters": in_lines(_filters(), 3),
            "Forecast": [*forecast.limits(), *forecast.costs("sds", "channels")],
            "The monitor's own limits": in_lines(_own_limits(), 4, 2),
        },
        variables=(some_channels(),),
    )


def _figures() -> list[Panel]:
    frames = queries.rate("sds_frames_total", CHANNELS)
    return [
        figure(
            "Bytes",
            "Bytes per second of SDS frames now, each broadcast once, without Waku's "
            "overhead and repeated gossip.",
            queries.rate("sds_frame_bytes_total", CHANNELS),
            unit="Bps",
        ),
        figure(
            "Frames",
            "Frames per second now, rebroadcasts included.",
            frames,
            unit="pps",
        ),
        figure(
            "Bytes per message",
            "All bytes by distinct content messages, in the chosen range: the whole "
            "cost of one message, reliability included.",
            queries.share(
                queries.in_range("sds_frame_bytes_total", CHANNELS),
                queries.in_range("sds_messages_total", CHANNELS),
            ),
            unit="bytes",
            absent="no messages",
        ),
        figure(
            "Content",
            "Share of the bytes that is content, in the chosen range. The rest is the "
            "price of reliability.",
            queries.share(
                queries.in_range("sds_frame_bytes_total", CHANNELS, part="content"),
                queries.in_range("sds_frame_bytes_total", CHANNELS),
            ),
            unit="percentunit",
            absent="no traffic",
        ),
        figure(
            "Participants",
            "Senders within the last ten minutes, summed over channels: a participant "
            "of five channels counts five times.",
            queries.total("sds_channel_participants", CHANNELS),
        ),
        figure(
            "Fullest filter",
            "False-positive rate of the fullest bloom filter of all channels. Yellow "
            "where the alert begins, red where the channel counts as degraded.",
            queries.greatest("sds_bloom_false_positive_ratio", CHANNELS),
            unit="percentunit",
            steps=_FILTER_STEPS,
            absent="no filter",
        ),
    ]


def _traffic() -> list[Panel]:
    return [
        lines(
            "Bytes by part",
            "Bytes per second of frames by part. Bloom filters are sent whole with "
            "every frame, so that small messages are mostly filter.",
            per_second("sds_frame_bytes_total", CHANNELS, "{{part}}"),
            unit="Bps",
            stacked=True,
        ),
        lines(
            "Bytes by channel",
            "The ten channels with most bytes per second at each moment.",
            _busiest("sds_frame_bytes_total"),
            unit="Bps",
        ),
        lines(
            "Frames by kind",
            "Frames per second. Sync frames are the heartbeat of quiet channels; many "
            "of them beside little content are cost.",
            per_second("sds_frames_total", CHANNELS, "{{kind}} {{dialect}}"),
            unit="pps",
            stacked=True,
        ),
        lines(
            "Frames by channel",
            "The ten channels with most frames per second at each moment.",
            _busiest("sds_frames_total"),
            unit="pps",
        ),
        lines(
            "Copies",
            "Per second: rebroadcasts by cause, and replicas, further copies of one "
            "broadcast. Replicas come from several taps and cost only the monitor.",
            per_second("sds_rebroadcasts_total", CHANNELS, "{{cause}}"),
            per_second("sds_replicas_total", CHANNELS, "replicas"),
            unit="pps",
        ),
    ]


def _busiest(metric: str) -> Query:
    per_channel = queries.rate(metric, CHANNELS, "channel")
    return Query(queries.worst(per_channel, CHANNELS), "{{name}}")


_FILTER_STEPS: colours.Steps = (
    (None, colours.GOOD),
    (NEAR_SATURATION_RATIO, colours.WARNING),
    (SATURATED_RATIO, colours.BAD),
)
"""Limits: at the first an alert fires, at the second the verdict changes."""


def _participants() -> list[Panel]:
    return [
        lines(
            "Participants by channel",
            "Senders within the last ten minutes, of the ten largest channels. "
            "Filters, requests and answers all grow with them.",
            _greatest("sds_channel_participants"),
        ),
        lines(
            "Messages per epoch",
            "Most messages of one participant in the last epoch of ten minutes, with "
            "its retries, in the ten channels with most.",
            _greatest("sds_epoch_messages_max"),
        ),
        lines(
            "Rate-limit budget used",
            "Greatest share of the budget that one participant has used in the "
            "current epoch, in the ten channels with most. From the dashed line on an "
            "alert fires; Waku rejects what goes beyond the budget. A lower bound: "
            "the sender of an answer to a repair request is unknown.",
            _greatest("sds_epoch_budget_used_ratio", epoch="current"),
            unit="percentunit",
            limits=colours.line_at(BUDGET_NEARLY_SPENT),
        ),
        lines(
            "Budget by purpose",
            "Broadcasts per second: new messages, and what the budget is spent on "
            "besides: answers to repair requests, retries and sync messages. If the "
            "others outweigh new messages, reliability costs more than the messages "
            "themselves.",
            Query(_new(), "new messages"),
            per_second("sds_rebroadcasts_total", CHANNELS, "{{cause}}"),
            per_second("sds_frames_total", CHANNELS, "sync", kind="sync"),
            unit="pps",
            stacked=True,
        ),
    ]


def _filters() -> list[Panel]:
    return [
        lines(
            "False positives by channel",
            "False-positive rate of the fullest filter in use, of the ten "
            f"channels with the fullest. Above {SATURATED_RATIO:.0%}, the "
            "dashed line, participants believe too often that others have a "
            "message, and the channel counts as degraded.",
            _greatest("sds_bloom_false_positive_ratio"),
            unit="percentunit",
            limits=colours.line_at(SATURATED_RATIO),
        ),
        lines(
            "Ids in the filter by channel",
            "Message ids in the fullest filter in use, of the ten channels with most. "
            "A saw tooth is a filter that rolls over; a line that only rises will "
            "saturate.",
            _greatest("sds_bloom_ids"),
        ),
        channel_rows(
            "When filters pass 1 %",
            "Channels whose fullest filter grows, the fullest first, and when it "
            "passes a false-positive rate of 1 % if it grows on. No date: it does not "
            "grow.",
            Column(
                "False positives",
                queries.worst(
                    queries.greatest(
                        "sds_bloom_false_positive_ratio", CHANNELS, "channel"
                    ),
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


def _own_limits() -> list[Panel]:
    dropped = queries.greatest("sds_monitor_dropped_label_channels", JOB)
    dropped_groups = queries.greatest("sds_monitor_dropped_label_groups", JOB)
    state = queries.total("sds_monitor_state_bytes", JOB)
    channels = queries.total("sds_monitor_state_channels", JOB)
    labelled = f"count({select('sds_channel_info', JOB)})"
    groups = queries.total("sds_monitor_state_groups", JOB)
    labelled_groups = f"count({select('mvds_group_info', JOB)})"
    return [
        figure(
            "Channels and groups without a label",
            "Those beyond the label budget, summed as 'other'. They have no verdict "
            "here, only on the status page: raise the budget or choose by the channel "
            "table.",
            Query(dropped, "channels"),
            Query(dropped_groups, "groups of MVDS"),
            steps=colours.ANY_IS_SUSPECT,
        ),
        figure(
            "Channels and groups",
            "Channels and groups of MVDS held in the monitor's state, and series of "
            "them that it exports, 'other' included.",
            Query(channels, "channels in the state"),
            Query(labelled, "channels with a label"),
            Query(groups, "groups in the state"),
            Query(labelled_groups, "groups with a label"),
        ),
        figure("State", "Memory of the monitor's state store.", state, unit="bytes"),
        figure(
            "State per channel",
            "Memory of the state store by channel.",
            queries.share(state, channels),
            unit="bytes",
            absent="no channels",
        ),
        lines(
            "State over time",
            "Memory of the state store. It follows the messages of the last hour, the "
            "channels and their participants; a line that rises while those do not "
            "indicates trouble.",
            Query(state, "state"),
            unit="bytes",
        ),
        lines(
            "Memory of channels overrun",
            "Entries per step of the graph that a channel's limit pushed out before "
            "their time, of the ten channels with most. Above 0 the figures of that "
            "channel are too low.",
            Query(
                queries.worst(
                    queries.increase(
                        "sds_remembered_evicted_total", CHANNELS, "channel"
                    ),
                    CHANNELS,
                ),
                "{{name}}",
            ),
            bars=True,
        ),
    ]


def _new() -> str:
    every = queries.rate("sds_frames_total", CHANNELS)
    sync = queries.rate("sds_frames_total", CHANNELS, kind="sync")
    again = queries.rate("sds_rebroadcasts_total", CHANNELS)
    return f"clamp_min({every} - {sync} - {again}, 0)"


def _greatest(metric: str, **labels: str) -> Query:
    per_channel = queries.greatest(metric, CHANNELS, "channel", **labels)
    return Query(queries.worst(per_channel, CHANNELS), "{{name}}")


def _segments() -> list[Panel]:
    return [
        lines(
            "Segmented messages",
            "Per step of the graph: messages that became complete, and those of which "
            "too few segments came in time. Incomplete ones are lost to their "
            "application, although each segment is a message of its own.",
            per_step("sds_segmented_messages_ended_total", CHANNELS, "{{outcome}}"),
            bars=True,
        ),
        lines(
            "Begun and not complete",
            "Segmented messages begun per step of the graph, and those whose segments "
            "are awaited now. If the number stays high, messages are large, or "
            "segments are lost.",
            per_step("sds_segmented_messages_total", CHANNELS, "begun"),
            sums("sds_segmented_messages_open", CHANNELS, "open"),
        ),
        lines(
            "Segments per message",
            "Segments by segmented messages that began, averaged. Each segment costs "
            "one message of the rate-limit budget.",
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
            "Segments per second. Parity segments replace lost data segments; beside "
            "repair they are mostly cost.",
            per_second("sds_segments_total", CHANNELS, "{{kind}}"),
            unit="pps",
            stacked=True,
        ),
        lines(
            "Contradicting segments",
            "Segments per step of the graph that contradict earlier ones of their "
            "message in its length or in the number of segments, or that are a whole "
            "payload with another hash. Above 0, a client is broken or a participant "
            "sends false segments.",
            per_step("sds_segments_disagreeing_total", CHANNELS, "segments"),
            bars=True,
        ),
    ]
