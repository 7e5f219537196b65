"""The JSON API: every figure and every incident, with the keys of the report.

The object of a view has the keys of the report and of `answer_types.ViewObject`. In a
path under `/api/v1/views/<prefix>`, the prefix selects the kind of the views. Paths
without a prefix select channels, the kind at the root. Times are Unix milliseconds;
durations are milliseconds if the name ends in `_ms`. Lists are divided into pages
(`connectors.web.paging`). If more entries follow a page, the answer has a value `next`.
To request the next page, send this value as the parameter `after`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.requests import Request
from starlette.routing import BaseRoute

from connectors.web.alert_words import held_object
from connectors.web.answer_types import (
    VIEW_TYPES,
    FleetPage,
    IncidentsPage,
    JobObject,
    VerdictsPage,
    fleet_type,
    minutes_type,
    taps_type,
    views_type,
)
from connectors.web.answers import growth_object
from connectors.web.extras import EXTRAS
from connectors.web.lookups import Lookups, read_figures
from connectors.web.naming import display_name
from connectors.web.operations import KINDS, NoQuery, json_operation, of_views
from connectors.web.paging import (
    PAGE_LIMIT,
    ListedIncident,
    PageQuery,
    PlaceMs,
    Reference,
    ViewsQuery,
    next_after,
)
from connectors.web.parameters import HoursQuery, IncidentSelection, Whole, views_of
from connectors.web.refusals import HistoryBusy, HistoryUnreadable, NoChannel, NoRecord
from connectors.web.sources import Sources, shown_until_ms
from connectors.web.summary import (
    Trouble,
    names_by_trouble,
    summarise,
    trouble_of,
    views_by_tap,
)
from sds_core.observer.blindness import causes_of
from sds_core.observer.causes import CauseObject
from sds_core.observer.incidents import ChannelIncident, incident_object
from sds_core.observer.minutes import MINUTE_MS
from sds_core.observer.protocols import ROOT_KIND
from sds_core.observer.settings_table import changed
from sds_core.observer.shown_verdicts import DAY_MS, Span, minutes_by_verdict
from sds_core.observer.snapshot import Snapshot, Views
from sds_core.observer.tap_kind import TAP_FIGURES


# Places in lists.
class _ViewPlace(NamedTuple):
    muted: bool
    rank: int
    view: Reference


class _SpanPlace(NamedTuple):
    # Not the start: without `from`, the first period begins later on each request.
    end_ms: PlaceMs


def _place_of(span: Span) -> _SpanPlace:
    return _SpanPlace(span.end_ms)


@dataclass(frozen=True, kw_only=True)
class IncidentsQuery(IncidentSelection, PageQuery):
    """Selects a page of incidents."""


@dataclass(frozen=True, kw_only=True)
class VerdictsQuery(ViewsQuery):
    """Selects a view, a period, and a page of the verdicts shown in this period.

    Attributes:
        begin: Start of the period, wall time, Unix ms; by default 24 hours before the
            end of the period.
        end: End of the period, wall time, Unix ms; by default now.
    """

    begin: Whole | None = field(default=None, metadata={"name": "from"})
    end: Whole | None = field(default=None, metadata={"name": "to"})


class _AnyText(PathConvertor):
    # Starlette's own convertor `path` stops at a line end, but an id may contain one.
    regex = r"[\s\S]*"


register_url_convertor("anytext", _AnyText())


def routes(sources: Sources, lookups: Lookups) -> list[BaseRoute]:
    """Return the routes of the API."""

    def all_views(request: Request, query: ViewsQuery) -> Mapping[str, Any]:
        """Return a page of channels or groups.

        `id` or `key` selects a single channel or group. At `/api/v1/channels`, the
        answer also contains the overall verdict and the state of the job. The list of
        channels is sorted by verdict, most severe first; muted channels are last. At
        addresses below `/api/v1/views`, the list is sorted by id.
        """
        place = query.place(_ViewPlace)
        is_root = "prefix" not in request.path_params
        snapshot = sources.current() if is_root else read_figures(sources)
        views = views_of(request, snapshot)
        names = names_by_trouble(views) if is_root else sorted(views.totals)
        place_of = trouble_of(views) if is_root else _by_name
        many = len(views.totals)
        head: Mapping[str, Any] = {"clock": snapshot.clock_ms or None, "count": many}
        if is_root:
            head = {**_fleet(snapshot, views), f"{views.kind.names.one}_count": many}
        name = query.find(views.totals) if snapshot.primed else None
        if name is not None:
            names, place = [_known(views, name)], None
        begin = place and (*place[:2], place.view.find(views.totals))
        shown, more = query.cut(names, begin, place_of)
        return {
            **head,
            views.kind.names.many: [
                _view_object(snapshot, views, each) for each in shown
            ],
            "next": next_after(
                shown, more, lambda name: (*place_of(name)[:2], Reference.to(name))
            ),
        }

    def single_view(request: Request, query: NoQuery) -> Mapping[str, Any]:
        """Return the channel whose percent-encoded id is in the path."""
        snapshot = read_figures(sources)
        views = views_of(request, snapshot)
        name = _known(views, request.path_params["id"])
        return _view_object(snapshot, views, name)

    def incidents(request: Request, query: IncidentsQuery) -> IncidentsPage:
        """Return a page of incidents, newest first."""
        place = query.place(ListedIncident)
        snapshot = read_figures(sources)
        views = views_of(request, snapshot)
        listed = lookups.incidents(
            views.kind.prefix,
            msgspec.structs.replace(
                query.query(views.totals),
                after=None if place is None else place.find(views.totals),
                # Read one incident more than the page shows, to find out whether more
                # exist.
                limit=query.length + 1,
            ),
        )
        shown, more = listed[: query.length], len(listed) > query.length
        return {
            "incidents": [
                {
                    **incident_object(one, snapshot.observer, views.kind.explain),
                    "channel_name": _name(snapshot, views, one.channel),
                }
                for one in shown
            ],
            "causes": _causes(snapshot, views, shown),
            "observer": changed(snapshot.observer),
            "clock": snapshot.clock_ms or None,
            "more": more,
            "next": next_after(shown, more, ListedIncident.of),
        }

    def taps(request: Request, query: PageQuery) -> Mapping[str, Any]:
        """Return a page of taps, sorted by id."""
        place = query.place(Reference)
        snapshot = read_figures(sources)
        channels = views_by_tap(views_of(request, snapshot))
        shown, more = query.cut(
            sorted(snapshot.taps),
            None if place is None else place.find(snapshot.taps),
            lambda observer: observer,
        )
        return {
            "clock": snapshot.clock_ms or None,
            "taps": [
                {
                    "id": observer,
                    **TAP_FIGURES.report(snapshot.taps[observer]),
                    "clock_offset_ms": snapshot.job.clock.taps.get(observer),
                    "holes": [list(span) for span in snapshot.taps[observer].holes],
                    "channel_count": channels[observer],
                }
                for observer in shown
            ],
            "wrong_clocks": dict(snapshot.job.clock.skewed_taps),
            "next": next_after(shown, more, Reference.to),
        }

    def minutes(request: Request, query: HoursQuery) -> Mapping[str, Any]:
        """Return how much each figure of a channel or group grew in each interval.

        The figures include a minute only after the minute has ended.
        """
        snapshot = read_figures(sources)
        views = views_of(request, snapshot)
        name = query.existing(views.totals)
        trend = lookups.trend(snapshot, views, name, query.hours)
        growths = zip(trend.begins_ms, trend.growth, strict=True)
        return {
            "id": name,
            "hours": query.hours,
            "interval_ms": trend.step_ms,
            "intervals": [
                {"begin": begin_ms, "figures": growth_object(views.figures, growth)}
                for begin_ms, growth in growths
            ],
        }

    def verdicts(request: Request, query: VerdictsQuery) -> VerdictsPage:
        """Return a page of a view's verdicts in a period, oldest first."""
        place = query.place(_SpanPlace)
        snapshot = read_figures(sources)
        views = views_of(request, snapshot)
        prefix = views.kind.prefix
        since_ms, until_ms = _times(query, shown_until_ms(sources.of(prefix)) or 0)
        name = query.existing(views.totals)
        spans = lookups.verdicts(prefix, name, since_ms, until_ms)
        shown, more = query.cut(spans, place, _place_of)
        return {
            "id": name,
            "from": since_ms,
            "to": until_ms,
            "minutes": minutes_by_verdict(spans),
            "verdicts": [
                {
                    "from": span.begin_ms,
                    "to": span.end_ms,
                    "verdict": span.verdict,
                    "reason": span.reason,
                }
                for span in shown
            ],
            "next": next_after(shown, more, _place_of),
        }

    history = (HistoryBusy, HistoryUnreadable)
    return [
        json_operation("/api/v1/channels", all_views, answers=[fleet_type(ROOT_KIND)]),
        json_operation(
            "/api/v1/channels/{id:anytext}",
            single_view,
            NoChannel,
            answers=[VIEW_TYPES[ROOT_KIND.prefix]],
        ),
        json_operation(
            "/api/v1/views/{prefix}",
            all_views,
            answers=[views_type(kind) for kind in KINDS],
        ),
        json_operation("/api/v1/taps", taps, answers=[taps_type()]),
        *of_views("incidents", incidents, *history),
        *of_views("minutes", minutes, NoRecord, *history, answer_of=minutes_type),
        *of_views("verdicts", verdicts, *history),
        *(route for extras in EXTRAS.values() for route in extras.routes(sources)),
    ]


def _known(views: Views[Any], name: str) -> str:
    if name not in views.totals:
        raise NoChannel("id", name)
    return name


def _by_name(name: str) -> Trouble:
    return False, 0, name


def _fleet(snapshot: Snapshot, views: Views[Any]) -> FleetPage:
    summary = summarise(snapshot)
    return {
        "ok": snapshot.ok,
        "level": summary.level,
        "summary": summary.sentence,
        "clock": snapshot.clock_ms or None,
        "job": _job_object(snapshot),
        "undecodable": dict(snapshot.undecodable),
        "held_back": [held_object(*one) for one in views.held_back[:PAGE_LIMIT]],
    }


def _view_object(snapshot: Snapshot, views: Views[Any], name: str) -> dict[str, Any]:
    totals = views.totals[name]
    muted = name in views.muted
    return {
        "id": name,
        "name": _name(snapshot, views, name),
        "muted": muted,
        "causes": [one.as_object() for one in causes_of(snapshot, totals, views.kind)],
        "held_back": [
            held_object(name, one)
            for one in views.excused.get(name, ())
            if one.holds_back and not muted
        ],
        **views.figures.report(totals),
    }


def _name(snapshot: Snapshot, views: Views[Any], name: str) -> str | None:
    return display_name(snapshot, name, views.kind) or None


def _causes(
    snapshot: Snapshot, views: Views[Any], listed: Iterable[ChannelIncident]
) -> dict[str, list[CauseObject]]:
    # The view of a listed incident may no longer exist.
    names = {one.channel for one in listed} & views.totals.keys()
    causes = {
        name: causes_of(snapshot, views.totals[name], views.kind)
        for name in sorted(names)
    }
    return {
        name: [one.as_object() for one in some] for name, some in causes.items() if some
    }


def _times(query: VerdictsQuery, known_ms: int) -> tuple[int, int]:
    """Return start and end of a query's period, Unix ms.

    Start and end are whole minutes. The end is `known_ms` at the latest.
    """
    until_ms = known_ms
    if query.end is not None:
        until_ms = min(-(-query.end // MINUTE_MS) * MINUTE_MS, known_ms)
    since_ms = until_ms - DAY_MS if query.begin is None else query.begin
    return max(since_ms // MINUTE_MS * MINUTE_MS, 0), until_ms


def _job_object(snapshot: Snapshot) -> JobObject:
    job = snapshot.job
    return {
        "primed": snapshot.primed,
        "running": job.running,
        "error": job.error,
        "retrying": job.retrying,
        "kafka_answered": job.kafka.answered_ms,
        "topic_missing_since": job.topic_missing_since_ms,
        "version": job.version,
        "rules": job.rules,
        "records": job.records,
        "records_behind": job.records_behind,
        "event_time_lag_seconds": job.event_time_lag_seconds,
        "batch_duration_ms": job.batch_duration.summary(),
        "state_bytes": job.state_bytes,
        "restarts": job.restarts,
    }
