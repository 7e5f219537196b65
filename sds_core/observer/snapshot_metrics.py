"""Metrics of the snapshot as a whole, of the job, and of the channel table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sds_core.metrics import Metric, MetricKind, Sample, in_seconds, one_sample
from sds_core.observer.channel_table import ChannelSettings
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.snapshot import OTHER, Snapshot, Views
from sds_core.observer.verdict import Verdict
from sds_core.reason import Reason

SETTINGS_METRICS: tuple[Metric[ChannelSettings], ...] = (
    Metric(
        "sds_channel",
        MetricKind.INFO,
        "Name of the channel; its id if it has none.",
        ("name",),
        lambda c: [((c.name,), 1)],
    ),
    Metric(
        "sds_channel_objective_ratio",
        MetricKind.GAUGE,
        "Shares of deliveries and of messages in time that the channel should reach.",
        ("objective",),
        lambda c: [
            (("delivery",), c.delivery_objective),
            (("acknowledgement",), c.acknowledgement_objective),
        ],
    ),
    one_sample(
        "sds_channel_muted_until_timestamp_seconds",
        MetricKind.GAUGE,
        "Wall time until which the channel is muted.",
        lambda c: in_seconds(c.mute_until_ms),
    ),
)
"""Settings of the channel table for each channel, labelled `channel`."""


def _channels(snapshot: Snapshot) -> Views[Any]:
    return snapshot.views[CHANNELS.prefix]


def _undecodable_by_reason(snapshot: Snapshot) -> Iterable[Sample]:
    # A checkpoint may hold a reason that only an older release knew.
    counts = {reason.value: 0 for reason in Reason} | dict(snapshot.undecodable)
    return [((reason,), count) for reason, count in counts.items()]


def _channels_by_verdict(snapshot: Snapshot) -> Iterable[Sample]:
    verdicts = [totals.verdict for totals in _channels(snapshot).totals.values()]
    return [((verdict.value,), verdicts.count(verdict)) for verdict in Verdict]


def _by_channel(
    snapshot: Snapshot, kinds: Iterable[tuple[str, tuple[str, ...], int]]
) -> Iterable[Sample]:
    """Add numbers up by channel; those without a label of their own are `other`.

    Args:
        snapshot: Has the labels.
        kinds: Channel, further labels and number.
    """
    labels = set(_channels(snapshot).labels)
    sums: dict[tuple[str, ...], int] = {}
    for channel, others, number in kinds:
        key = (channel if channel in labels else OTHER, *others)
        sums[key] = sums.get(key, 0) + number
    return sums.items()


def _excused(snapshot: Snapshot) -> Iterable[Sample]:
    return _by_channel(
        snapshot,
        (
            (channel, (one.kind,), one.excused)
            for channel, findings in _channels(snapshot).excused.items()
            for one in findings
        ),
    )


def _unexcused(snapshot: Snapshot) -> Iterable[Sample]:
    return _by_channel(
        snapshot,
        (
            (channel, (one.kind,), one.counted)
            for channel, findings in _channels(snapshot).excused.items()
            for one in findings
        ),
    )


def _held_back(snapshot: Snapshot) -> Iterable[Sample]:
    return _by_channel(
        snapshot,
        (
            (channel, (one.alert, one.excuse.reason), one.excused)
            for channel, one in _channels(snapshot).held_back
        ),
    )


def _tap_clocks(snapshot: Snapshot) -> Iterable[Sample]:
    """Offsets by tap; of the taps without a label the greatest one is `other`."""
    labels = set(snapshot.tap_labels)
    found: dict[str, int] = {}
    for observer, offset_ms in snapshot.job.clock.taps.items():
        label = observer if observer in labels else OTHER
        found[label] = max(offset_ms, found.get(label, 0), key=abs)
    return [((label,), offset_ms / 1000) for label, offset_ms in found.items()]


SNAPSHOT_METRICS: tuple[Metric[Snapshot], ...] = (
    Metric(
        "sds_undecodable_frames_total",
        MetricKind.COUNTER,
        "Records that could not be decoded and went to the dead-letter topic.",
        ("reason",),
        _undecodable_by_reason,
    ),
    Metric(
        "sds_channels",
        MetricKind.GAUGE,
        "Channels by verdict.",
        ("verdict",),
        _channels_by_verdict,
    ),
    Metric(
        "sds_excused_findings",
        MetricKind.GAUGE,
        "Findings in the verdict's window that do not count because the taps, or the "
        "mirror, may have missed messages; absent if all findings of the kind count.",
        ("channel", "kind"),
        _excused,
    ),
    Metric(
        "sds_unexcused_findings",
        MetricKind.GAUGE,
        "Findings of the same kind that count; only beside `sds_excused_findings`.",
        ("channel", "kind"),
        _unexcused,
    ),
    Metric(
        "sds_alert_held_back",
        MetricKind.GAUGE,
        "Findings for which an alert would have reason to fire, if the taps, or the "
        "mirror, had missed nothing; absent if no alert is held back.",
        ("channel", "alert", "reason"),
        _held_back,
    ),
    Metric(
        "sds_tap_clock_offset_seconds",
        MetricKind.GAUGE,
        "Clock of the tap less Kafka's, or less this machine's if Kafka does not tell "
        "its time; absent while the tap writes no records.",
        ("observer",),
        _tap_clocks,
    ),
    one_sample(
        "sds_monitor_ok",
        MetricKind.GAUGE,
        "1 while Kafka answers and has the topic, the monitor runs, is not behind and "
        "has no wrong clock, some channel has a verdict, and every channel that is "
        "failing or blind is muted.",
        lambda s: int(s.ok),
    ),
    one_sample(
        "sds_monitor_records_total",
        MetricKind.COUNTER,
        "Kafka records read.",
        lambda s: s.job.records,
    ),
    one_sample(
        "sds_monitor_records_lost_total",
        MetricKind.COUNTER,
        "Kafka records that were deleted before they could be read.",
        lambda s: s.job.records_lost,
    ),
    one_sample(
        "sds_monitor_dead_letters_unwritten_total",
        MetricKind.COUNTER,
        "Dead letters that Kafka refused since the process started, so that they are "
        "only counted.",
        lambda s: s.job.dead_letters_unwritten,
    ),
    one_sample(
        "sds_monitor_records_behind",
        MetricKind.GAUGE,
        "Kafka records in the topic that have not been read yet.",
        lambda s: s.job.records_behind,
    ),
    one_sample(
        "sds_monitor_event_time_lag_seconds",
        MetricKind.GAUGE,
        "Newest record time less the admission time of the newest batch; while Kafka "
        "does not answer, it grows as time passes.",
        lambda s: s.job.event_time_lag_seconds,
    ),
    one_sample(
        "sds_monitor_kafka_answered_timestamp_seconds",
        MetricKind.GAUGE,
        "Wall time at which Kafka last answered the monitor.",
        lambda s: in_seconds(s.job.kafka.answered_ms),
    ),
    one_sample(
        "sds_monitor_topic_missing_since_timestamp_seconds",
        MetricKind.GAUGE,
        "Wall time since which the topic does not exist; absent while it does.",
        lambda s: in_seconds(s.job.topic_missing_since_ms),
    ),
    one_sample(
        "sds_monitor_clock_behind_seconds",
        MetricKind.GAUGE,
        "Kafka's clock less this machine's; absent if Kafka does not tell its time.",
        lambda s: in_seconds(s.job.clock.behind_ms),
    ),
    one_sample(
        "sds_monitor_records_ahead_seconds",
        MetricKind.GAUGE,
        "Time by which new records are stamped ahead of this machine's clock, the "
        "median of the taps; negative if they are behind.",
        lambda s: in_seconds(s.job.clock.records_ahead_ms),
    ),
    one_sample(
        "sds_monitor_batch_duration_seconds",
        MetricKind.HISTOGRAM,
        "Duration of the job's batches.",
        lambda s: s.job.batch_duration,
    ),
    one_sample(
        "sds_monitor_state_bytes",
        MetricKind.GAUGE,
        "Memory of the state store.",
        lambda s: s.job.state_bytes,
    ),
    one_sample(
        "sds_monitor_state_channels",
        MetricKind.GAUGE,
        "Channels held in the state.",
        lambda s: len(_channels(s).totals),
    ),
    one_sample(
        "sds_monitor_history_pending",
        MetricKind.GAUGE,
        "Rows of the history that wait for the Kafka topics or the Parquet files.",
        lambda s: s.job.history_pending,
    ),
    one_sample(
        "sds_monitor_restarts_total",
        MetricKind.COUNTER,
        "Starts of the job on this checkpoint after the first.",
        lambda s: s.job.restarts,
    ),
    one_sample(
        "sds_monitor_dropped_label_channels",
        MetricKind.GAUGE,
        "Channels beyond the label budget, exported together as `other`.",
        lambda s: _channels(s).unlabelled,
    ),
    Metric(
        "sds_monitor_build",
        MetricKind.INFO,
        "Version of the monitor, and the form in which its rules run.",
        ("version", "rules"),
        lambda s: [((s.job.version, s.job.rules), 1)],
    ),
)
"""Metrics of the whole snapshot, without a label of a view."""
