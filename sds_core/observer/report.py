"""The report: figures of all channels as one JSON-ready object (contract, 5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sds_core.observer.histogram import Histogram, nearest_rank
from sds_core.observer.incidents import ChannelIncident, incident_object
from sds_core.observer.sds.totals import ChannelTotals, sum_totals
from sds_core.observer.snapshot import Snapshot

SCHEMA = 1

Latencies = Sequence[tuple[str, int]]
"""Message id and latency in milliseconds, in order of t0."""


def build_report(
    snapshot: Snapshot,
    generated_at_ms: int,
    details: Mapping[str, Latencies] | None = None,
    incidents: Iterable[ChannelIncident] | None = None,
) -> dict[str, Any]:
    """The whole report.

    Args:
        snapshot: The figures.
        generated_at_ms: Wall time, Unix ms; the only field taken from it.
        details: With ``--report-detail``, every definite acknowledgement by
            channel; percentiles of their latency are then exact.
        incidents: With ``--report-detail``, every incident.
    """
    totals = sum_totals(snapshot.channels.values())
    all_latencies: list[tuple[str, int]] | None = None
    channels = {}
    if details is not None:
        all_latencies = [pair for pairs in details.values() for pair in pairs]
    for channel, figures in snapshot.channels.items():
        latencies = None if details is None else details.get(channel, ())
        channels[channel] = channel_report(figures, latencies)
        if latencies is not None:
            channels[channel]["ack_latencies"] = [list(pair) for pair in latencies]
    summed = channel_report(totals, all_latencies)
    # No verdict is shared by all channels.
    del summed["verdict"], summed["reason"]
    summed["undecodable"] = dict(snapshot.undecodable)
    report: dict[str, Any] = {
        "schema": SCHEMA,
        "generated_at": generated_at_ms,
        "window": {
            "first_event": totals.first_event_ms,
            "last_event": totals.last_event_ms,
        },
        "totals": summed,
        "channels": channels,
    }
    if incidents is not None:
        report["incidents"] = [
            incident_object(one) for one in sorted(incidents, key=_by_age)
        ]
    return report


def channel_report(
    totals: ChannelTotals, latencies: Latencies | None = None
) -> dict[str, Any]:
    """One channel's object; all numbers are integers, times in milliseconds.

    Args:
        totals: The channel's figures.
        latencies: Every definite acknowledgement, for exact percentiles.
    """
    definite = _percentiles(totals.definite_latency)
    if latencies is not None:
        definite |= _exact_percentiles(latencies)
    return {
        "frames": {
            kind: totals.frames_of(kind) for kind in ("content", "sync", "ephemeral")
        },
        "messages": totals.messages,
        "replicas": totals.replicas,
        "rebroadcasts": {
            "repair": totals.rebroadcasts_repair,
            "retry": totals.rebroadcasts_retry,
        },
        "acknowledged": {
            "definite": totals.acknowledged_definite,
            "probable": totals.acknowledged_probable,
        },
        "acknowledged_in_time": totals.acknowledged_in_time,
        "unacknowledged": totals.unacknowledged,
        "unwitnessed": totals.unwitnessed,
        "in_flight": totals.in_flight,
        "message_id_collisions": totals.message_id_collisions,
        "deliveries": {
            "first_pass": totals.deliveries_first_pass,
            "recovered": totals.deliveries_recovered,
            "lost": totals.deliveries_lost,
            "retracted": totals.deliveries_retracted,
        },
        "gaps": {
            "opened": totals.gaps_opened,
            "late": totals.gaps_late,
            "repaired": totals.gaps_repaired,
            "recovered_late": totals.gaps_recovered_late,
            "lost": totals.gaps_lost,
            "tap_gap": totals.gaps_tap_gap,
            "open": totals.gaps_open,
            "retracted": totals.gaps_retracted,
        },
        "repair": {
            "requests": totals.repair_requests,
            "requests_for_received": totals.repair_requests_for_received,
            "answered": totals.repair_answered,
            "expired": totals.repair_expired,
            "responses": totals.repair_responses,
            "redundant": totals.repair_redundant,
        },
        "repair_timing": {
            "requests_timed": totals.requests_timed,
            "requests_early": totals.requests_early,
            "responses_timed": totals.responses_timed,
            "responses_unexplained": totals.responses_unexplained,
        },
        "bytes": {
            "content": totals.bytes_content,
            "history": totals.bytes_history,
            "bloom": totals.bytes_bloom,
            "repair": totals.bytes_repair,
            "other": totals.bytes_other,
        },
        "repair_bytes": {
            "request": totals.bytes_repair,
            "response": totals.repair_bytes_response,
        },
        "ack_latency_ms": {
            "definite": definite,
            "probable": _percentiles(totals.probable_latency),
        },
        "repair_response_ms": _percentiles(totals.repair_response),
        "gap_ms": _percentiles(totals.gap_duration),
        "delivery_recovery_ms": _percentiles(totals.delivery_recovery),
        "participants": totals.participants,
        "verdict": totals.verdict.value,
        "reason": totals.verdict_reason,
    }


def _by_age(one: ChannelIncident) -> tuple[int, str, tuple[str, str]]:
    return one.incident.found_ms, one.channel, one.incident.key


_PERCENTILES = (50, 95, 99)


def _percentiles(histogram: Histogram) -> dict[str, int | None]:
    return {"count": histogram.count, "sum": histogram.sum_ms} | {
        f"p{percent}": histogram.percentile_ms(percent) for percent in _PERCENTILES
    }


def _exact_percentiles(latencies: Latencies) -> dict[str, int | None]:
    ordered = sorted(latency for _, latency in latencies)
    return {
        f"p{percent}": ordered[nearest_rank(len(ordered), percent) - 1]
        if ordered
        else None
        for percent in _PERCENTILES
    }
