"""Made-up snapshots, and what a scrape of them collects."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric as Family

from connectors.prometheus.collector import SnapshotCollector
from sds_core.observer.histogram import Histogram
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import JobFigures, Snapshot
from sds_core.observer.tap_view import TapTotals
from sds_core.observer.verdict import Verdict
from tests.support.snapshots import snapshot_of

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
    return snapshot_of(
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
            rules="compiled",
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
