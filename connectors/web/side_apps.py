"""The web applications of a mirror, of a repeated audit, and of `audit serve`."""

from __future__ import annotations

from typing import TypedDict

from starlette.applications import Starlette
from starlette.requests import Request

from connectors.prometheus.collector import FiguresCollector, MirrorCollector
from connectors.web.health import metrics_app
from connectors.web.operations import NoQuery, json_operation
from sds_core.audit.figures import AUDIT_METRICS, AuditFigures
from sds_core.audit.serving_figures import SERVING_METRICS, ServingFigures
from sds_core.mirror.figures import MirrorFigures

NEWEST = "/api/v1/audit"
"""Path of an audit's newest result. `sds-monitor run --audit` reads this path."""


class AuditObject(TypedDict):
    """Result of an audit.

    Attributes:
        ended_ms: Wall time at which the audit ended, Unix ms.
        is_complete: Whether the mirror now has all messages that the other side has.
        missing_here: Number of messages that the other side has and the mirror still
            lacks.
        missing_there: Number of messages that the mirror has and the other side lacks.
        missing_before_begin: Number of messages that the mirror lacked during the
            comparison and that were sent before the mirror's first record.
        mirror_begin_ms: Time of the mirror's first record, Unix ms; null if the mirror
            has no records.
        newest_missing_ms: For each channel id, the time of the newest message that the
            mirror lacks, Unix ms.
    """

    ended_ms: int | None
    is_complete: bool
    missing_here: int
    missing_there: int
    missing_before_begin: int
    mirror_begin_ms: int | None
    newest_missing_ms: dict[str, int]


class AuditAnswer(TypedDict):
    """The newest result of an audit.

    Attributes:
        audit: The result; null until the first audit has ended.
        error: Why the newest audit failed; empty if it succeeded.
    """

    audit: AuditObject | None
    error: str


def create_mirror_app(figures: MirrorFigures) -> Starlette:
    """Return the application of a mirror.

    The mirror is ready if at least one node answers and the spool has room.
    """

    def obstacle() -> str:
        if figures.is_paused:
            return "the spool is full or cannot be written"
        if not any(node.is_up for node in figures.nodes.values()):
            return "no node answers"
        return ""

    return metrics_app(MirrorCollector(figures), obstacle)


def create_serving_app(figures: ServingFigures) -> Starlette:
    """Return the application of `audit serve`.

    `audit serve` is ready when it has read the topic.
    """
    return metrics_app(
        FiguresCollector(SERVING_METRICS, figures),
        lambda: (
            "the server is still reading the topic" if figures.messages is None else ""
        ),
    )


def create_audit_app(figures: AuditFigures) -> Starlette:
    """Return the application of a repeated audit; ready if the newest one succeeded."""

    def obstacle() -> str:
        if figures.result is None or figures.error:
            return figures.error or "the first audit has not ended yet"
        return ""

    def newest(request: Request, query: NoQuery) -> AuditAnswer:
        """Return the newest result of the audit."""
        result = figures.result
        if result is None:
            return {"audit": None, "error": figures.error}
        return {
            "audit": {
                "ended_ms": figures.result_ms,
                "is_complete": result.is_complete,
                "missing_here": len(result.missing_here) - result.remirrored,
                "missing_there": len(result.missing_there),
                "missing_before_begin": result.missing_before_begin,
                "mirror_begin_ms": result.mirror_begin_ms,
                "newest_missing_ms": dict(result.newest_missing_ms),
            },
            "error": figures.error,
        }

    collector = FiguresCollector(AUDIT_METRICS, figures)
    return metrics_app(collector, obstacle, json_operation(NEWEST, newest))
