"""Alerts on mirrors; each alert keeps the label `instance`, which names its mirror."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from dashboards import MONITOR
from dashboards import thresholds as at
from dashboards.rules.alert import Alert, Severity, Subject
from dashboards.rules.pace import LIFE, Pace

_alert = partial(Alert, subject=Subject.MIRROR, dashboard=MONITOR)


def mirror_alerts(pace: Pace) -> Iterator[Alert]:
    """Yield the alerts on mirrors, on their nodes and on audits."""
    # Each mirror exports exactly one series of this metric, so one alert fires for each
    # mirror that is down.
    figure = "sds_mirror_paused"
    seen = f"last_over_time({figure}[{pace(at.MIRROR_SEEN_WITHIN)}])"
    for severity, same, text in (
        (Severity.WARNING, "job, instance", ""),
        (Severity.CRITICAL, "job", ", and no other mirror of the same job is left"),
    ):
        yield _alert(
            "SdsMirrorDown",
            severity,
            f"max without (pod) ({seen})\nunless on ({same}) {figure}",
            "Prometheus receives no metrics of a mirror.",
            "Prometheus received no metrics of mirror {{ $labels.instance }} for "
            f"{LIFE(at.MIRROR_DOWN_FOR)}{text}.",
            at.MIRROR_DOWN_FOR,
        )
    yield _alert(
        "SdsMirrorNodeDown",
        Severity.WARNING,
        "sds_mirror_node_up == 0",
        "A mirror receives no valid answers from a node.",
        "Node {{ $labels.node }} has given mirror {{ $labels.instance }} no valid "
        f"answer for {LIFE(at.NODE_DOWN_FOR)}.",
        at.NODE_DOWN_FOR,
    )
    yield _alert(
        "SdsMirrorNodeDown",
        Severity.CRITICAL,
        "max without (node) (sds_mirror_node_up) == 0",
        "A mirror receives no valid answers from a node.",
        "No node has given mirror {{ $labels.instance }} a valid answer for "
        f"{LIFE(at.NODE_DOWN_FOR)}: the mirror receives no messages.",
        at.NODE_DOWN_FOR,
    )
    failing = f"increase(sds_mirror_kafka_failures_total[{pace(at.SPOOLING_FOR)}]) > 0"
    yield _alert(
        "SdsMirrorSpooling",
        Severity.WARNING,
        f"sds_mirror_spooled_records > 0\nand {failing}",
        "A mirror cannot write to Kafka, so it stores records on disk.",
        "Mirror {{ $labels.instance }} stores "
        '{{ printf "%.0f" $value }} records on disk until Kafka accepts them.',
        at.SPOOLING_FOR,
    )
    yield _alert(
        "SdsMirrorPaused",
        Severity.CRITICAL,
        "sds_mirror_paused == 1",
        "A mirror's spool is full or cannot be written, so the mirror reads nothing "
        "from its nodes.",
        "Mirror {{ $labels.instance }} reads nothing because its spool is full or "
        "cannot be written. "
        "When the caches of the mirror's nodes overflow, messages are lost.",
        at.PAUSED_FOR,
    )
    missing = 'sds_audit_missing_messages{side="here"}'
    yield _alert(
        "SdsMirrorIncomplete",
        Severity.WARNING,
        f"{missing} > 0",
        "An audit found that the mirror lacks messages.",
        "Audit {{ $labels.instance }}: the other side has "
        '{{ printf "%.0f" $value }} messages that the mirror lacks.',
        at.MIRROR_INCOMPLETE_FOR,
    )
    in_a_row = "sds_audit_consecutive_failures"
    within = pace(at.AUDIT_FAILING_WITHIN)
    failed = f'increase(sds_audit_runs_total{{result="failed"}}[{within}])'
    ended = f"changes(sds_audit_last_success_timestamp_seconds[{within}])"
    yield _alert(
        "SdsAuditFailing",
        Severity.WARNING,
        f"({in_a_row} >= {at.AUDIT_FAILURES}\n"
        # An audit of version 1.2 or earlier does not export the number of consecutive
        # failures.
        f"or (sum without (result) ({failed}) > 0 unless {in_a_row}))\n"
        f"unless on (job, instance) {ended} > 0",
        "Audits of the mirror fail.",
        "No audit of {{ $labels.instance }} has succeeded in the last "
        f"{LIFE(at.AUDIT_FAILING_WITHIN)}.",
        at.AUDIT_FAILING_FOR,
    )
    losses = (
        f"increase(sds_mirror_probable_losses_total[{pace(at.MIRROR_LOSS_WINDOW)}])"
    )
    yield _alert(
        "SdsMirrorLosing",
        Severity.WARNING,
        f"round({losses}) >= {at.MIRROR_LOSSES}",
        "A mirror probably misses messages.",
        "Mirror {{ $labels.instance }} probably missed messages "
        '{{ printf "%.0f" $value }} times in the last '
        f"{LIFE(at.MIRROR_LOSS_WINDOW)}, cause {{{{ $labels.cause }}}}.",
    )
