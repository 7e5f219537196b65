"""`/views/<prefix>/one?id=…`: figures, charts and incidents of one view or group."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web import parameters, words
from connectors.web.figures import page_groups
from connectors.web.lookups import Lookups
from connectors.web.naming import called, channel_query, other_views, view_href
from connectors.web.pages.layout import Layout, other_path
from connectors.web.pages.past import history_of
from connectors.web.parameters import hours, one_of
from connectors.web.reasons import likely_causes, reason_of
from connectors.web.sources import Sources
from connectors.web.strips import shown_of
from connectors.web.trends import HOURS


def routes(layout: Layout, sources: Sources, lookups: Lookups) -> list[BaseRoute]:
    """The page of a view of each protocol other than SDS."""

    # Synchronous, so Starlette runs it in its thread pool: it reads files.
    def page(request: Request) -> Response:
        """Query parameters: `id` or `key`; `hours`; `history=false` to omit history."""
        given = request.query_params
        chosen_hours = hours(given)
        with_history = one_of(given, "history", ["true", "false"]) != "false"
        snapshot = sources.current()
        prefix = request.path_params["prefix"]
        views = other_views(snapshot).get(prefix)
        if views is None:
            raise HTTPException(404)
        names = views.figures.names
        if not snapshot.primed:
            return layout.unread(request, snapshot, names.one.capitalize())
        name = parameters.view(given, "id", views.totals) or ""
        totals = views.totals.get(name)
        if totals is None:
            sentence = f"No {names.one} has the id {words.short(name)}."
            return layout.problem(request, snapshot, 404, sentence)
        stores = with_history and sources.of(prefix) is not None
        return layout.page(
            request,
            snapshot,
            "view.html",
            title=called(snapshot, name, views.kind),
            light="history=false",
            names=names,
            href=view_href(views.kind, name),
            json=f"api/v1/views/{prefix}",
            as_id=channel_query(name),
            totals=totals,
            reason=reason_of(snapshot, totals),
            shown=shown_of(sources.of(prefix), name),
            causes=likely_causes(snapshot, totals, views.kind),
            groups=page_groups(views.figures),
            choices=HOURS,
            hours=chosen_hours,
            history=history_of(
                lookups, views.figures, snapshot, name, chosen_hours, views.kind
            )
            if stores
            else None,
        )

    return [Route("/" + other_path("{prefix}") + "/one", page)]
