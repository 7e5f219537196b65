"""Converts a snapshot to Prometheus metric families.

The collector stores nothing between scrapes: each scrape reads the snapshot once and
builds new families from the declared metrics. So a series ends when the snapshot no
longer has it, and all samples of a scrape belong to one moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeVar

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

from sds_core.audit.figures import AUDIT_METRICS, AuditFigures
from sds_core.metrics import Metric, MetricKind, Value
from sds_core.mirror.figures import MirrorFigures, NodeFigures
from sds_core.mirror.metrics import MIRROR_METRICS, NODE_METRICS
from sds_core.observer.channel_table import DEFAULT_SETTINGS, ChannelSettings
from sds_core.observer.figure_table import FigureTable
from sds_core.observer.histogram import BUCKETS_MS, Histogram
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import OTHER, Snapshot, Views
from sds_core.observer.snapshot_metrics import SETTINGS_METRICS, SNAPSHOT_METRICS
from sds_core.observer.tap_figures import TAP_FIGURES

# The job's counters continue from the checkpoint. Before it is read they would be 0 and
# then jump, which Prometheus takes for an increase.
_BEFORE_PRIMING = tuple(
    metric
    for metric in SNAPSHOT_METRICS
    if metric.name.startswith("sds_monitor_") and metric.kind is not MetricKind.COUNTER
)

_BUCKET_NAMES = (*(str(bound_ms / 1000) for bound_ms in BUCKETS_MS), "+Inf")

Source = TypeVar("Source")
Totals = TypeVar("Totals", bound=msgspec.Struct)
Labelled = list[tuple[tuple[str, ...], Source]]
"""Sources of figures, each with the label values that name it."""


class SnapshotCollector(Collector):
    """Exports the current snapshot through a registry.

    Args:
        current: Returns the snapshot to export; called once per scrape, in the thread
            of the scrape.
        channels: The figures of channels.
    """

    def __init__(
        self,
        current: Callable[[], Snapshot],
        channels: FigureTable[ChannelTotals] = CHANNEL_FIGURES,
    ) -> None:
        self._current = current
        self._channels = channels

    def describe(self) -> Iterable[Family]:
        """Returns nothing: the registry must not read a snapshot when registering."""
        return ()

    def collect(self) -> Iterator[Family]:
        """Yield all declared families; before priming only some of the job's."""
        snapshot = self._current()
        if not snapshot.primed:
            yield from _families(_BEFORE_PRIMING, (), [((), snapshot)])
            return
        channels = _split_views(snapshot.views[CHANNELS.prefix])
        yield from _view_families(self._channels, *channels)
        settings = _settings(snapshot, channels)
        yield from _families(SETTINGS_METRICS, (self._channels.names.label,), settings)
        taps = _split(snapshot.taps, snapshot.tap_labels)
        yield from _view_families(TAP_FIGURES, *taps)
        for prefix, views in snapshot.views.items():
            if prefix == CHANNELS.prefix:
                continue
            others: tuple[Labelled[Any], list[Any]] = _split_views(views)
            yield from _view_families(views.figures, *others)
        yield from _families(SNAPSHOT_METRICS, (), [((), snapshot)])


class MirrorCollector(Collector):
    """Exports the figures of a mirror through a registry.

    Args:
        figures: The figures, which the mirror keeps changing.
    """

    def __init__(self, figures: MirrorFigures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Family]:
        """Yield all families of the mirror and of its nodes."""
        figures = self._figures
        nodes: Labelled[NodeFigures] = [
            ((name,), node) for name, node in figures.nodes.items()
        ]
        yield from _families(NODE_METRICS, ("node",), nodes)
        yield from _families(MIRROR_METRICS, (), [((), figures)])


class AuditCollector(Collector):
    """Exports the figures of an audit through a registry.

    Args:
        figures: The figures, which the audit keeps changing.
    """

    def __init__(self, figures: AuditFigures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Family]:
        """Yield all families of the audit."""
        yield from _families(AUDIT_METRICS, (), [((), self._figures)])


def _view_families(
    table: FigureTable[Totals], own: Labelled[Totals], rest: Sequence[Totals]
) -> Iterator[Family]:
    """Yield the families of a kind of view.

    Args:
        table: Table of the figures of this kind.
        own: Views with a label of their own.
        rest: The other views, which are exported as one; may be empty.
    """
    other: Labelled[Totals] = [((OTHER,), table.sum(rest))] if rest else []
    for metric in table.metrics:
        sources = own + other if metric.summable else own
        yield _family(metric, (table.names.label,), sources)


def _settings(
    snapshot: Snapshot,
    channels: tuple[Labelled[ChannelTotals], Sequence[ChannelTotals]],
) -> Labelled[ChannelSettings]:
    """Settings of each channel with a label; an unnamed one has it as its name."""
    own, rest = channels
    found = {label: snapshot.table.of(label) for (label,), _ in own}
    # A setting belongs to one channel, not to a sum of channels.
    if rest:
        found[OTHER] = DEFAULT_SETTINGS
    return [
        ((label,), replace(one, name=one.name or label)) for label, one in found.items()
    ]


def _split_views(views: Views[Source]) -> tuple[Labelled[Source], list[Source]]:
    """The views with a label of their own, and the rest.

    The rest contains what forgotten views of the rest had counted, so that no counter
    of ``other`` falls.
    """
    own, rest = _split(views.totals, views.labels)
    if views.remainder is not None and views.remainder.other is not None:
        rest.append(views.remainder.other)
    return own, rest


def _split(
    sources: Mapping[str, Source], labels: Iterable[str]
) -> tuple[Labelled[Source], list[Source]]:
    """The sources with a label of their own, in the order of the labels, and the rest.

    A source that is itself called "other" belongs to the rest: Prometheus refuses a
    scrape in which two series have the same labels.
    """
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
    # Accepts a name with or without `_total`, and writes it with one.
    MetricKind.COUNTER: CounterMetricFamily,
    MetricKind.GAUGE: GaugeMetricFamily,
    MetricKind.HISTOGRAM: HistogramMetricFamily,
    # Appends `_info`, so the declared name has none.
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
