"""Metrics of the whole snapshot, the job, and the channel table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from sds_core.metrics import Metric, MetricKind, Sample, in_seconds, one_sample
from sds_core.observer.channel_table import ChannelSettings
from sds_core.observer.excused import Excuse, ExcusedFindings
from sds_core.observer.kinds import AnyKind
from sds_core.observer.settings import DEFAULTS
from sds_core.observer.snapshot import OTHER, Snapshot, Views
from sds_core.observer.verdict import Verdict
from sds_core.reason import Reason


def settings_metrics(kind: AnyKind) -> list[Metric[ChannelSettings]]:
    """Return the metrics that show a view's settings in the channel table.

    The name of each metric begins with the prefix of the view's kind, followed by the
    kind's word for one view, such as `sds_channel`.
    """
    one, name = kind.names.one, f"{kind.prefix}_{kind.names.one}"
    objectives: Metric[ChannelSettings] = Metric(
        f"{name}_objective_ratio",
        MetricKind.GAUGE,
        f"SLO of the {one}: minimum share of deliveries that succeed (delivery), and "
        "minimum share of messages that are acknowledged in time (acknowledgement).",
        ("objective",),
        lambda c: [
            (("delivery",), c.delivery_objective),
            (("acknowledgement",), c.acknowledgement_objective),
        ],
    )
    return [
        Metric(
            name,
            MetricKind.INFO,
            f"Name of the {one}, or the id of a {one} without a name.",
            ("name",),
            lambda c: [((c.name,), 1)],
        ),
        *([objectives] if kind.has_objectives else []),
        one_sample(
            f"{name}_muted_until_timestamp_seconds",
            f"Wall time until which the {one} is muted.",
            lambda c: in_seconds(c.mute_until_ms),
        ),
    ]


def _undecodable_by_reason(snapshot: Snapshot) -> Iterable[Sample]:
    # The checkpoint may contain reasons that only older releases used. These reasons
    # are not in `Reason`, but are exported too.
    counts = {reason.value: 0 for reason in Reason} | dict(snapshot.undecodable)
    return [((reason,), count) for reason, count in counts.items()]


def _by_verdict(kind: AnyKind) -> Metric[Snapshot]:
    def samples(snapshot: Snapshot) -> Iterable[Sample]:
        totals = snapshot.views[kind.prefix].totals.values()
        verdicts = [one.verdict for one in totals]
        return [((verdict.value,), verdicts.count(verdict)) for verdict in Verdict]

    many = kind.names.many
    return Metric(
        f"{kind.prefix}_{many}",
        MetricKind.GAUGE,
        f"{many.capitalize()} by verdict.",
        ("verdict",),
        samples,
    )


def _in_state(kind: AnyKind) -> Metric[Snapshot]:
    many = kind.names.many
    return one_sample(
        f"sds_monitor_state_{many}",
        f"{many.capitalize()} in the state store.",
        lambda s: len(s.views[kind.prefix].totals),
    )


def _without_label(kind: AnyKind) -> Metric[Snapshot]:
    many = kind.names.many
    return one_sample(
        f"sds_monitor_dropped_label_{many}",
        f"{many.capitalize()} beyond the cardinality limit, exported together as "
        "`other`.",
        lambda s: s.views[kind.prefix].unlabelled,
    )


_Findings = Callable[[Views[Any]], Iterable[tuple[str, tuple[str, ...], int]]]
"""Reads rows from the views of a kind.

A row has the name of a view, the values of the other labels, and a number.
"""


def _by_view(read: _Findings) -> Callable[[Snapshot], Iterable[Sample]]:
    """Return a function that adds up the numbers of rows with the same labels.

    All views without a metric label of their own have the label `other`.
    """

    def samples(snapshot: Snapshot) -> Iterable[Sample]:
        sums: dict[tuple[str, ...], int] = {}
        for views in snapshot.views.values():
            labels = set(views.labels)
            for name, further, number in read(views):
                key = (name if name in labels else OTHER, *further)
                sums[key] = sums.get(key, 0) + number
        return sums.items()

    return samples


def _excused(
    views: Views[Any], read: Callable[[ExcusedFindings], int]
) -> Iterable[tuple[str, tuple[str, ...], int]]:
    for name, findings in views.excused.items():
        for one in findings:
            yield name, (one.kind,), read(one)


def _unexcused(views: Views[Any]) -> Iterable[tuple[str, tuple[str, ...], int]]:
    yield from _excused(views, lambda one: one.counted)
    # The findings of `other` are those of all views without a label, so views without
    # excused findings count too.
    others = views.totals.keys() - set(views.labels)
    excused = {
        name: {one.kind for one in views.excused[name]}
        for name in others & views.excused.keys()
    }
    kinds = frozenset[str]().union(*excused.values())
    for name in others if kinds else ():
        # If everything is excused, the result has all findings.
        for one in views.kind.excused(views.totals[name], _everything, DEFAULTS):
            if one.kind in kinds - excused.get(name, set()):
                yield name, (one.kind,), one.excused


_everything = partial(Excuse, "")


def _tap_clocks(snapshot: Snapshot) -> Iterable[Sample]:
    """Return the clock offset of each tap in seconds.

    Among the taps without a metric label, only the offset with the greatest absolute
    value is returned, with the label `other`.
    """
    labels = set(snapshot.tap_labels)
    found: dict[str, int] = {}
    for observer, offset_ms in snapshot.job.clock.taps.items():
        label = observer if observer in labels else OTHER
        found[label] = max(offset_ms, found.get(label, 0), key=abs)
    return [((label,), offset_ms / 1000) for label, offset_ms in found.items()]


def snapshot_metrics(kinds: Iterable[AnyKind]) -> list[Metric[Snapshot]]:
    """Return the metrics that are not computed from the totals of a single view."""
    kinds = list(kinds)
    return [
        Metric(
            "sds_undecodable_frames_total",
            MetricKind.COUNTER,
            "Records that could not be decoded and went to the dead-letter topic.",
            ("reason",),
            _undecodable_by_reason,
        ),
        *map(_by_verdict, kinds),
        Metric(
            "sds_excused_findings",
            MetricKind.GAUGE,
            "Findings in the verdict's window that the verdict ignores, because taps "
            "or the mirror may have missed messages; absent for a kind without ignored "
            "findings.",
            ("channel", "kind"),
            _by_view(lambda views: _excused(views, lambda one: one.excused)),
        ),
        Metric(
            "sds_unexcused_findings",
            MetricKind.GAUGE,
            "Findings in the verdict's window that the verdict does not ignore; absent "
            "for a kind without ignored findings.",
            ("channel", "kind"),
            _by_view(_unexcused),
        ),
        Metric(
            "sds_alert_held_back",
            MetricKind.GAUGE,
            "Findings that an alert ignores, because taps or the mirror may have "
            "missed messages; present only while the alert does not fire, but would "
            "fire if these findings counted.",
            ("channel", "alert", "reason"),
            _by_view(
                lambda views: (
                    (name, (one.alert, one.excuse.reason), one.excused)
                    for name, one in views.held_back
                )
            ),
        ),
        Metric(
            "sds_tap_clock_offset_seconds",
            MetricKind.GAUGE,
            "Clock of the tap minus Kafka's clock, or minus this machine's clock if "
            "Kafka's clock is unknown; absent while the tap writes no records.",
            ("observer",),
            _tap_clocks,
        ),
        one_sample(
            "sds_monitor_ok",
            "1 if Kafka answers, the topic exists, the monitor has no lag and a right "
            "clock, no open transaction withholds records, at least one channel or "
            "group has a verdict, and every failing or blind one is muted.",
            lambda s: int(s.ok),
        ),
        one_sample(
            "sds_monitor_records_total", "Kafka records read.", lambda s: s.job.records
        ),
        one_sample(
            "sds_monitor_records_lost_total",
            "Kafka records that Kafka deleted before the monitor read them.",
            lambda s: s.job.records_lost,
        ),
        one_sample(
            "sds_monitor_dead_letters_unwritten_total",
            "Dead letters that the monitor could not write since the process started, "
            "because Kafka refused them.",
            lambda s: s.job.dead_letters_unwritten,
        ),
        one_sample(
            "sds_monitor_records_behind",
            "Kafka records in the topic that have not been read yet, including "
            "records of open transactions.",
            lambda s: s.job.records_behind,
        ),
        one_sample(
            "sds_monitor_event_time_lag_seconds",
            "Newest record time minus the watermark of the newest batch; while Kafka "
            "does not answer, the difference grows with time.",
            lambda s: s.job.event_time_lag_seconds,
        ),
        one_sample(
            "sds_monitor_kafka_answered_timestamp_seconds",
            "Wall time at which Kafka last answered the monitor.",
            lambda s: in_seconds(s.job.kafka.answered_ms),
        ),
        one_sample(
            "sds_monitor_topic_missing_since_timestamp_seconds",
            "Wall time from which the topic has been missing; absent while it exists.",
            lambda s: in_seconds(s.job.topic_missing_since_ms),
        ),
        one_sample(
            "sds_monitor_clock_behind_seconds",
            "Kafka's clock minus this machine's clock; absent if Kafka's clock is "
            "unknown.",
            lambda s: in_seconds(s.job.clock.behind_ms),
        ),
        one_sample(
            "sds_monitor_records_ahead_seconds",
            "By how much the times of the taps' new records are ahead of this "
            "machine's clock (median of the taps); negative if they are behind.",
            lambda s: in_seconds(s.job.clock.records_ahead_ms),
        ),
        one_sample(
            "sds_monitor_batch_duration_seconds",
            "Duration of the job's batches.",
            lambda s: s.job.batch_duration,
            MetricKind.HISTOGRAM,
        ),
        one_sample(
            "sds_monitor_state_bytes",
            "Memory that Spark's state store occupies.",
            lambda s: s.job.state_bytes,
        ),
        *map(_in_state, kinds),
        one_sample(
            "sds_monitor_history_pending",
            "Rows of the history that are not yet copied to the Kafka topics or to the "
            "Parquet files.",
            lambda s: s.job.history_pending,
        ),
        one_sample(
            "sds_monitor_history_stalled_seconds",
            "Maximum time for which rows have waited for a topic or table of the "
            "history that accepted none; up to about 60 while nothing fails.",
            lambda s: s.job.history_stalled_seconds,
        ),
        one_sample(
            "sds_monitor_restarts_total",
            "Starts of the job on this checkpoint, except the first start.",
            lambda s: s.job.restarts,
        ),
        one_sample(
            "sds_monitor_stalls_total",
            "Number of times since the process started that a query was restarted, "
            "because it made no progress although Kafka answered.",
            lambda s: s.job.stalls,
        ),
        *map(_without_label, kinds),
        Metric(
            "sds_monitor_build",
            MetricKind.INFO,
            "Version of the monitor, and whether its rules run compiled or "
            "interpreted.",
            ("version", "rules"),
            lambda s: [((s.job.version, s.job.rules), 1)],
        ),
    ]
