"""`/taps`: whether the taps mirror all traffic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web import words
from connectors.web.extras import extras_of
from connectors.web.last_hour import LastHour
from connectors.web.naming import short_key
from connectors.web.pages.layout import Layout
from connectors.web.parameters import views_of
from connectors.web.sds.missed import Missed
from connectors.web.sources import Sources
from connectors.web.summary import views_by_tap
from sds_core.observer.clock import NOTABLE_MS
from sds_core.observer.settings import ObserverSettings
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.tap_view import TapTotals
from sds_core.observer.verdict import Verdict

_LISTED_HOLES = 10

LISTED_TAPS = 200
"""Maximum number of rows. A limit is necessary, because any client that can write to
the topic can invent taps."""


@dataclass(frozen=True, slots=True)
class Tap:
    """One tap in words.

    Attributes:
        verdict: Verdict that determines the colour of the tap's row.
        last_seen: Event time of the tap's last record, and the time since this record.
        missed: Number and share of the last hour's messages that the tap missed; see
            `Missed`.
        missing: Number of the tap's sequence numbers that never arrived.
        holes: Capture gaps, newest first.
        hidden: Number of older capture gaps, which are not listed.
    """

    key: str
    name: str
    badge: str
    verdict: Verdict
    state: str
    clock: str
    last_seen: str = words.NOTHING
    missed: str = words.NOTHING
    missing: str = words.NOTHING
    channels: str = "0"
    holes: Sequence[str] = ()
    hidden: int = 0


_WRONG_CLOCK, _INCOMPLETE = "Wrong clock", "Incomplete"

_RANK = (Verdict.BLIND, Verdict.DEGRADED, Verdict.OK)


def routes(layout: Layout, sources: Sources) -> list[BaseRoute]:
    """Return the route of the page that lists the taps."""

    def page(request: Request) -> Response:
        snapshot = sources.current()
        if not snapshot.primed:
            return layout.unread(request, snapshot, "Taps")
        views = views_of(request, snapshot)
        channels = views_by_tap(views)
        stored = sources.of(views.kind.prefix)
        hour = LastHour(stored, views.figures, snapshot.clock_ms)
        missed = extras_of(views.kind).missed(snapshot, views, hour)
        taps = [
            _tap(snapshot, observer, tap, channels[observer], missed[observer])
            for observer, tap in sorted(snapshot.taps.items())
        ]
        taps += [
            _refused(observer, offset_ms)
            for observer, offset_ms in snapshot.job.clock.skewed_taps.items()
            if observer not in snapshot.taps
        ]
        taps.sort(key=lambda tap: _RANK.index(tap.verdict))
        return layout.page(
            request,
            snapshot,
            "taps.html",
            title="Taps",
            taps=taps[:LISTED_TAPS],
            more=max(0, len(taps) - LISTED_TAPS),
            advice=_advice(
                taps,
                snapshot.observer,
                any(tap.missing_records for tap in snapshot.taps.values()),
            ),
            weak=_weak(taps),
            since=words.since(hour.begin_ms, snapshot.clock_ms),
        )

    return [Route("/taps", page)]


def _tap(
    snapshot: Snapshot, observer: str, tap: TapTotals, channels: int, missed: Missed
) -> Tap:
    settings = snapshot.observer
    silent_ms = snapshot.clock_ms - tap.last_seen_ms
    lately = words.lately(settings.verdict_window_ms)
    clock = snapshot.job.clock
    badge, verdict, state = "OK", Verdict.OK, f"no sequence gap in {lately}"
    if trouble := _trouble(tap, snapshot):
        badge, verdict, state = "Interrupted", Verdict.BLIND, trouble
    elif observer in clock.skewed_taps:
        badge, verdict = _WRONG_CLOCK, Verdict.DEGRADED
    elif missed.is_much(settings):
        badge, verdict = _INCOMPLETE, Verdict.DEGRADED
        state = "the tap's node does not receive all messages"
    return Tap(
        short_key(observer),
        name=words.short(observer),
        badge=badge,
        verdict=verdict,
        state=state,
        clock=_clock(clock.taps.get(observer)),
        last_seen=f"{words.utc(tap.last_seen_ms)}, {words.age(silent_ms)} ago",
        missed=str(missed),
        missing=words.number(tap.missing_records),
        channels=words.number(channels),
        holes=[
            f"{words.utc(from_ms)}, for {words.age(to_ms - from_ms)}"
            for from_ms, to_ms in tap.holes[: -_LISTED_HOLES - 1 : -1]
        ],
        hidden=max(len(tap.holes) - _LISTED_HOLES, 0),
    )


def _refused(observer: str, offset_ms: int) -> Tap:
    return Tap(
        short_key(observer),
        name=words.short(observer),
        badge=_WRONG_CLOCK,
        verdict=Verdict.DEGRADED,
        state="the monitor refuses the tap's records: see the dead letters",
        clock=_clock(offset_ms),
    )


def _clock(offset_ms: int | None) -> str:
    if offset_ms is None:
        return words.NOTHING
    if abs(offset_ms) <= NOTABLE_MS:
        return "agrees"
    side = "fast" if offset_ms > 0 else "slow"
    return f"{words.seconds(abs(offset_ms) / 1000)} {side}"


def _trouble(tap: TapTotals, snapshot: Snapshot) -> str:
    clock_ms, settings = snapshot.clock_ms, snapshot.observer
    silent_ms = clock_ms - tap.last_seen_ms
    if silent_ms > settings.tap_hole_ms:
        return f"silent for {words.age(silent_ms)}"
    if tap.last_hole_ms is None:
        return ""
    end_ms = tap.last_hole_ms + settings.verdict_window_ms
    if clock_ms > end_ms:
        return ""
    again = words.since(words.next_minute_ms(end_ms), clock_ms)
    return (
        f"the tap was interrupted at {words.since(tap.last_hole_ms, clock_ms)}; "
        f"the monitor trusts the tap again at {again}"
    )


def _weak(taps: list[Tap]) -> str:
    if not any(tap.badge == _INCOMPLETE for tap in taps):
        return ""
    return (
        "A message counts as missed if a participant received it, but no tap of its "
        "channel recorded it. Missed messages leave no sequence gaps, because the "
        "taps' nodes never received them. Connect the node of the tap to more peers, "
        "or add a second tap for the channel."
    )


def _advice(taps: list[Tap], settings: ObserverSettings, ever_skipped: bool) -> str:
    if not taps:
        return (
            f"No tap has sent a record in {words.lately(settings.horizon_ms)}. Check "
            "that the mirror runs, and that it writes heartbeats to the monitor's "
            "topic."
        )
    if any(tap.badge == _WRONG_CLOCK for tap in taps):
        return (
            "A tap has a wrong clock, so its records have wrong times. The monitor "
            "refuses records whose time is a minute or more in the future. Set the "
            "tap's clock by NTP."
        )
    if not any(tap.verdict is Verdict.BLIND for tap in taps):
        lately = (
            f" in {words.lately(settings.verdict_window_ms)}" if ever_skipped else ""
        )
        return f"No tap had a sequence gap{lately}."
    return (
        "If all taps of a channel were interrupted, the channel is blind, because "
        "messages that seem lost may have been delivered while the taps recorded "
        "nothing. Check that the mirror runs and that its node has peers. The channel "
        "is blind until one of its taps has had no interruption for "
        f"{words.duration(settings.verdict_window_ms)}."
    )
