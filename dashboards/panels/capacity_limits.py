"""Panels of limits: of participants, of filters, and of the monitor itself."""

from __future__ import annotations

from dashboards.panels import colours, queries
from dashboards.panels.base import Panel, Query, Text
from dashboards.panels.charts import figure, lines
from dashboards.panels.frame import channel_link, channel_page
from dashboards.panels.queries import CHANNELS, JOB, select
from dashboards.panels.series import per_second
from dashboards.panels.tables import Column, rows
from dashboards.thresholds import (
    BUDGET_NEARLY_SPENT,
    NEAR_SATURATION_RATIO,
    SATURATED_RATIO,
)

FILTER_STEPS: colours.Steps = (
    (None, colours.GOOD),
    (NEAR_SATURATION_RATIO, colours.WARNING),
    (SATURATED_RATIO, colours.BAD),
)
"""Limits: from the first on an alert fires, from the second on the verdict changes."""


def participants() -> list[Panel]:
    """Return panels of active participants and their distance to the rate limit."""
    return [
        lines(
            Text(
                "Participants by channel",
                "Senders within the last ten minutes, of the ten largest channels. "
                "Filters, requests and answers all grow with them.",
            ),
            _greatest("sds_channel_participants"),
            width=8,
        ),
        lines(
            Text(
                "Messages per epoch",
                "Most messages of one participant in the last epoch of ten minutes, "
                "with its retries, in the ten channels with most.",
            ),
            _greatest("sds_epoch_messages_max"),
            width=8,
        ),
        lines(
            Text(
                "Rate-limit budget used",
                "Greatest share of the budget that one participant has used in the "
                "current epoch, in the ten channels with most. From the dashed line "
                "on an alert fires; Waku rejects what goes beyond the budget. A lower "
                "bound: nobody knows who answers repair requests.",
                "percentunit",
            ),
            _greatest("sds_epoch_budget_used_ratio", epoch="current"),
            limits=colours.line_at(BUDGET_NEARLY_SPENT),
            width=8,
        ),
        lines(
            Text(
                "Budget by purpose",
                "Broadcasts per second: new messages, and what the budget is spent on "
                "besides: answers to repair requests, retries and sync messages. If "
                "the others outweigh new messages, reliability costs more than "
                "the messages themselves.",
                "pps",
            ),
            Query(_new(), "new messages"),
            per_second("sds_rebroadcasts_total", CHANNELS, "{{cause}}", "cause"),
            Query(
                queries.rate(select("sds_frames_total", CHANNELS, kind="sync")), "sync"
            ),
            stacked=True,
            width=24,
        ),
    ]


def filters() -> list[Panel]:
    """Return panels of the fill of bloom filters."""
    return [
        lines(
            Text(
                "False positives by channel",
                "False-positive rate of the fullest filter in use, of the ten "
                f"channels with the fullest. Above {SATURATED_RATIO:.0%}, the "
                "dashed line, participants believe too often that others have a "
                "message, and the channel counts as degraded.",
                "percentunit",
            ),
            _greatest("sds_bloom_false_positive_ratio"),
            limits=colours.line_at(SATURATED_RATIO),
            width=8,
        ),
        lines(
            Text(
                "Ids in the filter by channel",
                "Message ids in the fullest filter in use, of the ten channels with "
                "most. A saw tooth is a filter that is begun anew; a line that only "
                "rises will saturate.",
            ),
            _greatest("sds_bloom_ids"),
            width=8,
        ),
        rows(
            Text(
                "When filters pass 1 %",
                "Channels whose fullest filter grows, the fullest first, and when "
                "it passes a false-positive rate of 1 % if it grows on. No date: "
                "it does not grow.",
            ),
            "channel",
            Column(
                "False positives",
                queries.worst(
                    queries.greatest(
                        select("sds_bloom_false_positive_ratio", CHANNELS), "channel"
                    ),
                    CHANNELS,
                    count=20,
                ),
                unit="percentunit",
                steps=FILTER_STEPS,
            ),
            Column(
                "Passes 1 %",
                "1000 * "
                + queries.greatest(
                    select("sds_bloom_one_percent_timestamp_seconds", CHANNELS),
                    "channel",
                ),
                unit="dateTimeFromNow",
            ),
            headers={"name": "Channel", "channel": "Id"},
            links={
                "name": channel_link("__data.fields.channel"),
                "channel": channel_page("__data.fields.channel"),
            },
            width=8,
            height=8,
        ),
    ]


def own_limits() -> list[Panel]:
    """Return panels of the label budget and the state store."""
    dropped = queries.greatest(select("sds_monitor_dropped_label_channels", JOB))
    dropped_groups = queries.greatest(select("sds_monitor_dropped_label_groups", JOB))
    state = queries.total(select("sds_monitor_state_bytes", JOB))
    channels = queries.total(select("sds_monitor_state_channels", JOB))
    labelled = f"count({select('sds_channel_info', JOB)})"
    groups = queries.total(select("sds_monitor_state_groups", JOB))
    labelled_groups = f"count({select('mvds_group_info', JOB)})"
    return [
        figure(
            Text(
                "Channels and groups without a label",
                "Those beyond the label budget, summed as 'other'. They have no "
                "verdict here, only on the status page: raise the budget or choose "
                "by the channel table.",
            ),
            Query(dropped, "channels"),
            Query(dropped_groups, "groups of MVDS"),
            steps=colours.ANY_IS_SUSPECT,
            width=6,
        ),
        figure(
            Text(
                "Channels and groups",
                "Channels and groups of MVDS held in the monitor's state, and series "
                "of them that it exports, 'other' included.",
            ),
            Query(channels, "channels in the state"),
            Query(labelled, "channels with a label"),
            Query(groups, "groups in the state"),
            Query(labelled_groups, "groups with a label"),
            width=6,
        ),
        figure(
            Text(
                "State",
                "Memory of the monitor's state store.",
                "bytes",
            ),
            Query(state),
            width=6,
        ),
        figure(
            Text(
                "State per channel",
                "Memory of the state store by channel.",
                "bytes",
            ),
            Query(queries.share(state, channels)),
            width=6,
            absent="no channels",
        ),
        lines(
            Text(
                "State over time",
                "Memory of the state store. It follows the messages of the last hour, "
                "the channels and their participants; a line that rises while those "
                "do not indicates trouble.",
                "bytes",
            ),
            Query(state, "state"),
        ),
        lines(
            Text(
                "Memory of channels overrun",
                "Entries per step of the graph that a channel's limit pushed out "
                "before their time, of the ten channels with most. Above 0 the "
                "figures of that channel are too low.",
            ),
            Query(
                queries.worst(
                    queries.increase(
                        select("sds_remembered_evicted_total", CHANNELS), "channel"
                    ),
                    CHANNELS,
                ),
                "{{name}}",
            ),
            bars=True,
        ),
    ]


def _new() -> str:
    """Return broadcasts with content per second that are no rebroadcasts."""
    every = queries.rate(select("sds_frames_total", CHANNELS))
    sync = queries.rate(select("sds_frames_total", CHANNELS, kind="sync"))
    again = queries.rate(select("sds_rebroadcasts_total", CHANNELS))
    return f"clamp_min({every} - {sync} - {again}, 0)"


def _greatest(metric: str, **labels: str) -> Query:
    per_channel = queries.greatest(select(metric, CHANNELS, **labels), "channel")
    return Query(queries.worst(per_channel, CHANNELS), "{{name}}")
