"""Dashboard *Capacity*: what channels cost, and which limit is near."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import TextBoxVariable
from grafana_foundation_sdk.models import dashboard as models

from dashboards.links import CAPACITY, Links
from dashboards.panels import colours, queries
from dashboards.panels.base import Panel, Query, Text
from dashboards.panels.charts import figure, lines
from dashboards.panels.frame import (
    Frame,
    Section,
    assemble,
    channel_link,
    channel_page,
    some_channels,
)
from dashboards.panels.queries import CHANNELS, JOB, RANGE, select
from dashboards.panels.series import per_second
from dashboards.panels.tables import Column, rows
from dashboards.thresholds import NEAR_SATURATION_RATIO, SATURATED_RATIO

EPOCH_MESSAGE_LIMIT = 100
"""`rlnRelayUserMessageLimit` of 64/WAKU2-NETWORK (vacp2p/rfc-index@19cfc820).

A membership may have less, so that the dashboard has a field for it.
"""

_FILTER_STEPS: colours.Steps = (
    (None, colours.GOOD),
    (NEAR_SATURATION_RATIO, colours.WARNING),
    (SATURATED_RATIO, colours.BAD),
)


def capacity(links: Links) -> models.Dashboard:
    """The dashboard."""
    limit = str(EPOCH_MESSAGE_LIMIT)
    frame = Frame(
        CAPACITY,
        "SDS / Capacity",
        "What channels cost in bytes and frames, and which limit is near.",
        variables=(
            some_channels(),
            TextBoxVariable("epoch_limit")
            .label("Messages per epoch")
            .description("How many messages a membership may publish in ten minutes.")
            .default_value(limit)
            .current(models.VariableOption(selected=True, text=limit, value=limit)),
        ),
    )
    return assemble(
        frame,
        links,
        [
            Section("", _figures()),
            Section("Traffic", _traffic()),
            Section("Participants and their limits", _participants()),
            Section("Filters", _filters()),
            Section("The monitor's own limits", _monitor()),
        ],
    )


def _figures() -> list[Panel]:
    frames = queries.rate(select("sds_frames_total", CHANNELS))
    return [
        figure(
            Text(
                "Bytes",
                "Bytes per second of SDS frames now, each broadcast once. What "
                "Waku adds and how often gossip carries it are not in it.",
                "Bps",
            ),
            Query(queries.rate(select("sds_frame_bytes_total", CHANNELS))),
        ),
        figure(
            Text("Frames", "Frames per second now, rebroadcasts included.", "pps"),
            Query(frames),
        ),
        figure(
            Text(
                "Bytes per message",
                "All bytes by distinct content messages, in the chosen range: what "
                "one message costs with everything that makes it reliable.",
                "bytes",
            ),
            Query(
                queries.share(
                    _increase("sds_frame_bytes_total"), _increase("sds_messages_total")
                )
            ),
            absent="no messages",
        ),
        figure(
            Text(
                "Content",
                "Share of the bytes that is content, in the chosen range. The rest "
                "is the price of reliability.",
                "percentunit",
            ),
            Query(
                queries.share(
                    _increase("sds_frame_bytes_total", part="content"),
                    _increase("sds_frame_bytes_total"),
                )
            ),
            absent="no traffic",
        ),
        figure(
            Text(
                "Participants",
                "Senders within the last ten minutes, summed over channels: who "
                "speaks in two counts twice.",
            ),
            Query(queries.total(select("sds_channel_participants", CHANNELS))),
        ),
        figure(
            Text(
                "Fullest filter",
                "False-positive rate of the fullest bloom filter of all channels. "
                "Yellow where the alert begins, red where filters stop being "
                "evidence.",
                "percentunit",
            ),
            Query(queries.greatest(select("sds_bloom_false_positive_ratio", CHANNELS))),
            steps=_FILTER_STEPS,
            absent="no filter",
        ),
    ]


def _traffic() -> list[Panel]:
    return [
        lines(
            Text(
                "Bytes by part",
                "Bytes per second of frames by part. Bloom filters are sent whole "
                "with every frame, so that small messages are mostly filter.",
                "Bps",
            ),
            per_second("sds_frame_bytes_total", CHANNELS, "{{part}}", "part"),
            stacked=True,
        ),
        lines(
            Text(
                "Bytes by channel",
                "The ten channels with most bytes per second at each moment.",
                "Bps",
            ),
            _busiest("sds_frame_bytes_total"),
        ),
        lines(
            Text(
                "Frames by kind",
                "Frames per second. Sync frames are the heartbeat of quiet "
                "channels; many of them beside little content are cost.",
                "pps",
            ),
            per_second(
                "sds_frames_total", CHANNELS, "{{kind}} {{dialect}}", "kind", "dialect"
            ),
            stacked=True,
            width=8,
        ),
        lines(
            Text(
                "Frames by channel",
                "The ten channels with most frames per second at each moment.",
                "pps",
            ),
            _busiest("sds_frames_total"),
            width=8,
        ),
        lines(
            Text(
                "Copies",
                "Per second: rebroadcasts by cause, and replicas, further copies of "
                "one broadcast. Replicas come from several taps and cost only the "
                "monitor.",
                "pps",
            ),
            per_second("sds_rebroadcasts_total", CHANNELS, "{{cause}}", "cause"),
            per_second("sds_replicas_total", CHANNELS, "replicas"),
            width=8,
        ),
    ]


def _participants() -> list[Panel]:
    return [
        lines(
            Text(
                "Participants by channel",
                "Senders within the last ten minutes, of the ten largest channels. "
                "Filters, requests and answers all grow with them.",
            ),
            _greatest("sds_channel_participants"),
        ),
        lines(
            Text(
                "Messages per epoch against the limit",
                "Most messages of one participant in the last epoch of ten minutes, "
                "in the ten channels with most, and what a membership may publish. "
                "At the limit Waku drops further ones. A lower bound: rebroadcasts "
                "count against the limit and are not in it.",
            ),
            _greatest("sds_epoch_messages_max"),
            Query("vector($epoch_limit)", "limit"),
        ),
    ]


def _filters() -> list[Panel]:
    return [
        lines(
            Text(
                "False positives by channel",
                "False-positive rate of the fullest filter in use, of the ten "
                f"channels with the fullest. Above {SATURATED_RATIO:.0%}, the "
                "dashed line, filters are no evidence and repair breaks down.",
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
                steps=_FILTER_STEPS,
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


def _monitor() -> list[Panel]:
    dropped = queries.greatest(select("sds_monitor_dropped_label_channels", JOB))
    state = queries.total(select("sds_monitor_state_bytes", JOB))
    channels = queries.total(select("sds_monitor_state_channels", JOB))
    labelled = f"count({select('sds_channel_info', JOB)})"
    return [
        figure(
            Text(
                "Channels without a label",
                "Channels beyond the label budget, summed as 'other'. They have no "
                "verdict here, only on the status page: raise the budget or choose "
                "by the channel table.",
            ),
            Query(dropped),
            steps=colours.ANY_IS_SUSPECT,
            width=6,
        ),
        figure(
            Text(
                "Channels",
                "Channels held in the monitor's state, and series of channels that "
                "it exports, 'other' included.",
            ),
            Query(channels, "in the state"),
            Query(labelled, "with a label"),
            width=6,
        ),
        figure(
            Text(
                "State",
                "Memory of the monitor's state store. It grows with channels and "
                "with messages of the last hour.",
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
                "Memory of the state store. A line that only rises will end in "
                "trouble; it should level off an hour after traffic does.",
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


def _increase(metric: str, **labels: str) -> str:
    return queries.increase(select(metric, CHANNELS, **labels), window=RANGE)


def _busiest(metric: str) -> Query:
    per_channel = queries.rate(select(metric, CHANNELS), "channel")
    return Query(queries.worst(per_channel, CHANNELS), "{{name}}")


def _greatest(metric: str) -> Query:
    per_channel = queries.greatest(select(metric, CHANNELS), "channel")
    return Query(queries.worst(per_channel, CHANNELS), "{{name}}")
