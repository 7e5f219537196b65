"""Declared, exported, documented and used metrics are the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector

from connectors.prometheus.collector import (
    FiguresCollector,
    MirrorCollector,
    PlanCollector,
    SnapshotCollector,
)
from sds_core.audit.figures import AUDIT_METRICS, AuditFigures
from sds_core.audit.serving_figures import SERVING_METRICS, ServingFigures
from sds_core.metrics import Metric, MetricKind
from sds_core.mirror.figures import MirrorFigures, NodeFigures
from sds_core.observer.mvds.kind import MVDS
from sds_core.observer.mvds.totals import GroupTotals
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Views
from sds_core.observer.tap_view import TapTotals
from tests.support.metrics import ALL_METRICS
from tests.support.planning.made_plan import plan
from tests.support.snapshots import snapshot_of

PLAN = plan(["a"])
ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "dashboards/generated"


def scraped(metric: Metric[object]) -> set[str]:
    """The names of a metric's series."""
    suffixes = {
        MetricKind.HISTOGRAM: ("_bucket", "_sum", "_count"),
        MetricKind.INFO: ("_info",),
    }.get(metric.kind, ("",))
    return {metric.name + suffix for suffix in suffixes}


def exported() -> set[str]:
    """The names of the families that monitor and mirror export."""
    snapshot = snapshot_of(
        primed=True,
        channels={"a": ChannelTotals()},
        labels=("a",),
        taps={"tap": TapTotals()},
        tap_labels=("tap",),
        others={"mvds": Views(MVDS.kind, {"g": GroupTotals()}, ("g",))},
    )
    figures = MirrorFigures(nodes={"node": NodeFigures()})
    collectors: list[Collector] = [
        SnapshotCollector(lambda: snapshot),
        MirrorCollector(figures),
        FiguresCollector(AUDIT_METRICS, AuditFigures()),
        FiguresCollector(SERVING_METRICS, ServingFigures()),
        PlanCollector(lambda: snapshot, lambda: {"sds": PLAN, "mvds": PLAN}),
    ]
    found = set()
    for collector in collectors:
        registry = CollectorRegistry()
        registry.register(collector)
        for family in registry.collect():
            suffix = "_total" if family.type == "counter" else ""
            found.add(family.name + suffix)
    return found


def documented() -> set[str]:
    """The names in the tables of docs/metrics.md, those of `_info` without it."""
    text = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", text, re.MULTILINE)
    return {n.removesuffix("_info") if kind == "info" else n for n, kind in rows}


def expressions() -> Iterator[str]:
    """Every expression that Grafana or Prometheus is to evaluate."""

    def inside(value: object) -> Iterator[str]:
        if isinstance(value, dict):
            for key, one in value.items():
                if key in {"expr", "query", "definition"} and isinstance(one, str):
                    yield one
                else:
                    yield from inside(one)
        elif isinstance(value, list):
            for one in value:
                yield from inside(one)

    for path in sorted((GENERATED / "grafana").glob("*.json")):
        yield from inside(json.loads(path.read_text()))
    for path in sorted((GENERATED / "prometheus").glob("*.yml")):
        yield from inside(yaml.safe_load(path.read_text()))


@pytest.fixture(scope="module")
def used() -> set[str]:
    """The names in them that are not those of recording rules."""
    # A recorded name has colons in it.
    names = re.compile(r"(?<![\w:])(?:sds|mvds)_\w+(?![\w:])")
    return {name for text in expressions() for name in names.findall(text)}


def test_declared_exported_and_documented_metrics_are_equal() -> None:
    """Under the same names."""
    declared = {metric.name for metric in ALL_METRICS}
    assert exported() == declared
    assert documented() == declared


def test_dashboards_and_rules_use_every_metric(used: set[str]) -> None:
    """A metric that nothing uses need not be exported."""
    unused = [m.name for m in ALL_METRICS if scraped(m).isdisjoint(used)]
    assert unused == []


def test_dashboards_and_rules_use_no_other_metric(used: set[str]) -> None:
    """An unknown name would be an empty panel or a dead alert."""
    assert used - set().union(*(scraped(metric) for metric in ALL_METRICS)) == set()
