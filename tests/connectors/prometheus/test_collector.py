"""From a snapshot to what Prometheus scrapes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator
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
from sds_core.observer.figures import Figure, Unit
from sds_core.observer.figures import histogram as histogram_of
from sds_core.observer.forgotten import Remainder
from sds_core.observer.histogram import Histogram
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import JobFigures, Snapshot
from sds_core.observer.snapshot_metrics import SETTINGS_METRICS, SNAPSHOT_METRICS
from sds_core.observer.tap_figures import TAP_FIGURES
from sds_core.observer.tap_view import TapTotals
from sds_core.observer.verdict import Verdict
from sds_core.reason import Reason

HOSTILE_IDS = (
    '<b>"quoted"\\',
    "two\nlines\r",
    "日本\u202e",
    "",
    " ",
    "le",
    "a" * 5_000,
)


def histogram(*durations_ms: int) -> Histogram:
    """A histogram of the given durations."""
    made = Histogram()
    for duration_ms in durations_ms:
        made.observe(duration_ms)
    return made


def totals(messages: int = 4) -> ChannelTotals:
    """A channel all of whose kinds of figures depend on the number of messages."""
    return ChannelTotals(
        frames={"content.spec": messages, "sync.nim": 2},
        messages=messages,
        acknowledged_definite=messages - 1,
        definite_latency=histogram(*range(300, 300 * messages, 300)),
        in_flight=1,
        oldest_in_flight_ms=1_786_276_990_123 - messages,
        gaps_opened=messages,
        gaps_late=messages,
        repair_requests=messages * 3,
        repair_answered=messages,
        repair_response=histogram(700_000),
        verdict=Verdict.OK,
        verdict_reason="ok",
    )


def snapshot(
    channels: Iterable[str] = ("a", "b", "c"), labelled: int | None = None
) -> Snapshot:
    """A primed snapshot; the first `labelled` channels have a label."""
    made = {name: totals(4 + number) for number, name in enumerate(channels)}
    return Snapshot(
        primed=True,
        channels=made,
        labels=tuple(made)[:labelled],
        taps={"tap": TapTotals(last_seen_ms=5_500, missing_records=3)},
        tap_labels=("tap",),
        undecodable={"too_large": 2},
        job=JobFigures(
            running=True,
            records=7,
            event_time_lag_seconds=1.5,
            batch_duration=histogram(100, 2_600),
            version="1.2.3",
        ),
    )


def registry_of(current: Callable[[], Snapshot]) -> CollectorRegistry:
    """A fresh registry with one collector."""
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(current))
    return registry


def families_of(exported: Snapshot) -> dict[str, Family]:
    """All families of one scrape by name."""
    return {f.name: f for f in registry_of(lambda: exported).collect()}


def counters_of(exported: Snapshot) -> dict[tuple[object, ...], float]:
    """Everything in a scrape that may only grow."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in families_of(exported).values()
        if family.type in {"counter", "histogram"}
        for sample in family.samples
    }


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
    exported.channels["chat"].definite_latency = histogram(250, 251, 600_001)

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
            # HELP sds_tap_missing_records_total Sequence numbers of the tap that never arrived.
            # TYPE sds_tap_missing_records_total counter
            sds_tap_missing_records_total{observer="tap"} 3.0
            # HELP sds_monitor_build_info Version of the monitor.
            # TYPE sds_monitor_build_info gauge
            sds_monitor_build_info{version="1.2.3"} 1.0
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
            *SETTINGS_METRICS,
            *TAP_FIGURES.metrics,
            *SNAPSHOT_METRICS,
        )
    ]


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
    exported = Snapshot(primed=True, channels={"a": ChannelTotals()}, labels=("a",))
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
    assert families["sds_monitor_build"].samples[0].labels == {"version": "1.2.3"}


def test_channels_without_a_label_are_exported_together() -> None:
    """`other` has the sums over all channels without a label of their own."""
    families = families_of(snapshot(["a", "b", "c"], labelled=1))
    messages = {s.labels["channel"]: s.value for s in families["sds_messages"].samples}
    assert messages == {"a": 4, "other": 5 + 6}


def test_merged_channels_have_no_verdict() -> None:
    """A verdict on several channels together would be meaningless."""
    families = families_of(snapshot(["a", "b", "c"], labelled=1))
    verdicts = families["sds_channel_verdict"].samples
    assert {sample.labels["channel"] for sample in verdicts} == {"a"}


def test_there_is_no_other_while_all_channels_have_a_label() -> None:
    """Without merged channels there is no series `other`."""
    text = generate_latest(registry_of(snapshot)).decode()
    assert 'channel="other"' not in text
    assert 'observer="other"' not in text


def test_channel_called_other_is_merged_into_other() -> None:
    """A scrape never holds two series with the same labels."""
    families = families_of(snapshot(["a", "other", "c"], labelled=2))
    messages = [
        (s.labels["channel"], s.value) for s in families["sds_messages"].samples
    ]
    assert messages == [("a", 4), ("other", 5 + 6)]


def test_label_without_figures_is_left_out() -> None:
    """A label in the ledger makes no series if its channel has no state."""
    exported = replace(snapshot(["a"]), labels=("gone", "a"))
    samples = families_of(exported)["sds_messages"].samples
    assert [sample.labels["channel"] for sample in samples] == ["a"]


@pytest.mark.parametrize("labelled", [0, 1, 2, 3])
def test_counters_add_up_over_channels_whatever_the_budget(labelled: int) -> None:
    """Each event is exported exactly once."""
    exported = snapshot(labelled=labelled)
    whole = {"all": CHANNEL_FIGURES.sum(exported.channels.values())}
    expected = counters_of(replace(exported, channels=whole, labels=("all",)))
    found: dict[tuple[object, ...], float] = {}
    for (name, *labels), value in counters_of(exported).items():
        merged = (
            ("channel", "all") if label[0] == "channel" else label for label in labels
        )
        key = (name, *merged)
        found[key] = found.get(key, 0) + value
    assert found == pytest.approx(expected)


def test_no_counter_falls_when_channels_come_and_grow() -> None:
    """A new channel does not change channels that have labels."""
    before = counters_of(snapshot(["a", "b", "c"], labelled=2))
    grown = snapshot(["a", "b", "c", "d", "e"], labelled=2)
    after = counters_of(grown)
    assert all(after[series] >= value for series, value in before.items())
    of_a = {key: value for key, value in before.items() if ("channel", "a") in key}
    assert of_a
    assert {key: after[key] for key in of_a} == of_a


def test_taps_without_a_label_are_exported_together() -> None:
    """`other` tells the stalest of the rest, and the sum of what they miss.

    Labels are in the order of the ledger, not in that of the figures.
    """
    taps = {f"tap-{n}": TapTotals((100 - n) * 1_000, n) for n in range(52)}
    taps["other"] = TapTotals(last_seen_ms=90_000, missing_records=1)
    labels = tuple(f"tap-{n}" for n in reversed(range(50)))
    exported = replace(snapshot(), taps=taps, tap_labels=("other", *labels))
    families = families_of(exported)
    missing = families["sds_tap_missing_records"].samples
    last_seen = families["sds_tap_last_seen_timestamp_seconds"].samples
    assert len(missing) == 51
    assert (missing[0].labels, missing[0].value) == ({"observer": "tap-49"}, 49)
    assert (missing[50].labels, missing[50].value) == ({"observer": "other"}, 102)
    assert last_seen[50].value == 49


def test_forgotten_tap_has_no_series() -> None:
    """It keeps its label and has a series again when it returns."""
    exported = replace(snapshot(), tap_labels=("gone", "tap"))
    samples = families_of(exported)["sds_tap_last_seen_timestamp_seconds"].samples
    assert [sample.labels["observer"] for sample in samples] == ["tap"]


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
    exported = replace(snapshot(), channels=channels, job=job)
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
    slip = Figure(
        "clock_ms", Unit.COUNT, "The clock.", series=(histogram_of("sds_slip").of(),)
    )
    wrong = SnapshotCollector(snapshot, CHANNEL_FIGURES.with_entries(slip))
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
        pytest.param(Snapshot(), id="unprimed"),
        pytest.param(Snapshot(primed=True), id="empty"),
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


def test_other_keeps_what_its_forgotten_channels_had_counted() -> None:
    """So its counters never fall; a forgotten channel with a label adds nothing.

    Its counts would look like an increase of the others.
    """
    remainder = Remainder(2, totals=totals(30), other=totals(10))
    snapshot = Snapshot(
        primed=True,
        channels={"town": totals(1), "unlabelled": totals(5)},
        labels=("town", "forgotten"),
        remainder=remainder,
    )
    for channels, count in ((snapshot.channels, 15), ({"town": totals(1)}, 10)):
        found = samples(replace(snapshot, channels=channels), "sds_messages_total")
        assert found == {"town": 1, "other": count}
    labelled = replace(remainder, other=None)
    only = replace(snapshot, channels={"town": totals(1)}, remainder=labelled)
    assert samples(only, "sds_messages_total") == {"town": 1}


def samples(snapshot: Snapshot, name: str) -> dict[str, float]:
    """Values of a metric of channels, by label."""
    families = SnapshotCollector(lambda: snapshot).collect()
    return {
        sample.labels["channel"]: sample.value
        for family in families
        for sample in family.samples
        if sample.name == name
    }
