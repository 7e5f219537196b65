"""`/incidents`: which messages, who lacks them, and why the monitor says so."""

from __future__ import annotations

from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web.incident_words import KINDS, incident_words
from connectors.web.lookups import Lookups
from connectors.web.pages.layout import Layout
from connectors.web.parameters import incident_query
from connectors.web.refusals import HistoryBusy, HistoryUnreadable
from connectors.web.sources import Sources

LISTED_INCIDENTS = 200
"""Incidents on the page, the latest found first; the API has more."""

_POLL_S = 10
"""Longer than on other pages, because an answer may read a month of history."""


def routes(layout: Layout, sources: Sources, lookups: Lookups) -> list[BaseRoute]:
    """The list of incidents."""

    # Synchronous, so Starlette runs it in its thread pool: it reads files.
    def page(request: Request) -> Response:
        """Query parameters: as in the API, without `limit`; empty ones are ignored."""
        given = {name: text for name, text in request.query_params.items() if text}
        snapshot = sources.current()
        if not snapshot.primed:
            return layout.unread(request, snapshot, "Incidents")
        query = incident_query(given, snapshot)
        problem, more = "", False
        incidents = []
        try:
            # One more than the page lists, to know whether there are more.
            limited = msgspec.structs.replace(query, limit=LISTED_INCIDENTS + 1)
            found = lookups.incidents(limited)
        except (HistoryBusy, HistoryUnreadable) as error:
            problem = str(error)
        else:
            more = len(found) > LISTED_INCIDENTS
            incidents = [
                incident_words(snapshot, one) for one in found[:LISTED_INCIDENTS]
            ]
        return layout.page(
            request,
            snapshot,
            "incidents.html",
            title="Incidents",
            poll_s=_POLL_S,
            query=query,
            channel=given.get("channel", ""),
            key=given.get("key", ""),
            kinds=KINDS,
            incidents=incidents,
            more=more,
            problem=problem,
            json=f"api/v1/incidents?{urlencode(given)}",
        )

    return [Route("/incidents", page)]
