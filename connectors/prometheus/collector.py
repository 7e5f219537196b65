"""Converts a snapshot to Prometheus metric families.

Each scrape reads the snapshot once, so all its samples are from one moment. The
collector stores nothing between scrapes, so a series ends when its source disappears.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

import msgspec
from msgspec.structs import replace
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from sds_core.metrics import Metric, MetricKind, Value
from sds_core.mirror.figures import (
    MIRROR_METRICS,
    NODE_METRICS,
    MirrorFigures,
    NodeFigures,
)
from sds_core.observer.channel_table import (
    DEFAULT_SETTINGS,
    ChannelSettings,
    ChannelTable,
)
from sds_core.observer.figure_table import FigureTable
from sds_core.observer.histogram import BUCKETS_MS, Histogram
from sds_core.observer.snapshot import OTHER, Snapshot, Views
from sds_core.observer.snapshot_metrics import settings_metrics, snapshot_metrics
from sds_core.observer.tap_kind import TAP_FIGURES
from sds_core.planning.plan import Plans, plan_metrics, plan_totals_metrics

_BUCKET_NAMES = (*(str(bound_ms / 1000) for bound_ms in BUCKETS_MS), "+Inf")

Source = TypeVar("Source")
Totals = TypeVar("Totals", bound=msgspec.Struct)
Labelled = list[tuple[tuple[str, ...], Source]]
"""Sources of figures, each with its label values."""


class SnapshotCollector(Collector):
    """Exports the current snapshot through a registry.

    `current` is called once per scrape, in the thread of the scrape.
    """

    def __init__(self, current: Callable[[], Snapshot]) -> None:
        self._current = current

    def collect(self) -> Iterator[Family]:
        """Yield all families.

        Until the checkpoint is read, yield only the job's families, without counters.
        """
        snapshot = self._current()
        views = [*snapshot.views.values()]
        overall = snapshot_metrics(one.kind for one in views)
        if not snapshot.primed:
            # The job's counters continue from their values in the checkpoint. Until it
            # is read, the counters would be 0, and Prometheus would count the jump from
            # 0 as an increase.
            early = [
                metric
                for metric in overall
                if metric.name.startswith("sds_monitor_")
                and metric.kind is not MetricKind.COUNTER
            ]
            yield from _families(early, (), [((), snapshot)])
            return
        # The order of families must not change between releases, so the families of the
        # taps come after the families of the first protocol.
        for one in views[:1]:
            yield from _families_of(one, snapshot.table)
        own, rest = _split(snapshot.taps, snapshot.tap_labels)
        # If no tap is left in `other`, it has no time at which a tap was last seen.
        if rest and snapshot.forgotten_taps is not None:
            rest.append(snapshot.forgotten_taps)
        yield from _view_families(TAP_FIGURES, own, rest)
        for one in views[1:]:
            yield from _families_of(one, snapshot.table)
        yield from _families(overall, (), [((), snapshot)])


class PlanCollector(Collector):
    """Exports the newest forecasts: of labelled views, and in total by kind of view."""

    def __init__(
        self, current: Callable[[], Snapshot], plans: Callable[[], Plans]
    ) -> None:
        self._current, self._plans = current, plans

    def collect(self) -> Iterator[Family]:
        """For each kind of view that has forecasts, yield its families."""
        snapshot = self._current()
        for prefix, plan in self._plans().items():
            views = snapshot.views.get(prefix)
            if views is None or plan.computed_ms is None:
                continue
            own, _ = _split(plan.views, views.labels)
            label = views.figures.names.label
            yield from _families(plan_metrics(views.kind), (label,), own)
            yield from _families(plan_totals_metrics(views.kind), (), [((), plan)])


class MirrorCollector(Collector):
    """Exports the figures of a mirror through a registry."""

    def __init__(self, figures: MirrorFigures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Family]:
        """Yield all families of the mirror and of its nodes."""
        nodes: Labelled[NodeFigures] = [
            ((name,), node) for name, node in self._figures.nodes.items()
        ]
        yield from _families(NODE_METRICS, ("node",), nodes)
        yield from _families(MIRROR_METRICS, (), [((), self._figures)])


class FiguresCollector(Collector, Generic[Source]):
    """Exports the figures of one source, without a label for the source."""

    def __init__(self, metrics: Iterable[Metric[Source]], figures: Source) -> None:
        self._metrics = metrics
        self._figures = figures

    def collect(self) -> Iterator[Family]:
        """Yield a family of each metric."""
        yield from _families(self._metrics, (), [((), self._figures)])


def _families_of(views: Views[Any], table: ChannelTable) -> Iterator[Family]:
    own, rest = _split(views.totals, views.labels)
    if views.remainder is not None and views.remainder.other is not None:
        rest.append(views.remainder.other)
    yield from _view_families(views.figures, own, rest)
    if not views.kind.in_channel_table:
        return
    found = {label: table.of(label) for (label,), _ in own}
    # The series `other` stands for several views. Their settings cannot be added, so
    # `other` gets the default settings.
    if rest:
        found[OTHER] = DEFAULT_SETTINGS
    # A view without a display name gets its label as the name.
    settings: Labelled[ChannelSettings] = [
        ((label,), replace(one, name=one.name or label)) for label, one in found.items()
    ]
    metrics = settings_metrics(views.kind)
    yield from _families(metrics, (views.figures.names.label,), settings)


def _view_families(
    table: FigureTable[Totals], own: Labelled[Totals], rest: Sequence[Totals]
) -> Iterator[Family]:
    # All sources without a label of their own are exported as one source, `other`.
    other: Labelled[Totals] = [((OTHER,), table.sum(rest))] if rest else []
    for metric in table.metrics:
        sources = own + other if metric.summable else own
        yield _family(metric, (table.names.label,), sources)


def _split(
    sources: Mapping[str, Source], labels: Iterable[str]
) -> tuple[Labelled[Source], list[Source]]:
    # A source that is called "other" counts as unlabelled. Otherwise, its series would
    # have the same labels as the sum of the unlabelled sources, and Prometheus would
    # refuse the scrape.
    labelled = {
        name: sources[name] for name in labels if name in sources and name != OTHER
    }
    own: Labelled[Source] = [((name,), source) for name, source in labelled.items()]
    return own, [source for name, source in sources.items() if name not in labelled]


def _families(
    metrics: Iterable[Metric[Source]],
    source_labels: tuple[str, ...],
    sources: Labelled[Source],
) -> Iterator[Family]:
    for metric in metrics:
        yield _family(metric, source_labels, sources)


def _family(
    metric: Metric[Source], source_labels: tuple[str, ...], sources: Labelled[Source]
) -> Family:
    labels = (*source_labels, *metric.labels)
    family = _NEW_FAMILY[metric.kind](metric.name, metric.help, labels=labels)
    for source_values, source in sources:
        for values, value in metric.samples(source):
            _add(family, (*source_values, *values), value)
    return family


_AnyFamily = (
    CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily | InfoMetricFamily
)

_NEW_FAMILY: Mapping[MetricKind, type[_AnyFamily]] = {
    # The family appends `_total` to a name that lacks this suffix.
    MetricKind.COUNTER: CounterMetricFamily,
    MetricKind.GAUGE: GaugeMetricFamily,
    MetricKind.HISTOGRAM: HistogramMetricFamily,
    # The family appends `_info` to the declared name.
    MetricKind.INFO: InfoMetricFamily,
}


def _add(family: _AnyFamily, labels: Sequence[str], value: Value) -> None:
    match family, value:
        case HistogramMetricFamily(), Histogram():
            cumulative = accumulate(value.counts)
            buckets = list(zip(_BUCKET_NAMES, cumulative, strict=True))
            family.add_metric(labels, buckets, value.sum_ms / 1000)
        case ((CounterMetricFamily() | GaugeMetricFamily()), (int() | float())):
            family.add_metric(labels, value)
        case InfoMetricFamily(), _:
            family.add_metric(labels, {})
        case _:
            message = f"{family.name}: a {family.type} cannot hold {value!r}"
            raise TypeError(message)
