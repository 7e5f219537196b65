"""`/channel?id=…` and `/views/<prefix>/one?id=…`: all about one view or group."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web import words
from connectors.web.alert_words import held_words
from connectors.web.extras import extras_of
from connectors.web.figures import page_groups
from connectors.web.lookups import Lookups
from connectors.web.naming import (
    called,
    incidents_href,
    json_href,
    settings_of,
    view_href,
)
from connectors.web.pages.layout import Layout
from connectors.web.pages.past import history_of
from connectors.web.parameters import HoursQuery, one_of, read_query, views_of
from connectors.web.reasons import likely_causes, reason_of
from connectors.web.sources import Sources
from connectors.web.strips import shown_of
from connectors.web.trends import HOURS
from sds_core.observer.figures import Proportion


def routes(layout: Layout, sources: Sources, lookups: Lookups) -> list[BaseRoute]:
    """The page of a view."""

    # Synchronous, so Starlette runs it in its thread pool: it reads files.
    def page(request: Request) -> Response:
        """Query parameters: `id` or `key`; `hours`; `history=false` to omit history."""
        given = request.query_params
        query = read_query(HoursQuery, given, strict=False)
        with_history = one_of(given, "history", ["true", "false"]) != "false"
        snapshot = sources.current()
        views = views_of(request, snapshot)
        kind, names = views.kind, views.kind.names
        if not snapshot.primed:
            return layout.unread(request, snapshot, names.one.capitalize())
        name = query.find(views.totals)
        if name is None:
            sentence = f"No {names.one} was asked for."
            return layout.problem(request, snapshot, 404, sentence)
        totals = views.totals.get(name)
        if totals is None:
            sentence = f"No {names.one} has the id {words.short(name)}."
            return layout.problem(request, snapshot, 404, sentence)
        stored, extras = sources.of(kind.prefix), extras_of(kind)
        settings = settings_of(snapshot, name, kind)
        return layout.page(
            request,
            snapshot,
            "view.html",
            title=called(snapshot, name, kind),
            light="history=false",
            kind=kind,
            names=names,
            name=name,
            href=view_href(kind, name),
            incidents=incidents_href(kind, name),
            json=partial(json_href, kind, name),
            totals=totals,
            reason=reason_of(snapshot, totals, kind),
            shown=shown_of(stored, name),
            held=held_words(snapshot, [views], name, most=None),
            causes=likely_causes(snapshot, totals, kind),
            objectives=[
                _objective(
                    share.objective.heading,
                    getattr(settings, share.objective.setting),
                    share.of_totals(totals),
                )
                for share in views.figures.shares
                if kind.has_objectives and share.objective is not None
            ],
            extras=extras,
            muted=settings.mute_until_ms if name in views.muted else None,
            groups=page_groups(views.figures),
            choices=HOURS,
            hours=query.hours,
            history=history_of(lookups, snapshot, views, name, query.hours)
            if with_history and stored is not None
            else None,
            **extras.values(snapshot, totals),
        )

    return [Route("/channel", page), Route("/views/{prefix}/one", page)]


def _objective(
    name: str, target: float, reached: Proportion
) -> tuple[str, str, str, str]:
    """Return name, target, what was reached, and `met`, `missed` or nothing."""
    value = reached.value
    verdict = "" if value is None else "met" if value >= target else "missed"
    return name, words.percent(target), words.share(*reached, decimals=2), verdict
