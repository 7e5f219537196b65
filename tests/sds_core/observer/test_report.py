"""The report (docs/figures.md, 11)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from sds_core.observer.freshness import Freshness
from sds_core.observer.incidents import ChannelIncident, Incident, IncidentKind
from sds_core.observer.mvds.kind import SHARD_VIEWS
from sds_core.observer.mvds.totals import GroupTotals
from sds_core.observer.report import build_report
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import JobFigures, Snapshot, Views
from sds_core.observer.verdict import Verdict
from tests.support.causes import explained_channel
from tests.support.snapshots import snapshot_of
from tests.support.totals import numbered_totals

CHANNEL_KEYS = {
    "frames", "messages", "replicas", "rebroadcasts", "acknowledged",
    "acknowledged_in_time", "unacknowledged", "unwitnessed", "in_flight",
    "message_id_collisions", "gaps", "repair", "ack_latency_ms",
    "repair_response_ms", "gap_ms", "participants", "verdict", "reason",
}  # fmt: skip


def leaves(value: Any) -> list[Any]:
    """All values that hold no others."""
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in leaves(part)]
    if isinstance(value, list):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


def test_report_has_the_documented_keys() -> None:
    """Totals have no verdict, but the undecodable records."""
    snapshot = snapshot_of(
        channels={"a": numbered_totals(1), "b": numbered_totals(10)},
        undecodable={"no_channel": 2},
    )
    report = build_report(snapshot, generated_at_ms=5)
    assert set(report) == {"schema", "generated_at", "window", "totals", "channels"}
    assert (report["schema"], report["generated_at"]) == (1, 5)
    assert set(report["channels"]) == {"a", "b"}
    assert set(report["channels"]["a"]) >= CHANNEL_KEYS
    assert CHANNEL_KEYS - {"verdict", "reason"} <= set(report["totals"])
    assert not {"verdict", "reason"} & set(report["totals"])
    assert report["totals"]["undecodable"] == {"no_channel": 2}
    assert report["totals"]["messages"] == 11 * report["channels"]["a"]["messages"]


def test_report_can_be_written_without_floats() -> None:
    """It has integers, texts and nulls only, with sorted keys."""
    snapshot = snapshot_of(channels={"a": numbered_totals(1), "b": ChannelTotals()})
    report = build_report(snapshot, 5, {"a": [("m", 7)]})
    text = json.dumps(report, sort_keys=True)
    assert json.loads(text) == report
    assert {type(leaf) for leaf in leaves(report)} <= {int, str, type(None)}


def test_window_is_that_of_all_kinds_of_view() -> None:
    """Also if there is no channel."""
    totals = GroupTotals(first_event_ms=2, last_event_ms=7)
    groups = {"mvds": Views(SHARD_VIEWS, {"g": totals})}
    report = build_report(snapshot_of(others=groups), 0)
    assert report["window"] == {"first_event": 2, "last_event": 7}
    channels = {"a": ChannelTotals(first_event_ms=3, last_event_ms=9)}
    report = build_report(snapshot_of(channels, others=groups), 0)
    assert report["window"] == {"first_event": 2, "last_event": 9}


def test_window_is_that_of_all_channels() -> None:
    """Null without records."""
    channels = {
        "a": ChannelTotals(first_event_ms=3, last_event_ms=5),
        "b": ChannelTotals(first_event_ms=4, last_event_ms=9),
    }
    report = build_report(snapshot_of(channels=channels), 0)
    assert report["window"] == {"first_event": 3, "last_event": 9}
    report = build_report(snapshot_of(), 0)
    assert report["window"] == {"first_event": None, "last_event": None}


def test_every_figure_has_its_own_key() -> None:
    """No two figures are mixed up."""
    totals = numbered_totals(1)
    totals.frames = {"content.spec": 1, "content.nim": 2, "sync.nim": 4}
    totals.verdict, totals.verdict_reason = Verdict.DEGRADED, "recovering"
    report = CHANNEL_FIGURES.report(totals)
    assert report["frames"] == {"content": 3, "sync": 4, "ephemeral": 0}
    assert report["rebroadcasts"] == {
        "repair": totals.rebroadcasts_repair,
        "retry": totals.rebroadcasts_retry,
    }
    assert report["acknowledged"] == {
        "definite": totals.acknowledged_definite,
        "probable": totals.acknowledged_probable,
    }
    assert report["gaps"] == {
        name: getattr(totals, f"gaps_{name}") for name in report["gaps"]
    }
    assert set(report["gaps"]) == {
        "opened", "late", "repaired", "recovered_late", "lost", "tap_gap", "open",
        "retracted",
    }  # fmt: skip
    assert report["repair"] == {
        name: getattr(totals, f"repair_{name}") for name in report["repair"]
    }
    assert set(report["repair"]) == {
        "requests", "requests_for_received", "answered", "expired", "responses",
        "redundant",
    }  # fmt: skip
    for name in (
        "messages", "replicas", "acknowledged_in_time", "unacknowledged",
        "unwitnessed", "in_flight", "message_id_collisions", "participants",
    ):  # fmt: skip
        assert report[name] == getattr(totals, name)
    for found, histogram in (
        (report["ack_latency_ms"]["definite"], totals.definite_latency),
        (report["ack_latency_ms"]["probable"], totals.probable_latency),
        (report["repair_response_ms"], totals.repair_response),
        (report["gap_ms"], totals.gap_duration),
    ):
        assert (found["count"], found["sum"]) == (histogram.count, histogram.sum_ms)
        assert set(found) == {"count", "sum", "p50", "p95", "p99"}
    assert (report["verdict"], report["reason"]) == ("degraded", "recovering")


def test_percentiles_come_from_the_histogram() -> None:
    """Upper bounds of buckets; null for the open bucket and without values."""
    totals = ChannelTotals()
    for latency in (*[100] * 90, *[3_000] * 8, *[700_000] * 2):
        totals.definite_latency.observe(latency)
    found = CHANNEL_FIGURES.report(totals)["ack_latency_ms"]
    assert found["definite"] == {
        "count": 100, "sum": 1_433_000, "p50": 250, "p95": 5_000, "p99": None,
    }  # fmt: skip
    assert found["probable"] == {
        "count": 0, "sum": 0, "p50": None, "p95": None, "p99": None,
    }  # fmt: skip


def test_detail_gives_every_latency_and_exact_percentiles() -> None:
    """By nearest rank, per channel and in total; probable ones do not change."""
    a, b = ChannelTotals(), ChannelTotals()
    for latency in (900, 100, 300):
        a.definite_latency.observe(latency)
    b.definite_latency.observe(5_001)
    details = {"a": [("m", 900), ("n", 100), ("o", 300)], "b": [("p", 5_001)]}
    report = build_report(snapshot_of(channels={"a": a, "b": b}), 0, details)
    found = report["channels"]["a"]
    assert found["ack_latencies"] == [["m", 900], ["n", 100], ["o", 300]]
    assert found["ack_latency_ms"]["definite"] == {
        "count": 3, "sum": 1_300, "p50": 300, "p95": 900, "p99": 900,
    }  # fmt: skip
    assert report["totals"]["ack_latency_ms"]["definite"] == {
        "count": 4, "sum": 6_301, "p50": 300, "p95": 5_001, "p99": 5_001,
    }  # fmt: skip
    assert "ack_latencies" not in report["totals"]


def test_channel_without_details_has_an_empty_list() -> None:
    """Its percentiles are null."""
    report = build_report(snapshot_of(channels={"a": ChannelTotals()}), 0, {})
    assert report["channels"]["a"]["ack_latencies"] == []
    assert report["channels"]["a"]["ack_latency_ms"]["definite"]["p50"] is None


def test_report_without_detail_names_no_messages() -> None:
    """Message ids are written only on request."""
    report = build_report(snapshot_of(channels={"a": ChannelTotals()}), 0)
    assert "ack_latencies" not in report["channels"]["a"]
    assert "incidents" not in report


def test_detail_has_the_likely_causes_of_each_channel() -> None:
    """Without detail they are absent: they name participants."""
    snapshot = snapshot_of(
        clock_ms=8_000_000,
        channels={"a": explained_channel(8_000_000), "b": ChannelTotals()},
    )
    assert "causes" not in build_report(snapshot, 0)["channels"]["a"]
    channels = build_report(snapshot, 0, {}, [])["channels"]
    assert [one["kind"] for one in channels["a"]["causes"]] == [
        "one_participant",
        "no_repair_requests",
    ]
    assert channels["b"]["causes"] == []


def test_detail_has_the_likely_causes_of_groups() -> None:
    """By their own kind of view."""
    groups = Views(SHARD_VIEWS, {"g": GroupTotals()})
    snapshot = snapshot_of(others={"mvds": groups})
    report = build_report(snapshot, 0, {}, [], {"mvds": []})
    assert report["views"]["mvds"]["views"]["g"]["causes"] == []


def test_incidents_are_in_order_of_finding() -> None:
    """Those of equal time by channel, kind and message id."""
    found = [
        ChannelIncident(channel, Incident(kind, message_id, "", 0, found_ms), False)
        for channel, kind, message_id, found_ms in (
            ("a", IncidentKind.LOST, "m", 9),
            ("b", IncidentKind.LOST, "m", 5),
            ("a", IncidentKind.UNDELIVERED, "a", 5),
            ("a", IncidentKind.LOST, "n", 5),
            ("a", IncidentKind.LOST, "m", 5),
        )
    ]
    report = build_report(snapshot_of(), 0, {}, found)
    shown = [
        (one["found"], one["channel"], one["kind"], one["message_id"])
        for one in report["incidents"]
    ]
    assert shown == [
        (5, "a", "lost", "m"),
        (5, "a", "lost", "n"),
        (5, "a", "undelivered", "a"),
        (5, "b", "lost", "m"),
        (9, "a", "lost", "m"),
    ]
    assert build_report(snapshot_of(), 0, {}, [])["incidents"] == []


def test_incident_has_all_known_fields() -> None:
    """Unknown ones are null."""
    incident = Incident(
        IncidentKind.LOST,
        "m",
        "bob",
        since_ms=1,
        found_ms=2,
        ended_ms=3,
        lacking={"carol": 4},
        named_by=["bob", "dave"],
        waku_hash=b"\x01" * 32,
        hint=b"\x02\xff",
        lacking_others=7,
    )
    (shown,) = build_report(
        snapshot_of(), 0, {}, [ChannelIncident("a", incident, True)]
    )["incidents"]
    assert shown == {
        "channel": "a",
        "kind": "lost",
        "message_id": "m",
        "sender": "bob",
        "since": 1,
        "found": 2,
        "ended": 3,
        "lacking": {"carol": 4},
        "lacking_others": 7,
        "named_by": ["bob", "dave"],
        "waku_hash": "0x" + "01" * 32,
        "retrieval_hint": "02ff",
        "tap_hole": True,
        "why": "reached nobody but the sender: bob and dave named it, and for "
        "5 minutes nobody else showed to have it",
    }


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (IncidentKind.LOST, "at most one participant, who may be the sender:"),
        (
            IncidentKind.UNDELIVERED,
            "5 minutes later a participant was still sending",
        ),
        (IncidentKind.UNACKNOWLEDGED, "for 2 minutes nobody showed to have it"),
    ],
)
def test_incident_always_has_an_explanation(kind: IncidentKind, said: str) -> None:
    """It names the rule that found it, with its time."""
    incident = Incident(kind, "m", "", 1, 2)
    (shown,) = build_report(
        snapshot_of(), 0, {}, [ChannelIncident("a", incident, False)]
    )["incidents"]
    assert said in shown["why"]
    for name in ("sender", "ended", "waku_hash", "retrieval_hint"):
        assert shown[name] is None
    assert (shown["lacking"], shown["named_by"]) == ({}, [])


def judged(*verdicts: Verdict, **job: Any) -> Snapshot:
    """A job that runs and has read all, with so many channels."""
    running = {"running": True, "event_time_lag_seconds": 60.0} | job
    channels = {str(n): ChannelTotals(verdict=one) for n, one in enumerate(verdicts)}
    return snapshot_of(primed=True, job=JobFigures(**running), channels=channels)


@pytest.mark.parametrize(
    ("snapshot", "ok"),
    [
        (judged(Verdict.OK), True),
        (judged(), False),
        (judged(Verdict.WARMING_UP, Verdict.QUIET), True),
        (replace(judged(Verdict.OK), primed=False), False),
        (judged(Verdict.OK, running=False), False),
        (judged(Verdict.OK, event_time_lag_seconds=None), False),
        (judged(Verdict.OK, event_time_lag_seconds=60.1), False),
        (judged(Verdict.OK, kafka=Freshness(1, 1.0, 15.0)), True),
        (judged(Verdict.OK, kafka=Freshness(1, 1.0, 15.1)), False),
        *(
            (
                judged(verdict),
                verdict not in (Verdict.FAILING, Verdict.BLIND, Verdict.WARMING_UP),
            )
            for verdict in Verdict
        ),
    ],
)
def test_monitor_is_ok_if_nothing_is_wrong(snapshot: Snapshot, ok: bool) -> None:
    """Figures are complete and fresh, and a verdict says that nothing fails."""
    assert snapshot.ok is ok
