"""Channels whose taps see too little to judge them (observer model, section 8).

Joined outside the channels' views: a channel's figures never depend on a tap's health.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import msgspec

from sds_core.observer.settings import DEFAULTS, ObserverSettings
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.totals import ChannelTotals, TapTotals, Verdict

SILENT_MS = 60_000
"""Wall time without any record after which nothing can be said: twelve heartbeats."""


def judge_blindness(
    snapshot: Snapshot,
    wall_ms: int | None = None,
    settings: ObserverSettings = DEFAULTS,
) -> Snapshot:
    """The snapshot, with the verdict BLIND where no tap sees the channel whole.

    Args:
        snapshot: Figures with the verdicts of the views.
        wall_ms: Wall time now, for a topic that fell silent as a whole; None to
            judge by event time alone, as a report does.
        settings: Of the observer model.
    """
    silent = (
        wall_ms is not None
        and snapshot.clock_ms > 0
        and wall_ms - snapshot.clock_ms > SILENT_MS
        and not snapshot.job.records_behind
    )
    channels = {}
    for name, totals in snapshot.channels.items():
        reason = ""
        if totals.verdict is not Verdict.WARMING_UP:
            if _all_have_holes(totals, snapshot.taps, snapshot.clock_ms, settings):
                reason = "tap_hole"
            elif silent:
                reason = "no_records"
        channels[name] = _blinded(totals, reason) if reason else totals
    return replace(snapshot, channels=MappingProxyType(channels))


def has_hole(
    tap: TapTotals, clock_ms: int, settings: ObserverSettings = DEFAULTS
) -> bool:
    """Whether a tap is silent now, or missed something within the window."""
    if clock_ms - tap.last_seen_ms > settings.tap_hole_ms:
        return True
    return (
        tap.last_hole_ms is not None
        and clock_ms - tap.last_hole_ms <= settings.verdict_window_ms
    )


def _all_have_holes(
    totals: ChannelTotals,
    taps: Mapping[str, TapTotals],
    clock_ms: int,
    settings: ObserverSettings,
) -> bool:
    found = [taps[name] for name in totals.observers if name in taps]
    return bool(found) and all(has_hole(tap, clock_ms, settings) for tap in found)


def _blinded(totals: ChannelTotals, reason: str) -> ChannelTotals:
    return msgspec.structs.replace(totals, verdict=Verdict.BLIND, verdict_reason=reason)
