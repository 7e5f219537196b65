"""Alerts on the monitor itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from dashboards import CAPACITY, MONITOR
from dashboards import thresholds as at
from dashboards.rules.alert import Alert, Severity, Subject, graded
from dashboards.rules.pace import LIFE, Pace
from dashboards.rules.promql import growth, latest, summed
from dashboards.rules.recording import BLIND

_alert = partial(Alert, subject=Subject.MONITOR, dashboard=MONITOR)


def monitor_alerts(pace: Pace) -> Iterator[Alert]:
    """Yield the alerts on the monitor; alerts on the most basic problems are first."""
    ok = "sds_monitor_ok"
    seen = f"last_over_time({ok}[{pace(at.MONITOR_SEEN_WITHIN)}])"
    yield _alert(
        "SdsMonitorDown",
        Severity.CRITICAL,
        f"({latest(seen)}\nunless on (job) {ok})\n"
        # If Prometheus has no earlier sample of the metric, only `absent` detects that
        # the monitor is missing.
        f"or on () absent({ok})",
        "Prometheus receives no metrics of the monitor.",
        f"For {LIFE(at.MONITOR_DOWN_FOR)}, Prometheus received no metric "
        "sds_monitor_ok: the monitor is down or unreachable.",
        holds=at.MONITOR_DOWN_FOR,
    )
    window = pace(at.STOPPED_WINDOW)
    start = pace(at.STOPPED_SEEN_BEFORE)
    first = pace(at.STOPPED_WINDOW - at.STOPPED_SEEN_BEFORE)
    blind = f"max_over_time({BLIND}[{window}])"
    behind = f"max_over_time(sds_monitor_records_behind[{window}])"
    batches = f"increase(sds_monitor_batch_duration_seconds_count[{window}])"
    yield _alert(
        "SdsMonitorStopped",
        Severity.CRITICAL,
        # The alert has no `for`: a process that exits repeatedly leaves gaps in the
        # series, and each gap would restart the waiting time of `for`.
        f"{latest(f'max_over_time({ok}[{window}])')} == 0\n"
        f"and {latest(f'last_over_time({ok}[{first}] offset {start})')} == 0\n"
        f"unless {summed(batches)} > 0\n"
        # If no records arrive, the job has no work, and channels and groups become
        # blind. Then the alert must not fire.
        f"unless ({latest(blind, 'channel')} > 0 and {latest(behind)} == 0)",
        "The monitor answers requests, but its Spark job does not work.",
        f"The job finished no batch in the last {LIFE(at.STOPPED_WINDOW)}: it is "
        "still starting, hangs, or stops repeatedly.",
    )
    answered = latest("sds_monitor_kafka_answered_timestamp_seconds")
    yield _alert(
        "SdsMonitorKafkaAway",
        Severity.CRITICAL,
        f"time() - {answered} > {at.KAFKA_SILENT_SECONDS:g}",
        "Kafka does not answer the monitor.",
        "Kafka has not answered for {{ $value | humanizeDuration }}: all figures "
        "date from its last answer.",
        holds=at.KAFKA_AWAY_FOR,
    )
    for severity, holds in graded(at.BEHIND_FOR, at.BEHIND_STILL):
        yield _alert(
            "SdsMonitorBehind",
            severity,
            f"{latest('sds_monitor_event_time_lag_seconds')} > {at.BEHIND_SECONDS}",
            "The figures are old, because the monitor does not keep up with the topic.",
            "The newest batch lags {{ $value | humanizeDuration }} behind the newest "
            "record.",
            holds=holds,
        )
    behind = latest("sds_monitor_clock_behind_seconds")
    ahead = latest("sds_monitor_records_ahead_seconds")
    for severity, seconds in graded(at.CLOCK_SECONDS, at.CLOCK_CRITICAL_SECONDS):
        yield _alert(
            "SdsMonitorClockWrong",
            severity,
            f"abs({behind}) > {seconds:g}\n"
            # If Kafka's clock is unknown, only records with times in the future prove
            # that the clock is wrong. A record with an old time may have arrived late.
            f"or ({ahead} > {seconds:g} unless {behind})",
            "The monitor's clock is wrong.",
            "The monitor's clock differs by {{ $value | humanizeDuration }} from "
            "Kafka's clock or, if Kafka's clock is unknown, from the times of new "
            "records. Records whose time is more than "
            f"{at.CLOCK_CRITICAL_SECONDS:g} s ahead of the monitor's clock become dead "
            "letters.",
            holds=at.CLOCK_FOR,
        )
    restarts = growth("sds_monitor_restarts_total", at.RESTART_WINDOW, pace)
    yield _alert(
        "SdsMonitorRestarting",
        Severity.WARNING,
        f"{restarts} >= {at.RESTARTS}",
        "The monitor restarts repeatedly.",
        'The monitor started {{ printf "%.0f" $value }} times in the last '
        f"{LIFE(at.RESTART_WINDOW)}.",
    )
    letters = growth("sds_undecodable_frames_total", at.DEAD_LETTER_WINDOW, pace)
    yield _alert(
        "SdsDeadLetters",
        Severity.WARNING,
        f"{letters} >= {at.DEAD_LETTERS}",
        "The monitor rejected some records as invalid.",
        '{{ printf "%.0f" $value }} records in the last '
        f"{LIFE(at.DEAD_LETTER_WINDOW)} went to the dead-letter topic, reason "
        "{{ $labels.reason }}.",
    )
    lost = growth("sds_monitor_records_lost_total", at.RECORDS_LOST_WINDOW, pace)
    yield _alert(
        "SdsRecordsLost",
        Severity.WARNING,
        f"{lost} > 0",
        "Kafka deleted records before the monitor read them.",
        'Kafka deleted {{ printf "%.0f" $value }} unread records in the last '
        f"{LIFE(at.RECORDS_LOST_WINDOW)}: the figures have a gap.",
    )
    stalled = latest("sds_monitor_history_stalled_seconds")
    yield _alert(
        "SdsHistoryStuck",
        Severity.WARNING,
        f"{stalled} > {at.HISTORY_STALLED.total_seconds():g}",
        "The monitor cannot write its history to files or Kafka topics.",
        "A topic or table of the history has accepted no rows for "
        "{{ $value | humanizeDuration }}.",
    )
    channels = latest("sds_monitor_dropped_label_channels")
    groups = latest("sds_monitor_dropped_label_groups")
    yield _alert(
        "SdsLabelBudgetExhausted",
        Severity.INFO,
        # A monitor of version 0.15 or earlier does not export the number of groups. The
        # number then counts as 0.
        f"{channels} + ({groups} or 0 * {channels}) > 0",
        "Some channels or groups have no series of their own in Prometheus.",
        '{{ printf "%.0f" $value }} channel(s) or group(s) are beyond the cardinality '
        "limit and exported together as `other`.",
        at.LABELS_FOR,
        dashboard=CAPACITY,
    )
