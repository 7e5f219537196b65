"""`/taps`: whether the taps mirror all traffic."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web import words
from connectors.web.naming import short_key
from connectors.web.pages.layout import Layout
from connectors.web.sources import Sources
from connectors.web.summary import channels_by_tap
from sds_core.observer.settings import ObserverSettings
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.tap_view import TapTotals

_LISTED_HOLES = 10

LISTED_TAPS = 200
"""Greatest number of rows: whoever may write to the topic can invent taps."""


@dataclass(frozen=True, slots=True)
class Tap:
    """One tap in words.

    Attributes:
        key: Identifies the tap within the page.
        name: Tap id in one line.
        troubled: Whether the tap may miss records now.
        state: The same in words.
        last_seen: Event time of the last record, and how long before the clock it is.
        missing: Number of records that never arrived.
        channels: Number of channels that the tap mirrors.
        holes: Spans in which it may have missed records, newest first.
        hidden: Number of older holes.
    """

    key: str
    name: str
    troubled: bool
    state: str
    last_seen: str
    missing: str
    channels: str
    holes: list[str]
    hidden: int


def routes(layout: Layout, sources: Sources) -> list[BaseRoute]:
    """The list of taps."""

    # Synchronous, so Starlette runs it in its thread pool: it reads all channels.
    def page(request: Request) -> Response:
        """Taps, those in trouble first."""
        snapshot = sources.current()
        if not snapshot.primed:
            return layout.unread(request, snapshot, "Taps")
        channels = channels_by_tap(snapshot)
        taps = [
            _tap(snapshot, observer, tap, channels[observer])
            for observer, tap in sorted(snapshot.taps.items())
        ]
        taps.sort(key=lambda tap: not tap.troubled)
        return layout.page(
            request,
            snapshot,
            "taps.html",
            title="Taps",
            taps=taps[:LISTED_TAPS],
            more=max(0, len(taps) - LISTED_TAPS),
            advice=_advice(taps, snapshot.observer),
        )

    return [Route("/taps", page)]


def _tap(snapshot: Snapshot, observer: str, tap: TapTotals, channels: int) -> Tap:
    silent_ms = snapshot.clock_ms - tap.last_seen_ms
    troubles = _troubles(tap, snapshot)
    return Tap(
        short_key(observer),
        name=words.short(observer),
        troubled=bool(troubles),
        state="; ".join(troubles) or "shows all its records",
        last_seen=f"{words.utc(tap.last_seen_ms)}, {words.age(silent_ms)} ago",
        missing=words.number(tap.missing_records),
        channels=words.number(channels),
        holes=[_span(*hole) for hole in tap.holes[: -_LISTED_HOLES - 1 : -1]],
        hidden=max(len(tap.holes) - _LISTED_HOLES, 0),
    )


def _troubles(tap: TapTotals, snapshot: Snapshot) -> list[str]:
    """Return why the tap may miss records; empty if it does not."""
    troubles = []
    clock_ms, settings = snapshot.clock_ms, snapshot.observer
    if clock_ms - tap.last_seen_ms > settings.tap_hole_ms:
        troubles.append(f"silent for {words.age(clock_ms - tap.last_seen_ms)}")
    window_ms = settings.verdict_window_ms
    if tap.last_hole_ms is not None and clock_ms - tap.last_hole_ms <= window_ms:
        troubles.append(f"a hole within the last {words.duration(window_ms)}")
    return troubles


def _span(from_ms: int, to_ms: int) -> str:
    return f"{words.utc(from_ms)}, for {words.age(to_ms - from_ms)}"


def _advice(taps: list[Tap], settings: ObserverSettings) -> str:
    window = words.duration(settings.verdict_window_ms)
    if not taps:
        return (
            "No tap has shown a record within the last hour. Look whether the mirror "
            "runs, and whether it writes heartbeats to the topic that is read here."
        )
    if not any(tap.troubled for tap in taps):
        return "Every tap shows all its records."
    return (
        "A channel all of whose taps are in trouble is blind: what seems lost may be "
        "missing from the taps alone. Look whether the mirror runs and its node has "
        f"peers. A verdict returns {window} after the last hole."
    )
