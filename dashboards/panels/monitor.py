"""Dashboard *Monitor itself*: are the figures of job, taps and mirrors reliable?"""

from __future__ import annotations

from grafana_foundation_sdk.models import dashboard as models

from dashboards import MONITOR, Links
from dashboards.panels import colours, queries
from dashboards.panels.base import Link, Panel
from dashboards.panels.charts import figure, heat, lines
from dashboards.panels.frame import assemble, in_lines, status_page
from dashboards.panels.mirror import AUDITS, MIRROR, NODES
from dashboards.panels.queries import JOB
from dashboards.panels.series import Query, now, per_second, per_step, quantiles
from dashboards.panels.tables import Column, moment, rows
from dashboards.thresholds import (
    BEHIND_SECONDS,
    CLOCK_SECONDS,
    HISTORY_STALLED,
    TAP_CLOCK_SECONDS,
    TAP_SILENT_SECONDS,
)
from sds_core.observer.snapshot import BEHIND_SECONDS as NOT_OK_SECONDS

_LAG: colours.Steps = (
    (None, colours.GOOD),
    (NOT_OK_SECONDS, colours.WARNING),
    (BEHIND_SECONDS, colours.BAD),
)


def monitor(links: Links) -> models.Dashboard:
    """Return the dashboard."""
    return assemble(
        links,
        MONITOR,
        "SDS / Monitor itself",
        "Are the figures reliable? Shows the monitor's job, the taps that write its "
        "records, and the mirrors.",
        {
            "": _FIGURES,
            "The job": in_lines(_OF_JOB, 3, 3, 3),
            "Taps and dead letters": _TAPS,
            "Mirror": MIRROR,
            "Nodes of the mirror": NODES,
            "Audits of mirrors": AUDITS,
        },
        pages=(Link("Taps", "/taps"), Link("The job", "/monitor")),
    )


_FIGURES: list[Panel] = [
    figure(
        "Lag",
        "Event-time lag of the figures behind the newest record. If the lag is above "
        "a minute, 'Is everything fine?' shows 'Look below'. Red: the alert's limit "
        "is reached.",
        queries.greatest("sds_monitor_event_time_lag_seconds", JOB),
        unit="s",
        steps=_LAG,
        absent="no batch yet",
    ),
    figure(
        "Lag in records",
        "Number of records in the topic that the monitor has not read yet. Normally, "
        "this number returns to about 0. If the number only grows, the monitor never "
        "catches up.",
        queries.greatest("sds_monitor_records_behind", JOB),
        absent="no figures",
    ),
    figure(
        "Restarts",
        "Starts: number of times in the chosen range that the job resumed from its "
        "checkpoint. One start after an upgrade is normal. Stalls: number of times "
        "that the Spark query restarted because it made no progress although Kafka "
        "answered.",
        Query(queries.counted("sds_monitor_restarts_total", JOB), "starts"),
        Query(queries.counted("sds_monitor_stalls_total", JOB), "stalls"),
        steps=colours.ANY_IS_SUSPECT,
        absent="no figures",
    ),
    figure(
        "Records lost",
        "Number of records in the chosen range that Kafka deleted before the monitor "
        "read them. If the value is above 0, the figures are permanently too low. The "
        "usual cause is that the topic's retention is shorter than the monitor's lag.",
        queries.counted("sds_monitor_records_lost_total", JOB),
        steps=colours.ANY_IS_BAD,
        absent="no figures",
    ),
    figure(
        "Dead letters",
        "Number of records in the chosen range that the monitor could not use. These "
        "records count in no other figure, except figures of taps.",
        queries.counted("sds_undecodable_frames_total", JOB),
        steps=colours.ANY_IS_SUSPECT,
        absent="no figures",
    ),
    figure(
        "Version",
        "Version of the running monitor.",
        now("sds_monitor_build_info", JOB, "{{version}}"),
        shows_name=True,
        absent="not running",
    ),
]

_ANSWERED = queries.greatest("sds_monitor_kafka_answered_timestamp_seconds", JOB)
_TOPIC_MISSING = queries.greatest(
    "sds_monitor_topic_missing_since_timestamp_seconds", JOB
)

_OF_JOB: list[Panel] = [
    lines(
        "Lag over time",
        "Event-time lag of the figures behind the newest record. Batches make the lag "
        "vary by a few seconds. The dashed line is the alert's limit. While Kafka "
        "does not answer, the line 'time since Kafka's last answer' rises.",
        now("sds_monitor_event_time_lag_seconds", JOB, "lag"),
        Query(f"time() - {_ANSWERED}", "time since Kafka's last answer"),
        # While the topic exists, `_TOPIC_MISSING` has no series, so the query returns
        # 0.
        Query(
            f"time() - {_TOPIC_MISSING} or 0 * {_ANSWERED}",
            "time since the topic disappeared",
        ),
        unit="s",
        limits=colours.line_at(BEHIND_SECONDS),
    ),
    heat(
        "Batch durations",
        "Number of batches by duration. If batches take longer than the event time "
        "that they cover, the lag grows.",
        "sds_monitor_batch_duration_seconds",
        JOB,
    ),
    lines(
        "Batch duration, quantiles",
        "The lines show the durations within which 50 %, 95 % and 99 % of the batches "
        "ended.",
        *quantiles("sds_monitor_batch_duration_seconds", JOB),
        unit="s",
    ),
    lines(
        "Records read",
        "Records per second that the monitor read from Kafka, including heartbeats. If "
        "the value stays 0, no records arrive, or the job hangs.",
        per_second("sds_monitor_records_total", JOB, "read"),
        unit="recps",
    ),
    lines(
        "Lag in records over time",
        "Records in the topic that the monitor has not read yet.",
        now("sds_monitor_records_behind", JOB, "behind"),
    ),
    lines(
        "State",
        "Memory of the monitor's state store. The dashboard Capacity shows details.",
        now("sds_monitor_state_bytes", JOB, "state"),
        unit="bytes",
    ),
    lines(
        "History pending",
        "Rows of the history that the monitor has not yet written to Kafka topics or "
        "Parquet files. The monitor writes files once a minute. If the lowest values "
        "rise, the monitor cannot write to a topic or file.",
        now("sds_monitor_history_pending", JOB, "rows"),
    ),
    lines(
        "History stalled",
        "How long rows of the history have waited while a Kafka topic or table of "
        "Parquet files accepted none. While nothing fails, the value stays below about "
        "a minute. The dashed line is the alert's limit.",
        now("sds_monitor_history_stalled_seconds", JOB, "stalled"),
        unit="s",
        limits=colours.line_at(HISTORY_STALLED.total_seconds()),
    ),
    lines(
        "Clock",
        "Seconds by which the monitor's clock is behind Kafka's clock, and behind the "
        "times of new records. If the value of 'behind Kafka' is negative, the "
        "monitor's clock is ahead. Ignore negative values of 'records ahead', because "
        "new records may arrive late. The dashed line is the alert's limit.",
        now("sds_monitor_clock_behind_seconds", JOB, "behind Kafka"),
        now("sds_monitor_records_ahead_seconds", JOB, "records ahead"),
        unit="s",
        limits=colours.line_at(CLOCK_SECONDS),
    ),
]

_SEEN = "sds_tap_last_seen_timestamp_seconds"
_MISSING = "sds_tap_missing_records_total"
_LAST = queries.greatest(_SEEN, JOB, "observer")

_TAPS: list[Panel] = [
    rows(
        "Taps",
        "Event-time lag of each tap behind the newest record of all taps. The tap "
        "with the longest lag comes first. Taps send heartbeats every 5 s, so a lag "
        "of a minute is long. The column 'Missing records' counts missing sequence "
        "numbers in the chosen range.",
        "observer",
        Column(
            "Behind the newest",
            f"scalar({queries.greatest(_SEEN, JOB)}) - {_LAST}",
            unit="s",
            steps=colours.up_to(TAP_SILENT_SECONDS),
        ),
        moment("Last record", _LAST),
        Column(
            "Missing records",
            queries.counted(_MISSING, JOB, "observer"),
            steps=colours.ANY_IS_BAD,
        ),
        headers={"observer": "Tap"},
        links={"observer": Link("Health of the taps", status_page("/taps"))},
        width=12,
        height=8,
    ),
    lines(
        "Missing records by tap",
        "Number of missing sequence numbers of each tap, per graph step. If the value "
        "is above 0, records were lost between tap and monitor. Losses in channels "
        "may then be the tap's fault.",
        per_step(_MISSING, JOB, "{{observer}}"),
        width=6,
    ),
    lines(
        "Dead letters by reason",
        "Number of records per graph step that the monitor could not use, by reason. "
        "If the reason 'future_timestamp' persists, the clock of a tap or of the "
        "monitor is wrong. If another reason persists, a tap or a sender's SDS library "
        "is faulty. If the only reason is 'protobuf_error', the topic may contain "
        "traffic other than SDS. The line 'not written' shows dead letters that Kafka "
        "refused.",
        per_step("sds_undecodable_frames_total", JOB, "{{reason}}"),
        per_step("sds_monitor_dead_letters_unwritten_total", JOB, "not written"),
        width=6,
    ),
    lines(
        "Clocks of the taps",
        "Seconds by which the clock of each tap is ahead of Kafka's clock. A negative "
        "value means that the tap's clock is behind. Because of network delays, the "
        "shown values are slightly too low. The dashed line is the alert's limit.",
        now("sds_tap_clock_offset_seconds", JOB, "{{observer}}"),
        unit="s",
        limits=colours.line_at(TAP_CLOCK_SECONDS),
        width=24,
    ),
]
