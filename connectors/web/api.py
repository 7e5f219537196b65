"""The JSON API: every figure and every incident, with the keys of the report.

A view is its object of the report with its `id`, its name and whether it is muted.
Paths under `/api/v1/views/<prefix>` name the kind of the views; the same without it,
with `/api/v1/channels` for the list, are about the kind that is at the root.
Times are Unix milliseconds; durations are milliseconds if the name ends in `_ms`.
Lists come in pages (`connectors.web.paging`): an answer with more entries after it has
a `next`, which is the parameter `after` of the request for these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web import parameters
from connectors.web.alert_words import held_object
from connectors.web.answers import answer, growth_object
from connectors.web.extras import EXTRAS
from connectors.web.lookups import Lookups, read_figures
from connectors.web.naming import display_name, label_of
from connectors.web.paging import ListedIncident, PageRequest, Reference, next_after
from connectors.web.parameters import existing, hours, incident_query, views_of
from connectors.web.refusals import NoChannel
from connectors.web.sources import Sources, shown_until_ms
from connectors.web.summary import (
    Trouble,
    names_by_trouble,
    summarise,
    trouble_of,
    views_by_tap,
)
from sds_core.observer.blindness import causes_of
from sds_core.observer.incidents import ChannelIncident, incident_object
from sds_core.observer.minutes import MINUTE_MS
from sds_core.observer.settings_table import changed
from sds_core.observer.shown_verdicts import DAY_MS, minutes_by_verdict
from sds_core.observer.snapshot import JobFigures, Snapshot, Views
from sds_core.observer.tap_kind import TAP_FIGURES


class _ViewPlace(NamedTuple):
    """The place of a view in the list, see `summary.Trouble`."""

    muted: bool
    rank: int
    view: Reference


class _SpanPlace(NamedTuple):
    """The place of a span in the list: its begin, Unix ms."""

    begin_ms: int


class _AnyText(PathConvertor):
    """Any text: Starlette's own `path` stops at a line end, in the middle of an id."""

    regex = r"[\s\S]*"


register_url_convertor("anytext", _AnyText())


def routes(sources: Sources, lookups: Lookups) -> list[BaseRoute]:
    """The routes of the API; a request that cannot be answered raises a `Refusal`."""

    # These functions are synchronous, so Starlette runs them in its thread pool: they
    # go through all views, or read files.
    def all_views(request: Request) -> Response:
        """Views of a kind; those at the root the most troubled first, with the job.

        Query parameters: `limit` and `after`, see `PageRequest`; `id` or `key` to
        select one view.
        """
        page = PageRequest.of(request.query_params)
        place = page.place(_ViewPlace)
        is_root = _is_at_root(request)
        snapshot = sources.current() if is_root else read_figures(sources)
        views = views_of(request, snapshot)
        names = names_by_trouble(views) if is_root else sorted(views.totals)
        place_of = trouble_of(views) if is_root else _by_name
        head = _fleet_object if is_root else _count
        name = None
        if snapshot.primed:
            name = parameters.view(request.query_params, "id", views.totals)
        if name is not None:
            names, place = [_known(views, name)], None
        begin = place and (*place[:2], place.view.find(views.totals))
        shown, more = page.cut(names, begin, place_of)
        return answer(
            {
                **head(snapshot, views),
                views.kind.names.many: [
                    _view_object(snapshot, views, each) for each in shown
                ],
                "next": next_after(
                    shown,
                    more,
                    lambda name: (*place_of(name)[:2], Reference.to(name)),
                ),
            }
        )

    def single_view(request: Request) -> Response:
        """One view by its percent-encoded id."""
        snapshot = read_figures(sources)
        views = views_of(request, snapshot)
        name = _known(views, request.path_params["id"])
        return answer(_view_object(snapshot, views, name))

    def incidents(request: Request) -> Response:
        """Incidents, the latest found first.

        Query parameters: the name of a view, or `key`; `kind`; `since`, Unix ms, for
        incidents found then or later and incidents that have not ended;
        `standing=true`, for incidents that have not ended; `limit` and `after`, see
        `PageRequest`.
        """
        page = PageRequest.of(request.query_params)
        place = page.place(ListedIncident)
        snapshot = read_figures(sources)
        views = views_of(request, snapshot)
        query = msgspec.structs.replace(
            incident_query(request.query_params, _label(request, views), views.totals),
            after=None if place is None else place.find(views.totals),
            # One more than the limit, to know whether there are more.
            limit=page.limit + 1,
        )
        listed = lookups.incidents(views.kind.prefix, query)
        shown, more = listed[: page.limit], len(listed) > page.limit
        return answer(
            {
                "incidents": [
                    incident_object(one, snapshot.observer, views.kind.explain)
                    | {"channel_name": _name(snapshot, views, one.channel)}
                    for one in shown
                ],
                "causes": _causes(snapshot, views, shown),
                "observer": changed(snapshot.observer),
                "clock": snapshot.clock_ms or None,
                "more": more,
                "next": next_after(shown, more, ListedIncident.of),
            }
        )

    def taps(request: Request) -> Response:
        """Taps by id; query parameters: `limit` and `after`, see `PageRequest`."""
        page = PageRequest.of(request.query_params)
        place = page.place(Reference)
        snapshot = read_figures(sources)
        channels = views_by_tap(views_of(request, snapshot))
        shown, more = page.cut(
            sorted(snapshot.taps),
            None if place is None else place.find(snapshot.taps),
            lambda observer: observer,
        )
        return answer(
            {
                "clock": snapshot.clock_ms or None,
                "taps": [
                    _tap_object(snapshot, observer, channels[observer])
                    for observer in shown
                ],
                "wrong_clocks": dict(snapshot.job.clock.skewed_taps),
                "next": next_after(shown, more, Reference.to),
            }
        )

    def minutes(request: Request) -> Response:
        """Growth of a view's figures, interval by interval.

        Query parameters: the name of the view, or `key`; `hours`, up to now.
        """
        given = request.query_params
        chosen_hours = hours(given)
        snapshot = read_figures(sources)
        views = views_of(request, snapshot)
        label = _label(request, views)
        name = existing(given, label, views.totals)
        trend = lookups.trend(snapshot, views, name, chosen_hours)
        growths = zip(trend.begins_ms, trend.growth, strict=True)
        return answer(
            {
                label: name,
                "hours": chosen_hours,
                "interval_ms": trend.step_ms,
                "intervals": [
                    {
                        "begin": begin_ms,
                        "figures": growth_object(views.figures, growth),
                    }
                    for begin_ms, growth in growths
                ],
            }
        )

    def verdicts(request: Request) -> Response:
        """What was shown of a view in each minute between two times, oldest first.

        Query parameters: the name of the view, or `key`; `from` and `to`, Unix ms of
        wall time, by default the last 24 hours; `limit` and `after`, see `PageRequest`.
        """
        given = request.query_params
        page = PageRequest.of(given)
        place = page.place(_SpanPlace)
        snapshot = read_figures(sources)
        views = views_of(request, snapshot)
        prefix, label = views.kind.prefix, _label(request, views)
        since_ms, until_ms = _times(given, shown_until_ms(sources.of(prefix)) or 0)
        name = existing(given, label, views.totals)
        spans = lookups.verdicts(prefix, name, since_ms, until_ms)
        shown, more = page.cut(spans, place, lambda span: _SpanPlace(span.begin_ms))
        return answer(
            {
                label: name,
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
                "next": next_after(shown, more, lambda span: _SpanPlace(span.begin_ms)),
            }
        )

    lists = {"incidents": incidents, "minutes": minutes, "verdicts": verdicts}
    return [
        *(Route(f"/api/v1/{name}", handler) for name, handler in lists.items()),
        Route("/api/v1/taps", taps),
        Route("/api/v1/channels", all_views),
        Route("/api/v1/channels/{id:anytext}", single_view),
        Route("/api/v1/views/{prefix}", all_views),
        *(
            Route(f"/api/v1/views/{{prefix}}/{name}", handler)
            for name, handler in lists.items()
        ),
        *(route for extras in EXTRAS.values() for route in extras.routes(sources)),
    ]


def _is_at_root(request: Request) -> bool:
    return "prefix" not in request.path_params


def _label(request: Request, views: Views[Any]) -> str:
    """Return the parameter, and the key of answers, that names a view."""
    return label_of(views.kind) if _is_at_root(request) else "id"


def _known(views: Views[Any], name: str) -> str:
    if name not in views.totals:
        raise NoChannel("id", name)
    return name


def _by_name(name: str) -> Trouble:
    return False, 0, name


def _fleet_object(snapshot: Snapshot, views: Views[Any]) -> dict[str, Any]:
    summary = summarise(snapshot)
    return {
        "ok": snapshot.ok,
        "level": summary.level.value,
        "summary": summary.sentence,
        "clock": snapshot.clock_ms or None,
        "job": {"primed": snapshot.primed} | _job_object(snapshot.job),
        "undecodable": dict(snapshot.undecodable),
        "held_back": [held_object(*one) for one in views.held_back],
        f"{views.kind.names.one}_count": len(views.totals),
    }


def _count(snapshot: Snapshot, views: Views[Any]) -> dict[str, Any]:
    return {"clock": snapshot.clock_ms or None, "count": len(views.totals)}


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
) -> dict[str, Any]:
    """Return the likely causes of the views that have these incidents, by name.

    Views without a likely cause are left out, and those that have ended.
    """
    names = {one.channel for one in listed} & views.totals.keys()
    causes = {
        name: causes_of(snapshot, views.totals[name], views.kind)
        for name in sorted(names)
    }
    return {
        name: [one.as_object() for one in some] for name, some in causes.items() if some
    }


def _times(given: Mapping[str, str], known_ms: int) -> tuple[int, int]:
    """Return the requested begin and end, Unix ms, rounded to the minutes around them.

    Of the minutes after `known_ms`, Unix ms, nothing is known.
    """
    to_ms = parameters.number(given, "to")
    until_ms = known_ms
    if to_ms is not None:
        until_ms = min(-(-to_ms // MINUTE_MS) * MINUTE_MS, known_ms)
    from_ms = parameters.number(given, "from")
    since_ms = until_ms - DAY_MS if from_ms is None else from_ms
    return max(since_ms // MINUTE_MS * MINUTE_MS, 0), until_ms


def _job_object(job: JobFigures) -> dict[str, Any]:
    return {
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


def _tap_object(snapshot: Snapshot, observer: str, channels: int) -> dict[str, Any]:
    tap = snapshot.taps[observer]
    return {
        "id": observer,
        **TAP_FIGURES.report(tap),
        "clock_offset_ms": snapshot.job.clock.taps.get(observer),
        "holes": [list(span) for span in tap.holes],
        "channel_count": channels,
    }
