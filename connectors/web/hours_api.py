"""The JSON API of the hours of a view, which forecasts are made of."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web import parameters
from connectors.web.answers import answer
from connectors.web.lookups import Lookups, read_figures
from connectors.web.refusals import WrongParameter
from connectors.web.sources import Sources
from sds_core.planning.hours import DAY_MS, hour_rows
from sds_core.planning.measures import measures_of

DEFAULT_DAYS = 56
MAX_DAYS = 365


def routes(sources: Sources, lookups: Lookups) -> list[BaseRoute]:
    """The route; a request that cannot be answered raises a `Refusal`."""

    # Synchronous, so Starlette runs it in its thread pool: it reads files.
    def hours(request: Request) -> Response:
        """A row for each hour in which a figure of a view changed.

        Query parameters: `id` or `key`; `days`, up to now. A row has the last value of
        each counter and the greatest of each gauge.
        """
        given = request.query_params
        days = parameters.number(given, "days")
        days = DEFAULT_DAYS if days is None else days
        if not 1 <= days <= MAX_DAYS:
            allowed = f"a whole number from 1 to {MAX_DAYS}"
            raise WrongParameter("days", allowed, str(days))
        snapshot = read_figures(sources)
        views = parameters.views_of(request, snapshot)
        name = parameters.existing(given, "id", views.totals)
        measures = measures_of(views.kind.published)
        end_ms = snapshot.clock_ms + 1
        rows = lookups.minutes(
            views.kind.prefix, name, end_ms - days * DAY_MS, end_ms, measures.fields
        )
        columns = ("minute", *measures.fields)
        return answer(
            {
                "id": name,
                "clock": snapshot.clock_ms or None,
                "hours": [
                    {column: row.get(column) for column in columns}
                    for row in hour_rows(rows, measures.gauges)
                ],
            }
        )

    return [Route("/api/v1/views/{prefix}/hours", hours)]
