"""All metrics that monitor, mirror and audit declare."""

from __future__ import annotations

from typing import Any

from sds_core.audit.figures import AUDIT_METRICS
from sds_core.metrics import Metric
from sds_core.mirror.metrics import MIRROR_METRICS, NODE_METRICS
from sds_core.observer.mvds.figures import GROUP_FIGURES
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.snapshot_metrics import SETTINGS_METRICS, SNAPSHOT_METRICS
from sds_core.observer.tap_figures import TAP_FIGURES

ALL_METRICS: tuple[Metric[Any], ...] = (
    *CHANNEL_FIGURES.metrics,
    *GROUP_FIGURES.metrics,
    *SETTINGS_METRICS,
    *TAP_FIGURES.metrics,
    *SNAPSHOT_METRICS,
    *MIRROR_METRICS,
    *NODE_METRICS,
    *AUDIT_METRICS,
)
"""In the order in which they are exported."""
