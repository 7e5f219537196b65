"""All metrics that monitor, mirror and audit declare."""

from __future__ import annotations

from itertools import chain
from typing import Any

from sds_core.audit.figures import AUDIT_METRICS
from sds_core.audit.serving_figures import SERVING_METRICS
from sds_core.metrics import Metric
from sds_core.mirror.figures import MIRROR_METRICS, NODE_METRICS
from sds_core.observer.protocols import PROTOCOLS
from sds_core.observer.snapshot_metrics import settings_metrics, snapshot_metrics
from sds_core.observer.tap_kind import TAP_FIGURES
from sds_core.planning.plan import plan_metrics, plan_totals_metrics

_KINDS = [protocol.kind for protocol in PROTOCOLS]
_SETTINGS = {one.prefix: settings_metrics(one) for one in _KINDS}
_OF_VIEWS = [[*one.published.metrics, *_SETTINGS[one.prefix]] for one in _KINDS]

SETTINGS_METRICS = [*chain.from_iterable(_SETTINGS.values())]
SNAPSHOT_METRICS = snapshot_metrics(_KINDS)

FORECAST_METRICS = {one.prefix: plan_metrics(one) for one in _KINDS}
FORECASTS_METRICS = {one.prefix: plan_totals_metrics(one) for one in _KINDS}

ALL_METRICS: tuple[Metric[Any], ...] = (
    *_OF_VIEWS[0],
    *TAP_FIGURES.metrics,
    *chain.from_iterable(_OF_VIEWS[1:]),
    *SNAPSHOT_METRICS,
    *chain.from_iterable(
        [*FORECAST_METRICS[one.prefix], *FORECASTS_METRICS[one.prefix]]
        for one in _KINDS
    ),
    *MIRROR_METRICS,
    *NODE_METRICS,
    *AUDIT_METRICS,
    *SERVING_METRICS,
)
"""In the order in which they are exported."""
