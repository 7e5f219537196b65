"""Every declared metric: its name, its labels and its samples."""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec
import pytest

from sds_core.audit.figures import AUDIT_METRICS, AuditFigures
from sds_core.audit.result import AuditedMessage, AuditResult
from sds_core.audit.serving_figures import SERVING_METRICS, ServingFigures
from sds_core.metrics import Metric, MetricKind
from sds_core.mirror.figures import (
    MIRROR_METRICS,
    NODE_METRICS,
    MirrorFigures,
    NodeFigures,
)
from sds_core.observer.channel_table import ChannelSettings
from sds_core.observer.clock import ClockFigures
from sds_core.observer.excused import Excuse, ExcusedFindings
from sds_core.observer.freshness import Freshness, MissingTopic
from sds_core.observer.histogram import Histogram
from sds_core.observer.mvds.figures import GROUP_FIGURES
from sds_core.observer.mvds.kind import SHARD_VIEWS
from sds_core.observer.mvds.totals import GroupTotals
from sds_core.observer.sds.evidence import Evidence
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.sds.totals import BloomGauge, ChannelTotals
from sds_core.observer.snapshot import JobFigures, Views
from sds_core.observer.tap_kind import TAP_FIGURES
from sds_core.observer.tap_view import TapTotals
from sds_core.observer.verdict import Verdict
from sds_core.wire import Reason
from tests.support.metrics import (
    ALL_METRICS,
    FORECAST_METRICS,
    FORECASTS_METRICS,
    SETTINGS_METRICS,
)
from tests.support.planning.made_plan import forecast, plan
from tests.support.snapshots import snapshot_of
from tests.support.totals import numbered_totals


def source_of(metric: Metric[Any]) -> Any:
    """Figures from which every sample of the metric can be read."""
    totals = numbered_totals(1)
    totals.oldest_in_flight_ms = totals.verdict_since_ms = 1_500
    totals.bloom_worst = BloomGauge(75_000, 150_000, 10, one_percent_ms=2_500)
    if metric in CHANNEL_FIGURES.metrics:
        return totals
    if metric in GROUP_FIGURES.metrics:
        return GroupTotals(verdict_since_ms=1_500)
    if metric in SETTINGS_METRICS:
        return ChannelSettings(name="Chat", mute_until_ms=1_500)
    if metric in TAP_FIGURES.metrics:
        return TapTotals(5_000, 3, 4)
    if metric in MIRROR_METRICS:
        return MirrorFigures(oldest_spooled_ms=1_500)
    if any(metric in some for some in FORECAST_METRICS.values()):
        return forecast()
    if any(metric in some for some in FORECASTS_METRICS.values()):
        return plan(["a"])
    if metric in AUDIT_METRICS:
        result = AuditResult("store", 1, 2_500_000_000, 3, 4, (), ())
        return AuditFigures(result, 1_500)
    if metric in SERVING_METRICS:
        return ServingFigures(5)
    if metric in NODE_METRICS:
        return NodeFigures(swept_ms=1_500)
    job = JobFigures(
        event_time_lag_seconds=1.5,
        clock=ClockFigures(2_500, -500, {"a": -90_100}),
        kafka=Freshness(answered_ms=1_500),
        missing_topic=MissingTopic("frames", 1_500),
    )
    return snapshot_of(
        channels={"a": totals},
        labels=("a",),
        job=job,
        excused={"a": (EXCUSED,)},
        others={"mvds": Views(SHARD_VIEWS)},
    )


EXCUSED = ExcusedFindings(
    "lost", Excuse("tap_hole", 1, 2), 7, 0, True, "SdsMessagesLost"
)


def samples(name: str, source: Any) -> dict[tuple[str, ...], Any]:
    """The samples of one metric."""
    (metric,) = [metric for metric in ALL_METRICS if metric.name == name]
    found = list(metric.samples(source))
    assert len({labels for labels, _ in found}) == len(found)
    return dict(found)


def test_every_name_occurs_once() -> None:
    """Each metric has one line in the table."""
    names = [metric.name for metric in ALL_METRICS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("metric", ALL_METRICS, ids=lambda m: m.name)
def test_name_and_help_follow_the_conventions(metric: Metric[Any]) -> None:
    """Suffix by type, base units, one sentence of help, no ids as labels."""
    assert re.fullmatch(r"(?:sds|mvds)_[a-z_]+[a-z]", metric.name)
    assert metric.name.endswith("_total") == (metric.kind is MetricKind.COUNTER)
    assert "_ms" not in metric.name
    if metric.kind is MetricKind.HISTOGRAM:
        assert metric.name.endswith("_seconds")
    assert re.fullmatch(r"[^.]+(\.\d[^.]*)?\.", metric.help)
    allowed = {
        "kind", "dialect", "cause", "evidence", "outcome", "redundant", "verdict",
        "reason", "version", "rules", "source", "part", "direction", "step",
        "conformant", "name", "objective", "epoch", "type", "empty", "side", "result",
        "channel", "observer", "alert", "bound", "limit", "forecast",
    }  # fmt: skip
    assert set(metric.labels) <= allowed


@pytest.mark.parametrize("metric", ALL_METRICS, ids=lambda m: m.name)
def test_samples_have_the_labels_and_the_type_of_their_metric(
    metric: Metric[Any],
) -> None:
    """A value for each label; histograms only for that type."""
    found = list(metric.samples(source_of(metric)))
    assert found
    for labels, value in found:
        assert len(labels) == len(metric.labels)
        assert all(type(label) is str for label in labels)
        assert isinstance(value, Histogram) == (metric.kind is MetricKind.HISTOGRAM)
        assert not isinstance(value, bool)


@pytest.mark.parametrize("metric", CHANNEL_FIGURES.metrics, ids=lambda m: m.name)
def test_counters_of_a_new_channel_begin_at_zero(
    metric: Metric[ChannelTotals],
) -> None:
    """`rate()` needs a series from the beginning."""
    found = list(metric.samples(ChannelTotals()))
    if metric.kind is MetricKind.COUNTER:
        assert found
        assert {value for _, value in found} == {0}


def test_channel_figures_have_their_own_names() -> None:
    """Each figure has a distinct number here, so none is mixed up."""
    t = numbered_totals(1)
    t.frames = {"content.spec": 3, "sync.nim": 5}
    expected = {
        "sds_replicas_total": {(): t.replicas},
        "sds_rebroadcasts_total": {
            ("repair",): t.rebroadcasts_repair,
            ("retry",): t.rebroadcasts_retry,
        },
        "sds_messages_total": {(): t.messages},
        "sds_messages_acknowledged_total": {
            ("definite",): t.acknowledged_definite,
            ("probable",): t.acknowledged_probable,
        },
        "sds_ack_latency_seconds": {
            ("definite",): t.definite_latency,
            ("probable",): t.probable_latency,
        },
        "sds_messages_acknowledged_in_time_total": {(): t.acknowledged_in_time},
        "sds_messages_unacknowledged_total": {(): t.unacknowledged},
        "sds_messages_unwitnessed_total": {(): t.unwitnessed},
        "sds_messages_in_flight": {(): t.in_flight},
        "sds_dependency_gaps_opened_total": {(): t.gaps_opened},
        "sds_dependency_gaps_closed_total": {
            ("late",): t.gaps_late,
            ("repaired",): t.gaps_repaired,
            ("recovered_late",): t.gaps_recovered_late,
            ("lost",): t.gaps_lost,
            ("tap_gap",): t.gaps_tap_gap,
        },
        "sds_dependency_losses_retracted_total": {(): t.gaps_retracted},
        "sds_dependencies_missing": {(): t.gaps_open},
        "sds_dependency_gap_seconds": {(): t.gap_duration},
        "sds_repair_requests_total": {(): t.repair_requests},
        "sds_repair_requests_for_received_total": {(): t.repair_requests_for_received},
        "sds_repair_episodes_total": {
            ("answered",): t.repair_answered,
            ("expired",): t.repair_expired,
        },
        "sds_repair_responses_total": {
            ("false",): t.repair_answered,
            ("true",): t.repair_redundant,
        },
        "sds_repair_response_seconds": {(): t.repair_response},
        "sds_message_id_collisions_total": {(): t.message_id_collisions},
        "sds_remembered_evicted_total": {(): t.remembered_evicted},
        "sds_deliveries_total": {
            ("first_pass",): t.deliveries_first_pass,
            ("recovered",): t.deliveries_recovered,
            ("lost",): t.deliveries_lost,
        },
        "sds_delivery_losses_retracted_total": {(): t.deliveries_retracted},
        "sds_delivery_recovery_seconds": {(): t.delivery_recovery},
        "sds_frame_bytes_total": {
            ("content",): t.bytes_content,
            ("history",): t.bytes_history,
            ("bloom",): t.bytes_bloom,
            ("repair",): t.bytes_repair,
            ("other",): t.bytes_other,
        },
        "sds_repair_bytes_total": {
            ("request",): t.bytes_repair,
            ("response",): t.repair_bytes_response,
        },
        "sds_channel_participants": {(): t.participants_lately},
        "sds_epoch_messages_max": {(): t.epoch_messages_max},
    }
    for name, wanted in expected.items():
        assert samples(name, t) == wanted, name
    assert samples("sds_frames_total", t) == {
        (kind, dialect): {("content", "spec"): 3, ("sync", "nim"): 5}.get(
            (kind, dialect), 0
        )
        for kind in ("content", "sync", "ephemeral")
        for dialect in ("spec", "nim")
    }


def test_every_counter_of_the_totals_is_exported() -> None:
    """A counter that is not exported would be useless."""
    t = numbered_totals(1)
    exported = [
        value for metric in CHANNEL_FIGURES.metrics for _, value in metric.samples(t)
    ]
    not_exported = {"clock_ms", "participants"}
    # Exported in two parts, by whether they conform.
    not_exported |= {"requests_timed", "responses_timed"}
    for field in msgspec.structs.fields(ChannelTotals):
        value = getattr(t, field.name)
        counted = type(value) is int or isinstance(value, Histogram)
        if counted and field.name not in not_exported:
            assert value in exported, field.name


def test_verdict_is_one_for_one_of_six() -> None:
    """All six series always exist."""
    totals = ChannelTotals(verdict=Verdict.QUIET)
    assert samples("sds_channel_verdict", totals) == {
        ("ok",): 0, ("degraded",): 0, ("failing",): 0, ("quiet",): 1, ("blind",): 0,
        ("warming_up",): 0,
    }  # fmt: skip


def test_oldest_in_flight_is_in_seconds_and_absent_if_none() -> None:
    """A gauge without a value has no series."""
    name = "sds_oldest_unacknowledged_timestamp_seconds"
    assert samples(name, ChannelTotals()) == {}
    assert samples(name, ChannelTotals(oldest_in_flight_ms=1_500)) == {(): 1.5}


def test_repair_timing_is_exported_by_conformity() -> None:
    """Both values of both steps add up to the checked ones."""
    totals = ChannelTotals(
        requests_timed=10, requests_early=3, responses_timed=20, responses_unexplained=4
    )
    assert samples("sds_repair_timing_total", totals) == {
        ("request", "true"): 7, ("request", "false"): 3,
        ("response", "true"): 16, ("response", "false"): 4,
    }  # fmt: skip


def test_start_of_the_verdict_is_in_seconds_or_absent() -> None:
    """A channel without records has no verdict."""
    name = "sds_verdict_since_timestamp_seconds"
    assert samples(name, ChannelTotals()) == {}
    assert samples(name, ChannelTotals(verdict_since_ms=1_500)) == {(): 1.5}


def test_gauges_of_the_fullest_filter_are_absent_without_one() -> None:
    """The forecast is also absent if the filter does not grow."""
    found = {
        gauge: [
            samples(f"sds_bloom_{name}", ChannelTotals(bloom_worst=gauge))
            for name in (
                "false_positive_ratio", "ids", "one_percent_timestamp_seconds",
            )
        ]
        for gauge in (
            None, BloomGauge(75_000, 150_000, 10), BloomGauge(15, 15, 1, 1_500),
        )
    }  # fmt: skip
    still, full = BloomGauge(75_000, 150_000, 10), BloomGauge(15, 15, 1, 1_500)
    assert found == {
        None: [{}, {}, {}],
        still: [{(): 2**-10}, {(): still.ids}, {}],
        full: [{(): 1.0}, {(): math.inf}, {(): 1.5}],
    }


def test_settings_of_a_channel_have_their_own_names() -> None:
    """A channel that is not muted has no series of the end."""
    settings = ChannelSettings("Chat", 0.75, 0.5, mute_until_ms=1_500)
    muted = "sds_channel_muted_until_timestamp_seconds"
    assert samples("sds_channel", settings) == {("Chat",): 1}
    assert samples("sds_channel_objective_ratio", settings) == {
        ("delivery",): 0.75, ("acknowledgement",): 0.5,
    }  # fmt: skip
    assert samples(muted, settings) == {(): 1.5}
    assert samples(muted, ChannelSettings()) == {}


def test_tap_is_seen_in_seconds() -> None:
    """Prometheus counts in base units."""
    totals = TapTotals(last_seen_ms=2_500, missing_records=4)
    assert samples("sds_tap_last_seen_timestamp_seconds", totals) == {(): 2.5}
    assert samples("sds_tap_missing_records_total", totals) == {(): 4}


def test_undecodable_frames_are_there_for_every_reason() -> None:
    """A reason of another version keeps its count too."""
    found = samples(
        "sds_undecodable_frames_total",
        snapshot_of(undecodable={"no_channel": 3, "of old": 2}),
    )
    assert {reason.value for reason in Reason} | {"of old"} == {r for (r,) in found}
    assert found["no_channel",] == 3
    assert found["of old",] == 2
    assert sum(found.values()) == 5


def test_figures_of_the_job_have_their_own_names() -> None:
    """As in the snapshot."""
    groups = {name: GroupTotals(verdict=Verdict.FAILING) for name in "xyz"}
    snapshot = snapshot_of(
        others={"mvds": Views(SHARD_VIEWS, groups, ("x",))},
        channels={
            "a": ChannelTotals(verdict=Verdict.OK),
            "b": ChannelTotals(verdict=Verdict.OK),
            "c": ChannelTotals(verdict=Verdict.FAILING),
        },
        labels=("a", "b"),
        job=JobFigures(
            running=True,
            records=2,
            records_behind=3,
            event_time_lag_seconds=4.5,
            state_bytes=6,
            history_pending=8,
            restarts=7,
            version="1.2",
            rules="compiled",
            clock=ClockFigures(-2_500, 1_500),
        ),
    )
    expected = {
        "records_total": 2, "records_behind": 3, "event_time_lag_seconds": 4.5,
        "state_bytes": 6, "restarts_total": 7, "state_channels": 3,
        "history_pending": 8, "dropped_label_channels": 1, "ok": 0,
        "clock_behind_seconds": -2.5, "records_ahead_seconds": 1.5,
        "state_groups": 3, "dropped_label_groups": 2,
    }  # fmt: skip
    for name, value in expected.items():
        assert samples(f"sds_monitor_{name}", snapshot) == {(): value}, name
    assert samples("sds_monitor_build", snapshot) == {("1.2", "compiled"): 1}
    assert samples("sds_channels", snapshot) == {
        ("ok",): 2, ("degraded",): 0, ("failing",): 1, ("quiet",): 0, ("blind",): 0,
        ("warming_up",): 0,
    }  # fmt: skip
    assert samples("sds_monitor_event_time_lag_seconds", snapshot_of()) == {}


def test_alerts_that_are_held_back_have_channel_and_reason() -> None:
    """Channels without a label are summed; a muted one has no alerts."""
    still = EXCUSED._replace(kind="undelivered", excused=3, counted=2, holds_back=False)
    snapshot = snapshot_of(
        labels=("a", "muted"),
        muted=frozenset({"muted"}),
        excused={
            "a": (EXCUSED, still),
            **dict.fromkeys(("b", "c", "muted"), (EXCUSED,)),
        },
    )
    assert samples("sds_alert_held_back", snapshot) == {
        ("a", "SdsMessagesLost", "tap_hole"): 7,
        ("other", "SdsMessagesLost", "tap_hole"): 14,
    }
    lost = {("a", "lost"): 7, ("other", "lost"): 14, ("muted", "lost"): 7}
    excused = samples("sds_excused_findings", snapshot)
    assert excused == lost | {("a", "undelivered"): 3}
    counted = samples("sds_unexcused_findings", snapshot)
    assert counted == dict.fromkeys(lost, 0) | {("a", "undelivered"): 2}


def test_findings_of_other_are_those_of_all_its_channels() -> None:
    """Losses of a channel without excuses count although another one has excuses."""
    at_ms = (10_000, 20_000)
    sound = Evidence(
        99, 99, False, True, [(*at_ms, 12)], [(*at_ms, 60)], [], [], [], []
    )
    lost = EXCUSED._replace(excused=1, counted=2)
    snapshot = snapshot_of(
        channels=dict.fromkeys("abx", ChannelTotals(evidence=sound)),
        labels=("a",),
        excused={"x": (lost,)},
    )
    assert samples("sds_excused_findings", snapshot) == {("other", "lost"): 1}
    assert samples("sds_unexcused_findings", snapshot) == {("other", "lost"): 14}


def test_clocks_of_taps_without_a_label_are_other() -> None:
    """The one that is off most stands for all."""
    clock = ClockFigures(0, 0, {"a": 100, "b": -90_000, "c": 40_000})
    snapshot = snapshot_of(tap_labels=("a",), job=JobFigures(clock=clock))
    found = samples("sds_tap_clock_offset_seconds", snapshot)
    assert found == {("a",): 0.1, ("other",): -90}


def test_success_ends_consecutive_failures_of_audits() -> None:
    """Even of an audit that found missing messages."""
    figures = AuditFigures()
    found: list[int] = []
    for error in ("one", "two", "", "three"):
        if error:
            figures.failed(error)
        else:
            missing = AuditedMessage(1, bytes(32), channel="town")
            figures.ended(AuditResult("store", 1, 2, 3, 4, (missing,), ()), 1_500)
        found += samples("sds_audit_consecutive_failures", figures).values()
    assert found == [1, 2, 0, 1]
