"""The JSON API of forecasts, for every kind of view."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web import parameters
from connectors.web.answers import answer
from connectors.web.lookups import read_figures
from connectors.web.naming import display_name, label_of
from connectors.web.sources import Sources
from sds_core.planning.document import forecast_object


def routes(sources: Sources) -> list[BaseRoute]:
    """The routes; a request that cannot be answered raises a `Refusal`.

    Args:
        sources: Source of the forecasts.
    """

    # Synchronous, so Starlette runs it in its thread pool: it goes through all views.
    def planning(request: Request) -> Response:
        """Return the newest forecasts of a kind: of all views, the next seven days.

        Query parameter: the name of a view, or `key`, to get all its days.
        """
        snapshot = read_figures(sources)
        kind = parameters.views_of(request, snapshot).kind
        plan, label = sources.plan(kind.prefix), label_of(kind)
        name = parameters.chosen(request.query_params, label, plan.views)
        shown = plan.views if name is None else {name: plan.views[name]}
        to_object = partial(forecast_object, is_whole=name is not None)
        return answer(
            {
                "clock": snapshot.clock_ms or None,
                "computed": plan.computed_ms,
                "problem": plan.problem,
                "days": plan.days,
                "interval": plan.interval,
                kind.names.many: [
                    {
                        "id": view,
                        "name": display_name(snapshot, view, kind) or None,
                        "begin": forecast.begin_ms,
                        **to_object(forecast),
                    }
                    for view, forecast in shown.items()
                ],
                "total": None if plan.total is None else to_object(plan.total),
                "without_forecast": [
                    {"id": view, "why": why} for view, why in plan.without.items()
                ],
                "not_computed": plan.hidden,
            }
        )

    return [
        Route("/api/v1/planning", planning),
        Route("/api/v1/views/{prefix}/planning", planning),
    ]
