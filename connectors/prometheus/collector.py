"""From one snapshot to Prometheus metric families.

The collector keeps nothing between scrapes: each scrape reads the snapshot once
and builds fresh families from the catalogue, so a series that is no longer in the
snapshot is gone, and all samples of a scrape belong to one moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TypeVar

from msgspec.structs import replace
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from sds_core.catalogue import (
    CHANNEL_METRICS,
    MIRROR_METRICS,
    NODE_METRICS,
    SETTINGS_METRICS,
    SNAPSHOT_METRICS,
    TAP_METRICS,
    Kind,
    Metric,
    Value,
)
from sds_core.mirror.figures import MirrorFigures, NodeFigures
from sds_core.observer.channel_table import DEFAULT_SETTINGS, ChannelSettings
from sds_core.observer.histogram import BUCKETS_MS, Histogram
from sds_core.observer.sds.totals import ChannelTotals, sum_totals
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.tap_view import TapTotals

OTHER = "other"
"""Label value of everything that has no label of its own."""

# The job's counters go on from the checkpoint: before it is read they would show 0
# and then jump, which Prometheus takes for an increase.
_BEFORE_PRIMING = tuple(
    metric
    for metric in SNAPSHOT_METRICS
    if metric.name.startswith("sds_monitor_") and metric.kind is not Kind.COUNTER
)

_NOT_OF_OTHER = frozenset(
    {"sds_channel_verdict", "sds_verdict_since_timestamp_seconds"}
)
"""Metrics that mean nothing for several channels at once."""

_BUCKET_NAMES = (*(str(bound_ms / 1000) for bound_ms in BUCKETS_MS), "+Inf")

Source = TypeVar("Source")
Labelled = list[tuple[tuple[str, ...], Source]]
"""Sources of figures, each with the values of the labels that it itself gives."""


class SnapshotCollector(Collector):
    """Exports the current snapshot through a registry.

    Args:
        current: Gives the snapshot to export; called once per scrape, from the
            thread of the scrape.
    """

    def __init__(self, current: Callable[[], Snapshot]) -> None:
        self._current = current

    def describe(self) -> Iterable[Family]:
        """Nothing: registering must not read a snapshot that may not exist yet."""
        return ()

    def collect(self) -> Iterator[Family]:
        """All families of the catalogue; before priming a few of the job."""
        snapshot = self._current()
        if not snapshot.primed:
            yield from _families(_BEFORE_PRIMING, (), [((), snapshot)])
            return
        own, other = _channels(snapshot)
        for metric in CHANNEL_METRICS:
            sources = own if metric.name in _NOT_OF_OTHER else own + other
            yield _family(metric, ("channel",), sources)
        settings = _settings(snapshot, [label for (label,), _ in own + other])
        yield from _families(SETTINGS_METRICS, ("channel",), settings)
        yield from _families(TAP_METRICS, ("observer",), _taps(snapshot))
        yield from _families(SNAPSHOT_METRICS, (), [((), snapshot)])


class MirrorCollector(Collector):
    """Exports the figures of a mirror through a registry.

    Args:
        figures: Those, which the mirror goes on changing.
    """

    def __init__(self, figures: MirrorFigures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Family]:
        """All families of a mirror and its nodes."""
        figures = self._figures
        nodes: Labelled[NodeFigures] = [
            ((name,), node) for name, node in figures.nodes.items()
        ]
        yield from _families(NODE_METRICS, ("node",), nodes)
        yield from _families(MIRROR_METRICS, (), [((), figures)])


def _channels(
    snapshot: Snapshot,
) -> tuple[Labelled[ChannelTotals], Labelled[ChannelTotals]]:
    """The channels with a label of their own, then the rest as one, if any."""
    own, rest = _split(snapshot.channels, snapshot.labels)
    return own, [((OTHER,), sum_totals(rest))] if rest else []


def _settings(snapshot: Snapshot, labels: Iterable[str]) -> Labelled[ChannelSettings]:
    """What holds for each channel with a label; one without a name is called by it."""
    found = {label: snapshot.table.of(label) for label in labels}
    # Several channels at once: nothing of one of them holds for all.
    if OTHER in found:
        found[OTHER] = DEFAULT_SETTINGS
    return [
        ((label,), replace(one, name=one.name or label)) for label, one in found.items()
    ]


def _taps(snapshot: Snapshot) -> Labelled[TapTotals]:
    """The observers with a label of their own, then the rest as one, if any."""
    own, rest = _split(snapshot.taps, snapshot.tap_labels)
    if not rest:
        return own
    merged = TapTotals(
        # The stalest, so that an alert on silence misses none of them.
        last_seen_ms=min(tap.last_seen_ms for tap in rest),
        missing_records=sum(tap.missing_records for tap in rest),
    )
    return [*own, ((OTHER,), merged)]


def _split(
    sources: Mapping[str, Source], labels: Iterable[str]
) -> tuple[Labelled[Source], list[Source]]:
    """The sources with a label of their own, in the labels' order, and the rest.

    One that is itself called "other" belongs to the rest: two series with the same
    labels would make Prometheus refuse the whole scrape.
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

_NEW_FAMILY: Mapping[Kind, type[_AnyFamily]] = {
    # This one takes the name with its `_total` and writes it with one `_total`.
    Kind.COUNTER: CounterMetricFamily,
    Kind.GAUGE: GaugeMetricFamily,
    Kind.HISTOGRAM: HistogramMetricFamily,
    # The catalogue's name is without the `_info` that this one appends.
    Kind.INFO: InfoMetricFamily,
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
