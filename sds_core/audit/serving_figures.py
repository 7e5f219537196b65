"""Figures of `sds-monitor audit serve`, and their metrics."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

from sds_core.metrics import Metric, one_sample


@dataclass(slots=True)
class ServingFigures:
    """Counts since the server started; `SERVING_METRICS` explains each count.

    `messages` is None until the server has loaded the mirror's messages.
    """

    messages: int | None = None
    connections: int = 0
    refused: int = 0
    sessions: int = 0
    differing_roots: int = 0
    records: int = 0


SERVING_METRICS: tuple[Metric[ServingFigures], ...] = tuple(
    one_sample(f"sds_audit_serve_{name}", text, attrgetter(name.removesuffix("_total")))
    for name, text in (
        (
            "messages",
            "Messages that other mirrors can compare with their own messages.",
        ),
        ("connections_total", "Connections of other mirrors."),
        (
            "refused_total",
            "Connections that exceeded the limit, had no valid token, or ended "
            "because of a fault of the peer.",
        ),
        ("sessions_total", "Synchronisations that other mirrors started."),
        (
            "differing_roots_total",
            "Synchronisations by 75/WAKU2-SYNC in which the other mirror's messages "
            "differed from this mirror's messages.",
        ),
        ("records_total", "Records that were sent to other mirrors."),
    )
)
"""Metrics that `sds-monitor audit serve` exports at its own `/metrics`."""
