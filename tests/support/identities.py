"""Equations that are true for every report (docs/figures.md, 4 to 7, 9 and 11)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_MERGED = frozenset({"p50", "p95", "p99"})
"""Percentiles, which no sum gives."""


def assert_identities(report: Mapping[str, Any]) -> None:
    """Check that figures of each channel, and the totals, are consistent.

    Args:
        report: As `build_report` makes it, or as read from its JSON.
    """
    totals, channels = report["totals"], [*report["channels"].values()]
    if "forgotten" in report:
        channels.append(report["forgotten"]["totals"])
    for figures in (*channels, totals):
        _assert_figures(figures)
    parts = [dict(_integers(figures)) for figures in channels]
    # Channels have no undecodable frames: nothing says whose they were.
    summed = {name: value for name, value in totals.items() if name != "undecodable"}
    for name, value in _integers(summed):
        assert value == sum(part[name] for part in parts), name


def _assert_figures(figures: Mapping[str, Any]) -> None:
    assert {name for name, value in _integers(figures) if value < 0} == set()
    _assert_messages(figures)
    _assert_gaps(figures)
    _assert_deliveries(figures)
    _assert_repair(figures)
    _assert_segments(figures)


def _assert_messages(figures: Mapping[str, Any]) -> None:
    messages, acknowledged = figures["messages"], figures["acknowledged"]
    assert messages == (
        figures["acknowledged_in_time"]
        + figures["unacknowledged"]
        + figures["unwitnessed"]
        + figures["in_flight"]
    )
    for evidence in ("definite", "probable"):
        assert acknowledged[evidence] <= messages
        count = figures["ack_latency_ms"][evidence]["count"]
        assert count == acknowledged[evidence]
    if "ack_latencies" in figures:
        assert len(figures["ack_latencies"]) == acknowledged["definite"]
    # A record that is later than the horizon counts as a frame only.
    frames = figures["frames"]
    assert frames["content"] + frames["sync"] >= (
        messages
        + sum(figures["rebroadcasts"].values())
        + figures["message_id_collisions"]
    )


def _assert_gaps(figures: Mapping[str, Any]) -> None:
    gaps = figures["gaps"]
    filled = gaps["late"] + gaps["repaired"] + gaps["recovered_late"]
    assert gaps["opened"] == filled + gaps["lost"] + gaps["tap_gap"] + gaps["open"]
    assert gaps["retracted"] <= gaps["lost"]
    assert figures["gap_ms"]["count"] == filled


def _assert_deliveries(figures: Mapping[str, Any]) -> None:
    deliveries = figures["deliveries"]
    assert deliveries["retracted"] <= deliveries["lost"]
    assert figures["delivery_recovery_ms"]["count"] == deliveries["recovered"]


def _assert_repair(figures: Mapping[str, Any]) -> None:
    repair, sizes = figures["repair"], figures["bytes"]
    assert repair["responses"] == repair["answered"] + repair["redundant"]
    assert repair["requests_for_received"] <= repair["requests"]
    assert figures["repair_response_ms"]["count"] == repair["answered"]
    assert figures["repair_bytes"]["request"] == sizes["repair"]
    assert figures["repair_bytes"]["response"] <= sum(sizes.values())


def _assert_segments(figures: Mapping[str, Any]) -> None:
    messages, segments = figures["segmented"], figures["segments"]
    ended = messages["complete"] + messages["incomplete"]
    assert messages["begun"] == ended + messages["open"]
    assert messages["begun"] <= segments["data"] + segments["parity"]


def _integers(figures: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, int]]:
    """Return every numeric figure by its path."""
    for name, value in figures.items():
        if isinstance(value, Mapping):
            yield from _integers(value, f"{path}{name}.")
        elif isinstance(value, int) and name not in _MERGED:
            yield f"{path}{name}", value
