"""Figures of a repeated audit, and their metrics (``sds_audit_*``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sds_core.audit.result import AuditResult
from sds_core.metrics import Metric, MetricKind, in_seconds, one_sample

_NS_PER_S = 1_000_000_000


@dataclass(slots=True)
class AuditFigures:
    """Results of the audits since the process started.

    Attributes:
        result: Result of the newest audit that succeeded; None before the first
            success.
        result_ms: When the newest successful audit ended, Unix ms; None before the
            first success.
        error: Why the newest audit failed; empty if it succeeded.
        consecutive_failures: Number of audits that failed since the newest success.
    """

    result: AuditResult | None = None
    result_ms: int | None = None
    error: str = ""
    consecutive_failures: int = 0
    runs: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("complete", "incomplete", "failed"), 0)
    )
    remirrored: int = 0

    def ended(self, result: AuditResult, now_ms: int) -> None:
        """Record the result of an audit that succeeded."""
        self.result = result
        self.result_ms = now_ms
        self.error = ""
        self.consecutive_failures = 0
        self.runs["complete" if result.is_complete else "incomplete"] += 1
        self.remirrored += result.remirrored

    def failed(self, error: str) -> None:
        """Record that an audit failed; `error` is one line of text."""
        self.error = error
        self.consecutive_failures += 1
        self.runs["failed"] += 1


def _sides(figures: AuditFigures) -> Sequence[tuple[tuple[str], int]]:
    result = figures.result
    if result is None:
        return ()
    return ((("here",), result.here), (("there",), result.there))


def _missing(figures: AuditFigures) -> Sequence[tuple[tuple[str], int]]:
    result = figures.result
    if result is None:
        return ()
    return (
        (("here",), len(result.missing_here) - result.remirrored),
        (("there",), len(result.missing_there)),
    )


AUDIT_METRICS: tuple[Metric[AuditFigures], ...] = (
    Metric(
        "sds_audit_missing_messages",
        MetricKind.GAUGE,
        "Messages that one side lacked at the end of the newest audit.",
        ("side",),
        _missing,
    ),
    Metric(
        "sds_audit_messages",
        MetricKind.GAUGE,
        "Messages that the newest audit compared, by side.",
        ("side",),
        _sides,
    ),
    one_sample(
        "sds_audit_unidentified_records",
        "Records of the mirror in the newest audit that lacked a valid message hash or "
        "a valid message time.",
        lambda a: None if a.result is None else a.result.unidentified,
    ),
    one_sample(
        "sds_audit_last_success_timestamp_seconds",
        "Time at which the newest successful audit ended.",
        lambda a: in_seconds(a.result_ms),
    ),
    one_sample(
        "sds_audit_compared_until_timestamp_seconds",
        "End of the period that the newest audit compared, in the senders' timestamps.",
        lambda a: None if a.result is None else a.result.end_ns / _NS_PER_S,
    ),
    Metric(
        "sds_audit_runs_total",
        MetricKind.COUNTER,
        "Audits by result.",
        ("result",),
        lambda a: [((name,), count) for name, count in a.runs.items()],
    ),
    one_sample(
        "sds_audit_consecutive_failures",
        "Audits that failed since the newest successful audit.",
        lambda a: a.consecutive_failures,
    ),
    one_sample(
        "sds_audit_remirrored_total",
        "Messages that audits wrote to the mirror.",
        lambda a: a.remirrored,
    ),
)
"""Metrics that `sds-monitor audit --every` exports at its own `/metrics`."""
