"""Every metric once: name, type, labels, help, and where its value is found.

The exporter, the documentation, dashboards and rules all draw on this table.
Names and meanings are those of ``docs/metrics.md``.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sds_core.mirror.figures import MirrorFigures, NodeFigures
from sds_core.observer.channel_table import ChannelSettings
from sds_core.observer.histogram import Histogram
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.tap_view import TapTotals
from sds_core.observer.verdict import Verdict
from sds_core.reason import Reason

Value = int | float | Histogram
Sample = tuple[tuple[str, ...], Value]
"""Values of the metric's own labels (without `channel` or `observer`), and the value.

Histograms hold milliseconds and are exported in seconds."""

Source = TypeVar("Source")


class Kind(enum.StrEnum):
    """Prometheus metric types in use."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Metric(Generic[Source]):
    """One metric and how its samples are read from a source of figures.

    Attributes:
        name: Full name as scraped, without the suffixes of histograms.
        kind: Its type.
        help: One sentence.
        labels: Label names beside the one that the source itself gives
            (`channel`, `observer`).
        samples: From the source to label values and values; a gauge may yield
            none, which leaves the series absent.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...]
    samples: Callable[[Source], Iterable[Sample]]


def _one(
    name: str, kind: Kind, text: str, value: Callable[[Source], Value | None]
) -> Metric[Source]:
    def samples(source: Source) -> Iterable[Sample]:
        found = value(source)
        return () if found is None else (((), found),)

    return Metric(name, kind, text, (), samples)


def _many(
    name: str,
    kind: Kind,
    text: str,
    labels: tuple[str, ...],
    samples: Callable[[Source], Iterable[Sample]],
) -> Metric[Source]:
    return Metric(name, kind, text, labels, samples)


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


_FRAME_KINDS = ("content", "sync", "ephemeral")
_DIALECTS = ("spec", "nim")

CHANNEL_METRICS: tuple[Metric[ChannelTotals], ...] = (
    _many(
        "sds_frames_total",
        Kind.COUNTER,
        "Frames seen, rebroadcasts included, replicas not.",
        ("kind", "dialect"),
        lambda t: [
            ((kind, dialect), t.frames.get(f"{kind}.{dialect}", 0))
            for kind in _FRAME_KINDS
            for dialect in _DIALECTS
        ],
    ),
    _one(
        "sds_replicas_total",
        Kind.COUNTER,
        "Further copies of one broadcast.",
        lambda t: t.replicas,
    ),
    _many(
        "sds_rebroadcasts_total",
        Kind.COUNTER,
        "Messages broadcast again, after a repair request or as a retry.",
        ("cause",),
        lambda t: [
            (("repair",), t.rebroadcasts_repair),
            (("retry",), t.rebroadcasts_retry),
        ],
    ),
    _one(
        "sds_messages_total",
        Kind.COUNTER,
        "Distinct content messages.",
        lambda t: t.messages,
    ),
    _many(
        "sds_messages_acknowledged_total",
        Kind.COUNTER,
        "Messages acknowledged, by the evidence that did it.",
        ("evidence",),
        lambda t: [
            (("definite",), t.acknowledged_definite),
            (("probable",), t.acknowledged_probable),
        ],
    ),
    _many(
        "sds_ack_latency_seconds",
        Kind.HISTOGRAM,
        "Time from a message's first copy to its acknowledgement.",
        ("evidence",),
        lambda t: [
            (("definite",), t.definite_latency),
            (("probable",), t.probable_latency),
        ],
    ),
    _one(
        "sds_messages_acknowledged_in_time_total",
        Kind.COUNTER,
        "Messages acknowledged at or before their deadline.",
        lambda t: t.acknowledged_in_time,
    ),
    _one(
        "sds_messages_unacknowledged_total",
        Kind.COUNTER,
        "Messages whose deadline passed although others had an opportunity.",
        lambda t: t.unacknowledged,
    ),
    _one(
        "sds_messages_unwitnessed_total",
        Kind.COUNTER,
        "Messages whose deadline passed with no opportunity: no fault.",
        lambda t: t.unwitnessed,
    ),
    _one(
        "sds_messages_in_flight",
        Kind.GAUGE,
        "Messages not yet acknowledged whose deadline has not passed.",
        lambda t: t.in_flight,
    ),
    _one(
        "sds_oldest_unacknowledged_timestamp_seconds",
        Kind.GAUGE,
        "Event time of the oldest message in flight.",
        lambda t: _seconds(t.oldest_in_flight_ms),
    ),
    _many(
        "sds_deliveries_total",
        Kind.COUNTER,
        "Pairs of a message and an active participant that ended, by outcome.",
        ("outcome",),
        lambda t: [
            (("first_pass",), t.deliveries_first_pass),
            (("recovered",), t.deliveries_recovered),
            (("lost",), t.deliveries_lost),
        ],
    ),
    _one(
        "sds_delivery_losses_retracted_total",
        Kind.COUNTER,
        "Deliveries that were shown after they were counted as lost.",
        lambda t: t.deliveries_retracted,
    ),
    _one(
        "sds_delivery_recovery_seconds",
        Kind.HISTOGRAM,
        "Time from the first frame that lacked a message to the first that had it.",
        lambda t: t.delivery_recovery,
    ),
    _one(
        "sds_dependency_gaps_opened_total",
        Kind.COUNTER,
        "Missing dependencies that stood longer than the settle time.",
        lambda t: t.gaps_opened,
    ),
    _many(
        "sds_dependency_gaps_closed_total",
        Kind.COUNTER,
        "Missing dependencies that ended, by outcome.",
        ("outcome",),
        lambda t: [
            (("late",), t.gaps_late),
            (("repaired",), t.gaps_repaired),
            (("recovered_late",), t.gaps_recovered_late),
            (("lost",), t.gaps_lost),
            (("tap_gap",), t.gaps_tap_gap),
        ],
    ),
    _one(
        "sds_dependency_losses_retracted_total",
        Kind.COUNTER,
        "Dependencies that arrived after they were counted as lost.",
        lambda t: t.gaps_retracted,
    ),
    _one(
        "sds_dependencies_missing",
        Kind.GAUGE,
        "Missing dependencies open now.",
        lambda t: t.gaps_open,
    ),
    _one(
        "sds_dependency_gap_seconds",
        Kind.HISTOGRAM,
        "Time for which a missing dependency that was filled stood open.",
        lambda t: t.gap_duration,
    ),
    _one(
        "sds_repair_requests_total",
        Kind.COUNTER,
        "Repair requests, one per frame and message id.",
        lambda t: t.repair_requests,
    ),
    _one(
        "sds_repair_requests_for_received_total",
        Kind.COUNTER,
        "Repair requests for an id that the requester's own filter holds.",
        lambda t: t.repair_requests_for_received,
    ),
    _many(
        "sds_repair_episodes_total",
        Kind.COUNTER,
        "Repair episodes that ended, by outcome.",
        ("outcome",),
        lambda t: [
            (("answered",), t.repair_answered),
            (("expired",), t.repair_expired),
        ],
    ),
    _many(
        "sds_repair_responses_total",
        Kind.COUNTER,
        "Responses to repair requests.",
        ("redundant",),
        lambda t: [
            (("false",), t.repair_answered),
            (("true",), t.repair_redundant),
        ],
    ),
    _one(
        "sds_repair_response_seconds",
        Kind.HISTOGRAM,
        "Time from an episode's first request to its answer.",
        lambda t: t.repair_response,
    ),
    _many(
        "sds_repair_timing_total",
        Kind.COUNTER,
        "First requests and answers whose time could be checked by their hash.",
        ("step", "conformant"),
        lambda t: [
            (("request", "true"), t.requests_timed - t.requests_early),
            (("request", "false"), t.requests_early),
            (("response", "true"), t.responses_timed - t.responses_unexplained),
            (("response", "false"), t.responses_unexplained),
        ],
    ),
    _many(
        "sds_frame_bytes_total",
        Kind.COUNTER,
        "Bytes of frames by part, rebroadcasts included, replicas not.",
        ("part",),
        lambda t: [
            (("content",), t.bytes_content),
            (("history",), t.bytes_history),
            (("bloom",), t.bytes_bloom),
            (("repair",), t.bytes_repair),
            (("other",), t.bytes_other),
        ],
    ),
    _many(
        "sds_repair_bytes_total",
        Kind.COUNTER,
        "Bytes of repair request fields, and of whole frames that respond to them.",
        ("direction",),
        lambda t: [
            (("request",), t.bytes_repair),
            (("response",), t.repair_bytes_response),
        ],
    ),
    _one(
        "sds_channel_participants",
        Kind.GAUGE,
        "Distinct senders of a first copy within the last 600 s.",
        lambda t: t.participants_lately,
    ),
    _one(
        "sds_bloom_false_positive_ratio",
        Kind.GAUGE,
        "False-positive rate of the fullest filter in use.",
        lambda t: None if t.bloom_worst is None else t.bloom_worst.false_positive_ratio,
    ),
    _one(
        "sds_bloom_ids",
        Kind.GAUGE,
        "Message ids in the fullest filter in use, estimated from its fill.",
        lambda t: None if t.bloom_worst is None else t.bloom_worst.ids,
    ),
    _one(
        "sds_bloom_one_percent_timestamp_seconds",
        Kind.GAUGE,
        "When the fullest filter passes a false-positive rate of 1 %, if it grows on.",
        lambda t: (
            None if t.bloom_worst is None else _seconds(t.bloom_worst.one_percent_ms)
        ),
    ),
    _one(
        "sds_epoch_messages_max",
        Kind.GAUGE,
        "Most messages of one participant in the last rate-limit epoch.",
        lambda t: t.epoch_messages_max,
    ),
    _many(
        "sds_channel_verdict",
        Kind.GAUGE,
        "1 for the verdict that the channel has, 0 for the others.",
        ("verdict",),
        lambda t: [((v.value,), int(t.verdict is v)) for v in Verdict],
    ),
    _one(
        "sds_verdict_since_timestamp_seconds",
        Kind.GAUGE,
        "Event time at which the channel's verdict began.",
        lambda t: _seconds(t.verdict_since_ms),
    ),
    _one(
        "sds_message_id_collisions_total",
        Kind.COUNTER,
        "Frames with a known message id but another sender or lamport timestamp.",
        lambda t: t.message_id_collisions,
    ),
    _one(
        "sds_remembered_evicted_total",
        Kind.COUNTER,
        "Entries pushed out of a channel's memory by its limit before their time.",
        lambda t: t.remembered_evicted,
    ),
)
"""Labelled `channel`."""

SETTINGS_METRICS: tuple[Metric[ChannelSettings], ...] = (
    _many(
        "sds_channel",
        Kind.INFO,
        "What people call the channel; its id if nobody has named it.",
        ("name",),
        lambda c: [((c.name,), 1)],
    ),
    _many(
        "sds_channel_objective_ratio",
        Kind.GAUGE,
        "Shares of deliveries and of messages in time that the channel is to reach.",
        ("objective",),
        lambda c: [
            (("delivery",), c.delivery_objective),
            (("acknowledgement",), c.acknowledgement_objective),
        ],
    ),
    _one(
        "sds_channel_muted_until_timestamp_seconds",
        Kind.GAUGE,
        "Wall time up to which nobody is to be told of the channel's troubles.",
        lambda c: _seconds(c.mute_until_ms),
    ),
)
"""What the operator says of channels, labelled `channel`."""

TAP_METRICS: tuple[Metric[TapTotals], ...] = (
    _one(
        "sds_tap_last_seen_timestamp_seconds",
        Kind.GAUGE,
        "Event time of the tap's last record, heartbeats included.",
        lambda t: t.last_seen_ms / 1000,
    ),
    _one(
        "sds_tap_missing_records_total",
        Kind.COUNTER,
        "Numbers of the tap's sequence that never came.",
        lambda t: t.missing_records,
    ),
)
"""Labelled `observer`."""


def _undecodable_by_reason(snapshot: Snapshot) -> Iterable[Sample]:
    # A reason that only an older version knew keeps its count.
    counts = {reason.value: 0 for reason in Reason} | dict(snapshot.undecodable)
    return [((reason,), count) for reason, count in counts.items()]


def _channels_by_verdict(snapshot: Snapshot) -> Iterable[Sample]:
    verdicts = [totals.verdict for totals in snapshot.channels.values()]
    return [((verdict.value,), verdicts.count(verdict)) for verdict in Verdict]


SNAPSHOT_METRICS: tuple[Metric[Snapshot], ...] = (
    _many(
        "sds_undecodable_frames_total",
        Kind.COUNTER,
        "Records that could not be decoded and went to the dead-letter topic.",
        ("reason",),
        _undecodable_by_reason,
    ),
    _many(
        "sds_channels",
        Kind.GAUGE,
        "Channels by verdict.",
        ("verdict",),
        _channels_by_verdict,
    ),
    _one(
        "sds_monitor_ok",
        Kind.GAUGE,
        "1 while no channel that is not muted is failing or blind, and the monitor is "
        "not behind.",
        lambda s: int(s.ok),
    ),
    _one(
        "sds_monitor_records_total",
        Kind.COUNTER,
        "Kafka records read.",
        lambda s: s.job.records,
    ),
    _one(
        "sds_monitor_records_lost_total",
        Kind.COUNTER,
        "Kafka records that were gone before they were read, and given up.",
        lambda s: s.job.records_lost,
    ),
    _one(
        "sds_monitor_records_behind",
        Kind.GAUGE,
        "Kafka records in the topic that are not read yet.",
        lambda s: s.job.records_behind,
    ),
    _one(
        "sds_monitor_event_time_lag_seconds",
        Kind.GAUGE,
        "Newest record time less the admission time of the newest batch.",
        lambda s: s.job.event_time_lag_seconds,
    ),
    _one(
        "sds_monitor_batch_duration_seconds",
        Kind.HISTOGRAM,
        "Duration of the job's batches.",
        lambda s: s.job.batch_duration,
    ),
    _one(
        "sds_monitor_state_bytes",
        Kind.GAUGE,
        "Memory of the state store.",
        lambda s: s.job.state_bytes,
    ),
    _one(
        "sds_monitor_state_channels",
        Kind.GAUGE,
        "Channels held in the state.",
        lambda s: len(s.channels),
    ),
    _one(
        "sds_monitor_history_pending",
        Kind.GAUGE,
        "Rows of the history that the Kafka topics or the Parquet files lack.",
        lambda s: s.job.history_pending,
    ),
    _one(
        "sds_monitor_restarts_total",
        Kind.COUNTER,
        "Starts of the job on this checkpoint after the first.",
        lambda s: s.job.restarts,
    ),
    _one(
        "sds_monitor_dropped_label_channels",
        Kind.GAUGE,
        "Channels beyond the label budget, exported together as `other`.",
        lambda s: len(s.channels.keys() - set(s.labels)),
    ),
    _many(
        "sds_monitor_build",
        Kind.INFO,
        "Version of the monitor.",
        ("version",),
        lambda s: [((s.job.version,), 1)],
    ),
)
"""Of the whole snapshot."""


NODE_METRICS: tuple[Metric[NodeFigures], ...] = (
    _one(
        "sds_mirror_node_up",
        Kind.GAUGE,
        "1 while the node's latest answer was good.",
        lambda n: int(n.is_up),
    ),
    _many(
        "sds_mirror_pages_total",
        Kind.COUNTER,
        "Pages of messages that the node gave.",
        ("source",),
        lambda n: [((source.value,), count) for source, count in n.pages.items()],
    ),
    _many(
        "sds_mirror_failures_total",
        Kind.COUNTER,
        "Requests to which the node gave no good answer.",
        ("source",),
        lambda n: [((source.value,), count) for source, count in n.failures.items()],
    ),
    _one(
        "sds_mirror_full_pages_total",
        Kind.COUNTER,
        "Pages as long as the node's cache, which overflows silently.",
        lambda n: n.full_pages,
    ),
    _one(
        "sds_mirror_undecodable_messages_total",
        Kind.COUNTER,
        "Messages in the node's answers that could not be read.",
        lambda n: n.undecodable,
    ),
    _one(
        "sds_mirror_store_swept_timestamp_seconds",
        Kind.GAUGE,
        "Up to which sender's time the node's store is mirrored.",
        lambda n: _seconds(n.swept_ms),
    ),
)
"""Of each node of a mirror, labelled `node`."""


MIRROR_METRICS: tuple[Metric[MirrorFigures], ...] = (
    _many(
        "sds_mirror_messages_total",
        Kind.COUNTER,
        "Messages taken for the first time.",
        ("source",),
        lambda m: [((source.value,), count) for source, count in m.accepted.items()],
    ),
    _many(
        "sds_mirror_duplicates_total",
        Kind.COUNTER,
        "Messages that were known by their hash.",
        ("source",),
        lambda m: [((source.value,), count) for source, count in m.duplicates.items()],
    ),
    _many(
        "sds_mirror_skipped_total",
        Kind.COUNTER,
        "Messages that were not meant to be mirrored.",
        ("reason",),
        lambda m: [((reason.value,), count) for reason, count in m.skipped.items()],
    ),
    _many(
        "sds_mirror_probable_losses_total",
        Kind.COUNTER,
        "Times that messages were probably lost before the mirror had them.",
        ("cause",),
        lambda m: [((cause.value,), count) for cause, count in m.losses.items()],
    ),
    _one(
        "sds_mirror_written_total",
        Kind.COUNTER,
        "Frames that Kafka has acknowledged.",
        lambda m: m.written,
    ),
    _one(
        "sds_mirror_refused_total",
        Kind.COUNTER,
        "Records that Kafka will never take, and that are given up.",
        lambda m: m.refused,
    ),
    _one(
        "sds_mirror_kafka_failures_total",
        Kind.COUNTER,
        "Writes that Kafka did not acknowledge, and that are repeated.",
        lambda m: m.kafka_failures,
    ),
    _one(
        "sds_mirror_spooled_records",
        Kind.GAUGE,
        "Records on disk that wait for Kafka.",
        lambda m: m.spooled,
    ),
    _one(
        "sds_mirror_spooled_bytes",
        Kind.GAUGE,
        "Size of the records on disk that wait for Kafka.",
        lambda m: m.spooled_bytes,
    ),
    _one(
        "sds_mirror_oldest_spooled_timestamp_seconds",
        Kind.GAUGE,
        "When the oldest record that waits for Kafka was received.",
        lambda m: _seconds(m.oldest_spooled_ms),
    ),
    _one(
        "sds_mirror_paused",
        Kind.GAUGE,
        "1 while nothing is read from nodes because the spool is full.",
        lambda m: int(m.is_paused),
    ),
    _one(
        "sds_mirror_last_seq",
        Kind.GAUGE,
        "Last number that was given to a frame.",
        lambda m: m.last_seq,
    ),
)
"""Of a mirror, at its own `/metrics`."""

ALL_METRICS: tuple[Metric[Any], ...] = (
    *CHANNEL_METRICS,
    *SETTINGS_METRICS,
    *TAP_METRICS,
    *SNAPSHOT_METRICS,
    *MIRROR_METRICS,
    *NODE_METRICS,
)
"""Of every program."""
