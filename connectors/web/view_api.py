"""The JSON API of the views, or groups, of protocols other than SDS.

Keys, times and pages are those of `connectors.web.api`.
"""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web import parameters
from connectors.web.answers import answer, causes_of_views, growth_object
from connectors.web.incident_places import ListedIncident
from connectors.web.lookups import Lookups, read_figures
from connectors.web.naming import other_views
from connectors.web.paging import PageRequest, Reference, next_page
from connectors.web.parameters import hours, incident_query
from connectors.web.refusals import NoChannel
from connectors.web.sources import Sources
from sds_core.observer.cause_finding import causes_of
from sds_core.observer.incidents import incident_object
from sds_core.observer.snapshot import Snapshot, Views


def routes(sources: Sources, lookups: Lookups) -> list[BaseRoute]:
    """The routes; a request that cannot be answered raises a `Refusal`.

    Args:
        sources: Source of the figures.
        lookups: Source of incidents and minutes.
    """

    # These functions are synchronous, so Starlette runs them in its thread pool.
    def views(request: Request) -> Response:
        """All views of a kind by name.

        Query parameters: `limit` and `after`, see `PageRequest`; `id` or `key` to
        select one view.
        """
        given = request.query_params
        page = PageRequest.of(given)
        place = page.place(Reference)
        snapshot = read_figures(sources)
        found = _views(snapshot, request)
        wanted = parameters.view(given, "id", found.totals)
        if wanted is None:
            after = None if place is None else place.find(found.totals)
            shown, more = page.cut(sorted(found.totals), after, lambda name: name)
        else:
            _check(found, wanted)
            shown, more = [wanted], False
        return answer(
            {
                "clock": snapshot.clock_ms or None,
                "count": len(found.totals),
                found.figures.names.many: [
                    {
                        "id": name,
                        "causes": [
                            one.as_object()
                            for one in causes_of(
                                snapshot, found.totals[name], found.kind
                            )
                        ],
                        **found.figures.report(found.totals[name]),
                    }
                    for name in shown
                ],
                "next": next_page(Reference.to(shown[-1])) if more and shown else None,
            }
        )

    def incidents(request: Request) -> Response:
        """Incidents, the latest found first; query parameters as for channels.

        `id` names the view, in place of `channel`.
        """
        page = PageRequest.of(request.query_params)
        place = page.place(ListedIncident)
        snapshot = read_figures(sources)
        found = _views(snapshot, request)
        query = msgspec.structs.replace(
            incident_query(dict(request.query_params) | {"channel": ""}, snapshot),
            channel=parameters.view(request.query_params, "id", found.totals),
            after=None if place is None else place.find(found.totals),
            # One more than the limit, to know whether there are more.
            limit=page.limit + 1,
        )
        listed = lookups.incidents(query, found.kind.prefix)
        shown, more = listed[: page.limit], len(listed) > page.limit
        return answer(
            {
                "incidents": [
                    incident_object(one, snapshot.observer, found.kind.explain)
                    for one in shown
                ],
                "causes": causes_of_views(snapshot, found.kind, shown),
                "clock": snapshot.clock_ms or None,
                "more": more,
                "next": next_page(ListedIncident.of(shown[-1]))
                if more and shown
                else None,
            }
        )

    def minutes(request: Request) -> Response:
        """Growth of a view's figures, interval by interval.

        Query parameters: `id` or `key`; `hours`, up to now.
        """
        given = request.query_params
        chosen_hours = hours(given)
        snapshot = read_figures(sources)
        found = _views(snapshot, request)
        wanted = parameters.view(given, "id", found.totals) or ""
        _check(found, wanted)
        table = found.figures
        trend = lookups.trend(table, snapshot, wanted, chosen_hours, found.kind.prefix)
        growths = zip(trend.begins_ms, trend.growth, strict=True)
        return answer(
            {
                "id": wanted,
                "hours": chosen_hours,
                "interval_ms": trend.step_ms,
                "intervals": [
                    {"begin": begin_ms, "figures": growth_object(table, growth)}
                    for begin_ms, growth in growths
                ],
            }
        )

    return [
        Route("/api/v1/views/{prefix}", views),
        Route("/api/v1/views/{prefix}/incidents", incidents),
        Route("/api/v1/views/{prefix}/minutes", minutes),
    ]


def _views(snapshot: Snapshot, request: Request) -> Views[Any]:
    found = other_views(snapshot).get(request.path_params["prefix"])
    if found is None:
        raise HTTPException(404)
    return found


def _check(views: Views[Any], wanted: str) -> None:
    """Check that a view exists.

    Raises:
        NoChannel: It does not.
    """
    if wanted not in views.totals:
        raise NoChannel("id", wanted)
