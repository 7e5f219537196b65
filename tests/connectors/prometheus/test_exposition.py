"""What is written is what prometheus_client writes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from connectors.prometheus import exposition
from connectors.prometheus.collector import (
    FiguresCollector,
    MirrorCollector,
    SnapshotCollector,
)
from sds_core.audit.figures import AUDIT_METRICS, AuditFigures
from sds_core.mirror.figures import MirrorFigures
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.tap_view import TapTotals
from tests.support.snapshots import snapshot_of

PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.3"
)
NASTY = ["", "a", 'a"b\\c\nd', "\u2028", "{}=,", "é🙂", "100%s"]
VALUES = [0, 7, -3, 0.1, 1e21, 12_345_678, float("inf"), float("nan"), float("-inf")]


class Families(Collector):
    """Families of each type that the monitor has, with difficult labels and values."""

    def collect(self) -> Iterator[Metric]:
        """One family of each type."""
        about = 'Help\nwith "quotes" and \\ in it.'
        counter = CounterMetricFamily("sds_things", about, labels=("z", "a"))
        gauge = GaugeMetricFamily("sds_now", about, labels=("channel",))
        histogram = HistogramMetricFamily("sds_time", about, labels=("channel",))
        for name in NASTY:
            counter.add_metric((name, "b"), 1)
            gauge.add_metric((name,), 2.5)
            histogram.add_metric((name,), [("0.5", 1), ("+Inf", 3)], 4.25)
        yield from (counter, gauge, histogram)
        for number, value in enumerate(VALUES):
            yield GaugeMetricFamily(f"sds_value_{number}", about, value)
        info = InfoMetricFamily("sds_about", about, labels=("version",))
        info.add_metric(("1",), {})
        yield info


MONITOR = snapshot_of(
    primed=True,
    channels={name: ChannelTotals() for name in ("a", *NASTY)},
    labels=("a",),
    taps={"tap": TapTotals(1)},
    tap_labels=("tap",),
)
COLLECTORS = {
    "types": Families(),
    "mirror": MirrorCollector(MirrorFigures()),
    "audit": FiguresCollector(AUDIT_METRICS, AuditFigures()),
    "monitor": SnapshotCollector(lambda: MONITOR),
}


@pytest.fixture(params=COLLECTORS.values(), ids=COLLECTORS)
def registry(request: pytest.FixtureRequest) -> CollectorRegistry:
    """A registry with one collector."""
    made = CollectorRegistry(support_collectors_without_names=True)
    made.register(request.param)
    return made


@pytest.mark.parametrize(
    "accept",
    [
        "",
        "*/*",
        PROMETHEUS,
        "application/openmetrics-text",
        "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8",
        "text/plain;version=1.0.0;escaping=allow-utf-8",
        "text/plain;version=1.0.0;escaping=dots",
        "application/openmetrics-text;version=1.0.0;escaping=values",
    ],
)
def test_every_format_is_that_of_the_library(
    registry: CollectorRegistry, accept: str
) -> None:
    """To the byte, and with the same content type."""
    encode, content_type = exposition.encoder(accept)
    expected, expected_type = choose_encoder(accept)
    assert encode(registry) == expected(registry)
    assert content_type == expected_type


@pytest.mark.parametrize("version", ["a.b.c", "1.0.0-rc1", "v1.0.0", "x", "1..0", ""])
@pytest.mark.parametrize("form", ["application/openmetrics-text", "text/plain"])
def test_version_that_is_no_number_is_answered(form: str, version: str) -> None:
    """As if no format was requested, unless the library reads the version."""
    encode, content_type = exposition.encoder(f"{form}; version={version}")
    assert encode(CollectorRegistry()) in (b"", b"# EOF\n")
    assert content_type


def test_hidden_characters_of_a_label_are_escaped() -> None:
    """As on the page: they could make a channel look like another."""
    made = CollectorRegistry()
    evil = "evil\u202egnp\x1b[31m"
    snapshot = snapshot_of({evil: ChannelTotals()}, primed=True, labels=(evil,))
    made.register(SnapshotCollector(lambda: snapshot))
    for accept in (PROMETHEUS, "application/openmetrics-text"):
        encode, _ = exposition.encoder(accept)
        assert b'"evil\\\\u202egnp\\\\x1b[31m"' in encode(made)


@pytest.mark.parametrize("accept", ["", PROMETHEUS])
def test_named_series_are_those_of_the_library(
    registry: CollectorRegistry, accept: str
) -> None:
    """As a scrape with ``name[]`` asks for: every second series, and an unknown one."""
    every = {one.name: None for family in registry.collect() for one in family.samples}
    names = {*list(every)[::2], "sds_unknown"}
    encode, _ = exposition.encoder(accept)
    expected, _ = choose_encoder(accept)
    found = encode(exposition.Named(registry, names))
    assert found == expected(registry.restricted_registry(names))
    assert len(found) < len(encode(registry))
    assert found.count(b"# TYPE ") > 0
