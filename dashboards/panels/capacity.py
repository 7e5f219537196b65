"""Dashboard *Capacity*: the traffic that channels cause, and limits that are near."""

from __future__ import annotations

from grafana_foundation_sdk.models import dashboard as models

from dashboards.links import CAPACITY, Links
from dashboards.panels import queries
from dashboards.panels.base import Panel, Query
from dashboards.panels.capacity_limits import (
    FILTER_STEPS,
    filters,
    own_limits,
    participants,
)
from dashboards.panels.capacity_segments import segments
from dashboards.panels.charts import figure, lines
from dashboards.panels.frame import (
    Frame,
    Section,
    assemble,
    some_channels,
)
from dashboards.panels.queries import CHANNELS, RANGE, select
from dashboards.panels.series import per_second


def capacity(links: Links) -> models.Dashboard:
    """Return the dashboard."""
    frame = Frame(
        CAPACITY,
        "SDS / Capacity",
        "What channels cost in bytes and frames, and which limit is near.",
        variables=(some_channels(),),
    )
    return assemble(
        frame,
        links,
        [
            Section("", _figures()),
            Section("Traffic", _traffic()),
            Section("Participants and their limits", participants()),
            Section("Segments", segments()),
            Section("Filters", filters()),
            Section("The monitor's own limits", own_limits()),
        ],
    )


def _figures() -> list[Panel]:
    frames = queries.rate(select("sds_frames_total", CHANNELS))
    return [
        figure(
            "Bytes",
            "Bytes per second of SDS frames now, each broadcast once, without Waku's "
            "overhead and repeated gossip.",
            queries.rate(select("sds_frame_bytes_total", CHANNELS)),
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
                _increase("sds_frame_bytes_total"), _increase("sds_messages_total")
            ),
            unit="bytes",
            absent="no messages",
        ),
        figure(
            "Content",
            "Share of the bytes that is content, in the chosen range. The rest is the "
            "price of reliability.",
            queries.share(
                _increase("sds_frame_bytes_total", part="content"),
                _increase("sds_frame_bytes_total"),
            ),
            unit="percentunit",
            absent="no traffic",
        ),
        figure(
            "Participants",
            "Senders within the last ten minutes, summed over channels: a participant "
            "of five channels counts five times.",
            queries.total(select("sds_channel_participants", CHANNELS)),
        ),
        figure(
            "Fullest filter",
            "False-positive rate of the fullest bloom filter of all channels. Yellow "
            "where the alert begins, red where the channel counts as degraded.",
            queries.greatest(select("sds_bloom_false_positive_ratio", CHANNELS)),
            unit="percentunit",
            steps=FILTER_STEPS,
            absent="no filter",
        ),
    ]


def _traffic() -> list[Panel]:
    return [
        lines(
            "Bytes by part",
            "Bytes per second of frames by part. Bloom filters are sent whole with "
            "every frame, so that small messages are mostly filter.",
            per_second("sds_frame_bytes_total", CHANNELS, "{{part}}", "part"),
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
            per_second(
                "sds_frames_total", CHANNELS, "{{kind}} {{dialect}}", "kind", "dialect"
            ),
            unit="pps",
            stacked=True,
            width=8,
        ),
        lines(
            "Frames by channel",
            "The ten channels with most frames per second at each moment.",
            _busiest("sds_frames_total"),
            unit="pps",
            width=8,
        ),
        lines(
            "Copies",
            "Per second: rebroadcasts by cause, and replicas, further copies of one "
            "broadcast. Replicas come from several taps and cost only the monitor.",
            per_second("sds_rebroadcasts_total", CHANNELS, "{{cause}}", "cause"),
            per_second("sds_replicas_total", CHANNELS, "replicas"),
            unit="pps",
            width=8,
        ),
    ]


def _increase(metric: str, **labels: str) -> str:
    return queries.increase(select(metric, CHANNELS, **labels), window=RANGE)


def _busiest(metric: str) -> Query:
    per_channel = queries.rate(select(metric, CHANNELS), "channel")
    return Query(queries.worst(per_channel, CHANNELS), "{{name}}")
