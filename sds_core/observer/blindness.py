"""Finds the views that cannot be judged because the taps may have missed messages.

Source: docs/figures.md, 8. Only this module combines views with the state of their
taps, so a view's figures never depend on the health of a tap.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from sds_core.observer.causes import Cause, Surroundings
from sds_core.observer.excused import Excuse, ExcusedFindings
from sds_core.observer.freshness import SILENT_S
from sds_core.observer.kinds import AnyKind
from sds_core.observer.settings import DEFAULTS, ObserverSettings
from sds_core.observer.snapshot import Snapshot, Views
from sds_core.observer.tap_view import TapTotals
from sds_core.observer.verdict import Verdict
from sds_core.observer.view_totals import Excused, ViewTotals, replaced

Totals = TypeVar("Totals", bound=ViewTotals)

_Holes = Sequence[tuple[int, int]]
"""Start and end of each capture gap of one tap, event time, Unix ms."""

_BAD = (Verdict.FAILING, Verdict.DEGRADED, Verdict.BLIND)
_SILENT_MS = round(SILENT_S * 1000)


def judge_blindness(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with the verdict BLIND for each view that is blind.

    A view is blind if all its taps had recent capture gaps, or while an audit reports
    that the mirror lacks a recent message of the view. A view that warms up is never
    blind.

    If all taps of a view had a capture gap while a finding arose or shortly before, the
    finding does not count for verdicts other than BLIND. If a verdict follows
    blindness, it begins when the blindness ended, if this time is known.

    If no records arrive in the topic at all, every view is blind. This rule needs the
    moment that `Snapshot.as_of` gets, so it does not apply to a report, which has no
    such moment. The rule also does not apply while Kafka does not answer or the topic
    does not exist. In these cases, the silence of a tap is measured only in event time.
    """
    settings = snapshot.observer
    silent = (
        snapshot.job.arrivals.is_silent
        and snapshot.clock_ms > 0
        # If the topic's state is unknown, `records_behind` may be too small, because it
        # is computed from an old end of the topic.
        and snapshot.job.knows_topic
        and not snapshot.job.records_behind
    )

    troubled = {
        name: _troubled(tap, snapshot.clock_ms, settings)
        for name, tap in snapshot.taps.items()
    }
    is_complete = not snapshot.audit.newest_missing_ms
    if not silent and is_complete and all(one is None for one in troubled.values()):
        return snapshot

    # The function is cached, because thousands of views share a few sets of taps.
    @cache
    def blind(observers: tuple[str, ...]) -> _Span | None:
        return _common(troubled[name] for name in observers if name in troubled)

    judged_views = {}
    for prefix, views in snapshot.views.items():
        totals: Mapping[str, ViewTotals] = {
            name: _judged(one, snapshot, blind, silent)
            for name, one in views.totals.items()
        }
        if views.kind.is_audited and not is_complete:
            totals = _audited(totals, snapshot)
        views = replace(views, totals=MappingProxyType(totals))
        excused = MappingProxyType(dict(_findings(views, snapshot)))
        judged_views[prefix] = replace(views, excused=excused)
    return replace(snapshot, views=MappingProxyType(judged_views))


def _findings(
    views: Views[ViewTotals], snapshot: Snapshot
) -> Iterator[tuple[str, Sequence[ExcusedFindings]]]:
    """Yield each view that has excused findings: its name and these findings."""
    kind, settings = views.kind, snapshot.observer

    @cache
    def holes(observers: tuple[str, ...]) -> Collection[_Holes]:
        return holes_of(observers, snapshot.taps, snapshot.clock_ms, settings).values()

    for name, totals in views.totals.items():
        taps = holes(tuple(totals.observers))
        missing_ms = _recently_missing_ms(name, snapshot) if kind.is_audited else None
        if missing_ms is None and not (taps and all(taps)):
            continue

        def excusing(
            since_ms: int,
            found_ms: int,
            taps: Collection[_Holes] = taps,
            missing_ms: int | None = missing_ms,
        ) -> Excuse | None:
            from_ms = since_ms - settings.tap_hole_ms
            if _have_holes(taps, from_ms, found_ms):
                found = [one for tap in taps for one in _within(tap, from_ms, found_ms)]
                begin_ms = min(first_ms for first_ms, _ in found)
                return Excuse("tap_hole", begin_ms, max(end_ms for _, end_ms in found))
            if missing_ms is not None and from_ms <= missing_ms:
                return Excuse("audit_incomplete", missing_ms, missing_ms)
            return None

        if found := kind.excused(totals, excusing, settings):
            yield name, found


def _audited(views: Mapping[str, Totals], snapshot: Snapshot) -> Mapping[str, Totals]:
    def judged(name: str, totals: Totals) -> Totals:
        missing_ms = _recently_missing_ms(name, snapshot)
        if missing_ms is None or totals.verdict in (Verdict.WARMING_UP, Verdict.BLIND):
            return totals
        return _blinded(totals, "audit_incomplete", missing_ms)

    return {name: judged(name, totals) for name, totals in views.items()}


def _recently_missing_ms(name: str, snapshot: Snapshot) -> int | None:
    """Time of a view's newest message that the mirror lacks, Unix ms.

    None if the mirror lacks no message, or only old ones.
    """
    missing_ms = snapshot.audit.missing_ms(name)
    if missing_ms is None:
        return None
    is_recent = missing_ms + snapshot.observer.verdict_window_ms >= snapshot.clock_ms
    return missing_ms if is_recent else None


def coincides_with_hole(
    observers: Iterable[str],
    taps: Mapping[str, TapTotals],
    from_ms: int,
    to_ms: int,
    clock_ms: int,
    settings: ObserverSettings = DEFAULTS,
) -> bool:
    """Whether every tap of a view had a capture gap in a period.

    The period is in event time, Unix ms, both ends inclusive. If a tap is silent, the
    silence counts as a capture gap that ends at `clock_ms`. Observers that are not in
    `taps` are ignored. If all observers are ignored, the result is False.
    """
    holes = holes_of(observers, taps, clock_ms, settings)
    return _have_holes(holes.values(), from_ms, to_ms)


def blind_until_ms(
    observers: Iterable[str], snapshot: Snapshot, settings: ObserverSettings = DEFAULTS
) -> int | None:
    """Event time until which a view stays blind, Unix ms.

    The time assumes that the taps have no further capture gaps. Taps that are silent or
    had no capture gap, and taps that are not in the snapshot, are ignored. The result
    is None if all taps are ignored.
    """
    found = [snapshot.taps[name] for name in observers if name in snapshot.taps]
    ends = [
        tap.last_hole_ms + settings.verdict_window_ms
        for tap in found
        if tap.last_hole_ms is not None
        and snapshot.clock_ms - tap.last_seen_ms <= settings.tap_hole_ms
    ]
    return min(ends, default=None)


def excuse_of(
    observers: Iterable[str], snapshot: Snapshot, settings: ObserverSettings = DEFAULTS
) -> Excused | None:
    """Return a function that decides whether capture gaps of all taps excuse evidence.

    Taps that are not in the snapshot are ignored. If at least one tap had no
    capture gap, or if no tap is known, the result is None: no evidence is excused.
    """
    taps = holes_of(observers, snapshot.taps, snapshot.clock_ms, settings).values()
    if not taps or not all(taps):
        return None

    def excused(since_ms: int, found_ms: int) -> bool:
        return _have_holes(taps, since_ms - settings.tap_hole_ms, found_ms)

    return excused


def causes_of(snapshot: Snapshot, totals: ViewTotals, kind: AnyKind) -> Sequence[Cause]:
    """Return the likely causes of a view's verdict, the most convincing first.

    The verdict in `totals` must come from `judge_blindness`. The result is empty if
    this verdict is not bad, or if the evidence shows no cause.
    """
    if totals.verdict not in _BAD:
        return ()
    settings = snapshot.observer
    around = Surroundings(
        snapshot.clock_ms,
        holes_of(totals.observers, snapshot.taps, snapshot.clock_ms, settings),
        excuse_of(totals.observers, snapshot, settings),
        settings,
    )
    return kind.causes(totals, around)


class _Span(NamedTuple):
    """A period of event time, both ends inclusive, Unix ms."""

    from_ms: int
    to_ms: int


def _judged(
    totals: Totals,
    snapshot: Snapshot,
    blind_of: Callable[[tuple[str, ...]], _Span | None],
    silent: bool,
) -> Totals:
    """Return a view's totals with the verdict that follows from the state of its taps.

    `blind_of` returns the latest period in which capture gaps of all given taps make a
    view blind. `silent` is true if no records arrive in the topic.
    """
    settings = snapshot.observer
    if totals.verdict is Verdict.WARMING_UP:
        return totals
    blind = blind_of(tuple(totals.observers))
    if blind is not None and blind.to_ms >= snapshot.clock_ms:
        # The capture gap may have begun while the view warmed up. Blindness begins
        # after the warm-up.
        warm_ms = (totals.first_event_ms or 0) + settings.warm_up_ms
        return _blinded(totals, "tap_hole", max(blind.from_ms, warm_ms))
    if silent:
        return _blinded(totals, "no_records", snapshot.clock_ms + _SILENT_MS)
    totals = _excused(totals, snapshot, blind, settings)
    if blind is None or totals.verdict_since_ms is None:
        return totals
    since_ms = max(totals.verdict_since_ms, blind.to_ms + 1)
    return replaced(totals, verdict_since_ms=since_ms)


def _excused(
    totals: Totals, snapshot: Snapshot, blind: _Span | None, settings: ObserverSettings
) -> Totals:
    """Return the totals with the verdict that follows without excused evidence."""
    if totals.verdict not in (Verdict.FAILING, Verdict.DEGRADED):
        return totals
    excused = excuse_of(totals.observers, snapshot, settings)
    if excused is None:
        return totals
    verdict, reason = totals.verdict_without(excused, settings)
    if verdict is totals.verdict:
        return replaced(totals, verdict_reason=reason)
    changed = replaced(totals, verdict=verdict, verdict_reason=reason)
    if blind is None:
        return changed
    # The start in the totals belongs to a verdict that excused evidence caused. The new
    # verdict begins when the blindness ended.
    return replaced(changed, verdict_since_ms=blind.to_ms + 1)


def _common(found: Iterable[_Span | None]) -> _Span | None:
    """Return the intersection of periods; None if it is empty or a period is None."""
    every = list(found)
    spans = [one for one in every if one is not None]
    if not spans or len(spans) < len(every):
        return None
    from_ms, to_ms = max(one.from_ms for one in spans), min(one.to_ms for one in spans)
    return _Span(from_ms, to_ms) if from_ms <= to_ms else None


def _troubled(
    tap: TapTotals, clock_ms: int, settings: ObserverSettings
) -> _Span | None:
    """Return the latest period in which a tap's capture gaps can make views blind.

    None if the tap had no capture gap and is not silent.
    """
    span = None
    if tap.last_hole_ms is not None:
        # In totals that release 0.1 stored, `hole_since_ms` is None.
        since_ms = tap.hole_since_ms or tap.last_hole_ms
        span = _Span(since_ms, tap.last_hole_ms + settings.verdict_window_ms)
    silent_ms = tap.last_seen_ms + settings.tap_hole_ms
    if clock_ms <= silent_ms:
        return span
    if span is None or span.to_ms < silent_ms:
        return _Span(silent_ms, clock_ms)
    return span._replace(to_ms=clock_ms)


def holes_of(
    observers: Iterable[str],
    taps: Mapping[str, TapTotals],
    clock_ms: int,
    settings: ObserverSettings,
) -> dict[str, _Holes]:
    """Return the capture gaps of each tap.

    If a tap is silent, the silence is included. Observers that are not in `taps` are
    omitted.
    """
    found: dict[str, _Holes] = {}
    for name in observers:
        if (tap := taps.get(name)) is not None:
            found[name] = tap.holes
            if clock_ms - tap.last_seen_ms > settings.tap_hole_ms:
                found[name] = [*tap.holes, (tap.last_seen_ms, clock_ms)]
    return found


def _have_holes(taps: Collection[_Holes], from_ms: int, to_ms: int) -> bool:
    return bool(taps) and all(any(_within(holes, from_ms, to_ms)) for holes in taps)


def _within(holes: _Holes, from_ms: int, to_ms: int) -> Iterator[tuple[int, int]]:
    for first_ms, last_ms in holes:
        if first_ms <= to_ms and last_ms >= from_ms:
            yield first_ms, last_ms


def _blinded(totals: Totals, reason: str, since_ms: int) -> Totals:
    return replaced(
        totals, verdict=Verdict.BLIND, verdict_reason=reason, verdict_since_ms=since_ms
    )
