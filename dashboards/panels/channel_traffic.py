"""Panels of one channel: frames, bytes, participants and filters."""

from __future__ import annotations

from dashboards.panels import colours
from dashboards.panels.base import Panel
from dashboards.panels.charts import lines
from dashboards.panels.queries import CHANNEL
from dashboards.panels.series import now, per_second, per_step
from dashboards.thresholds import SATURATED_RATIO


def traffic() -> list[Panel]:
    """Return panels of the channel's frames, bytes, participants and filters."""
    return [
        lines(
            "Frames",
            "Frames per second by kind and dialect, rebroadcasts included, replicas "
            "not. No sync frames at all: the channel has no heartbeat, and a lost "
            "last message may never be noticed.",
            per_second(
                "sds_frames_total", CHANNEL, "{{kind}} {{dialect}}", "kind", "dialect"
            ),
            unit="pps",
            width=8,
        ),
        lines(
            "Copies",
            "Per second: messages sent again after a repair request or as a retry, "
            "and replicas, further copies of one broadcast, which come from several "
            "taps and are harmless.",
            per_second("sds_rebroadcasts_total", CHANNEL, "{{cause}}", "cause"),
            per_second("sds_replicas_total", CHANNEL, "replicas"),
            unit="pps",
            width=8,
        ),
        lines(
            "Bytes by part",
            "Bytes per second of SDS frames by part. A channel whose bytes are mostly "
            "history, bloom or repair pays more for reliability than for content.",
            per_second("sds_frame_bytes_total", CHANNEL, "{{part}}", "part"),
            unit="Bps",
            stacked=True,
            width=8,
        ),
        lines(
            "Participants",
            "Distinct senders within the last ten minutes. Participants that never "
            "speak are not counted.",
            now("sds_channel_participants", CHANNEL, "participants"),
            width=8,
        ),
        lines(
            "Bloom filter, false positives",
            "False-positive rate of the fullest filter in use. Above the "
            f"dashed line ({SATURATED_RATIO:.0%}) participants believe too often "
            "that others have a message.",
            now("sds_bloom_false_positive_ratio", CHANNEL, "fullest filter"),
            unit="percentunit",
            limits=colours.line_at(SATURATED_RATIO),
            width=8,
        ),
        lines(
            "Trouble with ids and memory",
            "Per step of the graph: frames that reuse a known message id for "
            "something else (ids that are hashes of the text alone do that), and "
            "entries pushed out of the monitor's memory before their time (the "
            "channel is too busy for it; its figures are then too low). What the "
            "limits on the cost of a frame left out: somebody sends hostile frames.",
            per_step("sds_message_id_collisions_total", CHANNEL, "id collisions"),
            per_step("sds_remembered_evicted_total", CHANNEL, "evicted"),
            per_step("sds_left_out_total", CHANNEL, "left out: {{reason}}", "reason"),
            bars=True,
            width=8,
        ),
    ]
