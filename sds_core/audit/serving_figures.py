"""Figures of a server of synchronisations, and their metrics."""

from __future__ import annotations

from dataclasses import dataclass

from sds_core.metrics import Metric, one_sample


@dataclass(slots=True)
class ServingFigures:
    """What a server has done since it started.

    Attributes:
        messages: Messages that it serves; None before it serves any.
        connections: Connections in all.
        refused: Connections that ended by a fault of the peer, without a valid token,
            or one too many.
        sessions: Synchronisations that began.
        differing_roots: Of those by the document's protocol, how many showed that this
            side does not have the same messages.
        records: Records that were sent.
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
        "Connections that were one too many, had no valid token, or ended by a fault "
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
        "Synchronisations by the document's protocol with a mirror that has other "
        "messages.",
        lambda s: s.differing_roots,
    ),
    one_sample(
        "sds_audit_serve_records_total",
        "Records that were sent to other mirrors.",
        lambda s: s.records,
    ),
)
"""Metrics of `sds-monitor audit serve`, at its own `/metrics`."""
