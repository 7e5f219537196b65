"""Figures of a synchronisation server, and their metrics."""

from __future__ import annotations

from dataclasses import dataclass

from sds_core.metrics import Metric, one_sample


@dataclass(slots=True)
class ServingFigures:
    """Counts of a server since it started; `SERVING_METRICS` explains them.

    Attributes:
        messages: Number of messages that the server offers; None before it has loaded
            them.
    """

    messages: int | None = None
    connections: int = 0
    refused: int = 0
    sessions: int = 0
    differing_roots: int = 0
    records: int = 0


SERVING_METRICS: tuple[Metric[ServingFigures], ...] = (
    one_sample(
        "sds_audit_serve_messages",
        "Messages that other mirrors can compare.",
        lambda s: s.messages,
    ),
    one_sample(
        "sds_audit_serve_connections_total",
        "Connections of other mirrors.",
        lambda s: s.connections,
    ),
    one_sample(
        "sds_audit_serve_refused_total",
        "Connections that exceeded the limit, had no valid token, or ended by a fault "
        "of the peer.",
        lambda s: s.refused,
    ),
    one_sample(
        "sds_audit_serve_sessions_total",
        "Synchronisations that other mirrors began.",
        lambda s: s.sessions,
    ),
    one_sample(
        "sds_audit_serve_differing_roots_total",
        "Synchronisations by 75/WAKU2-SYNC with a mirror that has other messages.",
        lambda s: s.differing_roots,
    ),
    one_sample(
        "sds_audit_serve_records_total",
        "Records that were sent to other mirrors.",
        lambda s: s.records,
    ),
)
"""Metrics of `sds-monitor audit serve`, at its own `/metrics`."""
