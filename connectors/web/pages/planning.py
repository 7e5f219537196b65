"""`/planning`: forecasts of the traffic of views, and when views reach limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web import words
from connectors.web.blocks import Block, pictured
from connectors.web.naming import called, json_href, label_of, path_of, view_query
from connectors.web.pages.layout import Layout
from connectors.web.parameters import ViewQuery, read_query, views_of
from connectors.web.plan_blocks import PlanBlocks, figures_table
from connectors.web.plan_charts import forecast_charts
from connectors.web.sources import Sources
from sds_core.observer.kinds import AnyKind
from sds_core.planning.plan import Plan

LISTED = 100

_POLL_S = 60
"""Interval of updates, s. It may be long, because forecasts change once an hour."""


def routes(layout: Layout, sources: Sources) -> list[BaseRoute]:
    """Return the routes of the page with the forecasts of one kind of view."""

    def page(request: Request) -> Response:
        """Query parameter: the id or `key` of the view whose charts are shown."""
        snapshot = sources.current()
        kind = views_of(request, snapshot).kind
        if not snapshot.primed:
            return layout.unread(request, snapshot, "Planning")
        plan, label = sources.plan(kind.prefix), label_of(kind)
        given = {name: text for name, text in request.query_params.items() if text}
        query = read_query(ViewQuery, given, label, strict=False)
        name = query.chosen(plan.views)
        name_of = partial(called, snapshot, kind=kind)
        blocks = PlanBlocks(plan, kind.names, name_of, _link(kind))
        forecast, title = plan.total, f"All {kind.names.many} with a forecast"
        if name is not None:
            forecast = plan.views[name]
            title = f"{kind.names.one.capitalize()} {name_of(name)}"
        has_limits = any(one.limits for one in plan.views.values())
        drawn: list[Block] = []
        if forecast is not None:
            drawn = [*forecast_charts(forecast), figures_table(forecast, plan)]
        return layout.page(
            request,
            snapshot,
            "planning.html",
            title="Planning",
            poll_s=_POLL_S,
            names=kind.names,
            others=[
                (one.kind.names.many, path_of(one.kind, "planning"))
                for one in snapshot.views.values()
                if one.kind is not kind
            ],
            sentences=[*_status(plan), *blocks.lead()],
            limits=pictured([blocks.limits(LISTED)] if has_limits else []),
            title_of_charts=title,
            all_href="" if name is None else path_of(kind, "planning"),
            charts=pictured(drawn),
            interval=plan.interval,
            views_table=pictured(
                [blocks.views(blocks.by_bytes()[:LISTED])] if plan.views else []
            ),
            without=pictured([table] if (table := blocks.without()) else []),
            json=json_href(kind, name, "planning"),
        )

    return [Route("/planning", page), Route("/views/{prefix}/planning", page)]


def _status(plan: Plan) -> Iterator[str]:
    if plan.problem:
        yield f"{plan.problem[0].upper()}{plan.problem[1:]}."
    if plan.computed_ms is not None:
        when = words.utc(plan.computed_ms)
        yield (
            f"The monitor computed the forecasts at {when}. It computes them again "
            "every hour."
        )
    elif not plan.problem:
        yield "The first forecasts appear a few minutes after startup."
    if plan.hidden:
        yield (
            f"The page omits {words.counted(plan.hidden, 'further forecast')}. To "
            "compute all forecasts, run sds-monitor plan forecast."
        )


def _link(kind: AnyKind) -> Callable[[str], str]:
    page, label = path_of(kind, "planning"), label_of(kind)
    return lambda name: f"{page}?{view_query(name, label)}#charts"
