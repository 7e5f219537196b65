"""From a snapshot to what Prometheus scrapes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from textwrap import dedent

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics.exposition import (
    generate_latest as generate_openmetrics,
)
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from connectors.prometheus.collector import SnapshotCollector
from sds_core.metrics import MetricKind
from sds_core.observer.channel_table import (
    ChannelEntry,
    ChannelTable,
    Objectives,
)
from sds_core.observer.figure_table import FigureTable
from sds_core.observer.figures import Figure
from sds_core.observer.figures import histogram as histogram_of
from sds_core.observer.mvds.kind import SHARD_VIEWS
from sds_core.observer.mvds.totals import GroupTotals
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import JobFigures, Snapshot, Views
from sds_core.observer.snapshot_metrics import settings_metrics, snapshot_metrics
from sds_core.observer.tap_kind import TAP_FIGURES
from sds_core.observer.verdict import Verdict
from sds_core.reason import Reason
from tests.support.exported import (
    HOSTILE_IDS,
    families_of,
    histogram,
    registry_of,
    snapshot,
)
from tests.support.snapshots import snapshot_of, with_channels


class Chosen(Collector):
    """Some of the families that a collector exports."""

    def __init__(self, collector: Collector, names: set[str]) -> None:
        self.collector = collector
        self.names = names

    def collect(self) -> Iterator[Family]:
        """The families with these names."""
        return (one for one in self.collector.collect() if one.name in self.names)


def test_text_of_every_type_of_metric_is_exact() -> None:
    """Counter, gauge, histogram, a tap's figure and the build."""
    names = {
        "sds_messages",
        "sds_ack_latency_seconds",
        "sds_oldest_unacknowledged_timestamp_seconds",
        "sds_tap_missing_records",
        "sds_monitor_build",
    }
    exported = snapshot(["chat"])
    exported.views["sds"].totals["chat"].definite_latency = histogram(250, 251, 600_001)

    registry = CollectorRegistry()
    registry.register(Chosen(SnapshotCollector(lambda: exported), names))
    text = generate_latest(registry).decode()

    bounds = [".25", ".5", "1", "2.5", "5", "10", "20", "30", "60", "120", "300", "600"]
    empty = "".join(
        f'sds_ack_latency_seconds_bucket{{channel="chat",evidence="probable",le="{le}"}}'
        " 0.0\n"
        for le in (*(str(float(bound)) for bound in bounds), "+Inf")
    )
    assert text == dedent(
        """\
            # HELP sds_messages_total Distinct content messages.
            # TYPE sds_messages_total counter
            sds_messages_total{channel="chat"} 4.0
            # HELP sds_ack_latency_seconds Time from a message's first copy to its acknowledgement.
            # TYPE sds_ack_latency_seconds histogram
            sds_ack_latency_seconds_bucket{channel="chat",evidence="definite",le="0.25"} 1.0
            sds_ack_latency_seconds_bucket{channel="chat",evidence="definite",le="0.5"} 2.0
            sds_ack_latency_seconds_bucket{channel="chat",evidence="definite",le="1.0"} 2.0
            sds_ack_latency_seconds_bucket{channel="chat",evidence="definite",le="2.5"} 2.0
            sds_ack_latency_seconds_bucket{channel="chat",evidence="definite",le="5.0"} 2.0
            sds_ack_latency_seconds_bucket{channel="chat",evidence="definite",le="10.0"} 2.0
            sds_ack_latency_seconds_bucket{channel="chat",evidence="definite",le="20.0"} 2.0
            sds_ack_latency_seconds_bucket{channel="chat",evidence="definite",le="30.0"} 2.0
            sds_ack_latency_seconds_bucket{channel="chat",evidence="definite",le="60.0"} 2.0
            sds_ack_latency_seconds_bucket{channel="chat",evidence="definite",le="120.0"} 2.0
            sds_ack_latency_seconds_bucket{channel="chat",evidence="definite",le="300.0"} 2.0
            sds_ack_latency_seconds_bucket{channel="chat",evidence="definite",le="600.0"} 2.0
            sds_ack_latency_seconds_bucket{channel="chat",evidence="definite",le="+Inf"} 3.0
            sds_ack_latency_seconds_count{channel="chat",evidence="definite"} 3.0
            sds_ack_latency_seconds_sum{channel="chat",evidence="definite"} 600.502
            EMPTY
            sds_ack_latency_seconds_count{channel="chat",evidence="probable"} 0.0
            sds_ack_latency_seconds_sum{channel="chat",evidence="probable"} 0.0
            # HELP sds_oldest_unacknowledged_timestamp_seconds Event time of the oldest message in flight.
            # TYPE sds_oldest_unacknowledged_timestamp_seconds gauge
            sds_oldest_unacknowledged_timestamp_seconds{channel="chat"} 1.786276990119e+09
            # HELP sds_tap_missing_records_total Number of the tap's sequence numbers that never arrived.
            # TYPE sds_tap_missing_records_total counter
            sds_tap_missing_records_total{observer="tap"} 3.0
            # HELP sds_monitor_build_info Version of the monitor, and whether its rules run compiled or interpreted.
            # TYPE sds_monitor_build_info gauge
            sds_monitor_build_info{rules="compiled",version="1.2.3"} 1.0
            """  # noqa: E501 - compared as it is scraped
    ).replace("EMPTY\n", empty)


def test_metric_names_are_those_declared() -> None:
    """Nothing else is exported."""
    text = generate_latest(registry_of(snapshot)).decode()
    typed = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert typed == [
        metric.name + ("_info" if metric.kind is MetricKind.INFO else "")
        for metric in (
            *CHANNEL_FIGURES.metrics,
            *settings_metrics(CHANNELS),
            *TAP_FIGURES.metrics,
            *snapshot_metrics([CHANNELS]),
        )
    ]


def test_groups_have_the_names_and_muting_of_the_table() -> None:
    """No objectives: no alert on groups has any."""
    table = ChannelTable([ChannelEntry("g", "Team G", mute_until_ms=5_000)])
    groups = {"mvds": Views(SHARD_VIEWS, dict.fromkeys("gh", GroupTotals()), ("g",))}
    exported = snapshot_of(primed=True, others=groups, table=table)
    families = {
        family.name: family.samples
        for family in registry_of(lambda: exported).collect()
        if family.name.startswith("mvds_group")
    }
    names = [one.labels for one in families["mvds_group"]]
    assert names == [
        {"channel": "g", "name": "Team G"},
        {"channel": "other", "name": "other"},
    ]
    (muted,) = families["mvds_group_muted_until_timestamp_seconds"]
    assert (muted.labels, muted.value) == ({"channel": "g"}, 5.0)
    assert "mvds_group_objective_ratio" not in families


def test_channels_have_the_names_and_objectives_of_the_table() -> None:
    """A channel without a name has its id; ``other`` has only defaults."""
    table = ChannelTable(
        [
            ChannelEntry("a", "Anteroom", Objectives(0.9), mute_until_ms=2_500),
            ChannelEntry("*", objectives=Objectives(acknowledgement=0.5)),
        ]
    )
    families = families_of(snapshot(labelled=2).with_table(table, wall_ms=0))
    names = [sample.labels for sample in families["sds_channel"].samples]
    assert names == [
        {"channel": "a", "name": "Anteroom"},
        {"channel": "b", "name": "b"},
        {"channel": "other", "name": "other"},
    ]
    objectives = families["sds_channel_objective_ratio"].samples
    assert [(*sample.labels.values(), sample.value) for sample in objectives] == [
        ("a", "delivery", 0.9), ("a", "acknowledgement", 0.5),
        ("b", "delivery", 0.99), ("b", "acknowledgement", 0.5),
        ("other", "delivery", 0.99), ("other", "acknowledgement", 0.95),
    ]  # fmt: skip
    (muted,) = families["sds_channel_muted_until_timestamp_seconds"].samples
    assert (muted.labels, muted.value) == ({"channel": "a"}, 2.5)


def test_every_label_set_exists_from_the_start() -> None:
    """All values of a closed label are exported as 0, also reasons."""
    undecodable = families_of(snapshot())["sds_undecodable_frames"]
    found = {sample.labels["reason"]: sample.value for sample in undecodable.samples}
    assert found == {reason.value: 0 for reason in Reason} | {"too_large": 2}


def test_gauge_without_a_value_is_absent() -> None:
    """For example with nothing in flight and before the first batch."""
    exported = snapshot_of(primed=True, channels={"a": ChannelTotals()}, labels=("a",))
    families = families_of(exported)
    assert families["sds_oldest_unacknowledged_timestamp_seconds"].samples == []
    assert families["sds_monitor_event_time_lag_seconds"].samples == []
    assert families["sds_messages"].samples != []


def test_unprimed_monitor_exports_only_figures_of_the_job() -> None:
    """Counters would jump once the checkpoint is read."""
    families = families_of(replace(snapshot(), primed=False))
    assert families
    assert all(name.startswith("sds_monitor_") for name in families)
    assert "counter" not in {family.type for family in families.values()}
    assert families["sds_monitor_build"].samples[0].labels == {
        "version": "1.2.3",
        "rules": "compiled",
    }


@pytest.mark.parametrize(
    ("verdicts", "lag_s", "ok"),
    [
        ([Verdict.OK, Verdict.DEGRADED, Verdict.QUIET, Verdict.WARMING_UP], 60, 1),
        ([Verdict.OK, Verdict.FAILING], 0, 0),
        ([Verdict.OK, Verdict.BLIND], 0, 0),
        ([Verdict.OK], 60.1, 0),
        ([Verdict.WARMING_UP], 0, 0),
        ([Verdict.OK], None, 0),
        ([], 0, 0),
    ],
)
def test_monitor_ok_is_one_if_nothing_is_wrong(
    verdicts: list[Verdict], lag_s: float | None, ok: int
) -> None:
    """No channel failing or blind, the job not behind, and something is known."""
    channels = {str(n): ChannelTotals(verdict=v) for n, v in enumerate(verdicts)}
    job = JobFigures(running=True, event_time_lag_seconds=lag_s)
    exported = with_channels(replace(snapshot(), job=job), totals=channels)
    assert families_of(exported)["sds_monitor_ok"].samples[0].value == ok
    stopped = replace(exported, job=replace(job, running=False))
    assert families_of(stopped)["sds_monitor_ok"].samples[0].value == 0


def test_registering_reads_no_snapshot() -> None:
    """The exporter can be set up before there are figures."""

    def current() -> Snapshot:
        pytest.fail("asked for a snapshot")

    registry_of(current)


def test_scrape_reads_one_snapshot() -> None:
    """All samples of a scrape are of one moment."""
    asked = []

    def current() -> Snapshot:
        asked.append(1)
        return snapshot()

    generate_latest(registry_of(current))
    assert len(asked) == 1


def test_sample_of_the_wrong_type_is_refused() -> None:
    """The error names the metric."""
    slip = Figure("clock_ms", "The clock.", series=(histogram_of("sds_slip").of(),))
    figures = FigureTable(ChannelTotals, CHANNEL_FIGURES.names, [slip])
    kind = replace(CHANNELS, figures=figures)
    wrong = SnapshotCollector(lambda: with_channels(snapshot(), kind=kind))
    with pytest.raises(TypeError, match="sds_slip: a histogram cannot hold"):
        list(wrong.collect())


def test_openmetrics_text_has_the_same_series() -> None:
    """A strict parser reads every series, with ids of any text."""
    registry = registry_of(lambda: snapshot(HOSTILE_IDS, labelled=5))
    text = generate_openmetrics(registry).decode()
    parsed = {family.name: family for family in text_string_to_metric_families(text)}
    collected = {family.name: family for family in registry.collect()}
    assert {name: family.samples for name, family in parsed.items()} == {
        name: family.samples for name, family in collected.items()
    }


@pytest.mark.needs("promtool")
@pytest.mark.parametrize(
    "exported",
    [
        pytest.param(snapshot_of(), id="unprimed"),
        pytest.param(snapshot_of(primed=True), id="empty"),
        pytest.param(snapshot(HOSTILE_IDS, labelled=5), id="hostile-ids"),
    ],
)
def test_promtool_finds_no_problem(exported: Snapshot) -> None:
    """Prometheus' own linter accepts the text."""
    text = generate_latest(registry_of(lambda: exported))
    run = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, check=False
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")
