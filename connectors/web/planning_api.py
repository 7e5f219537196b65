"""The JSON API of forecasts, and of the hourly figures that forecasts are based on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, NamedTuple, TypedDict

from msgspec import Meta
from starlette.requests import Request
from starlette.routing import BaseRoute

from connectors.web.answer_types import (
    Clock,
    Id,
    Name,
    Next,
    capital,
    extended,
    list_of,
    record,
)
from connectors.web.lookups import Lookups, read_figures
from connectors.web.naming import display_name
from connectors.web.operations import KINDS, json_operation, of_views
from connectors.web.paging import PlaceMs, Reference, ViewsQuery, next_after
from connectors.web.parameters import views_of
from connectors.web.refusals import HistoryBusy, HistoryUnreadable
from connectors.web.sources import Sources
from sds_core.observer.kinds import AnyKind
from sds_core.planning.document import ForecastObject, forecast_object
from sds_core.planning.hours import DAY_MS, HOUR_MS
from sds_core.planning.measures import measures_of

DEFAULT_DAYS = 56
MAX_DAYS = 365


@dataclass(frozen=True, kw_only=True)
class DaysQuery(ViewsQuery):
    """Selects a page of a view's hourly figures.

    Attributes:
        days: Number of past days that the answer covers.
    """

    days: Annotated[int, Meta(ge=1, le=MAX_DAYS)] = DEFAULT_DAYS


class ViewHours(TypedDict):
    """A page of the hours in which a figure changed, oldest first."""

    id: Id
    clock: Clock
    next: Next


class _HourPlace(NamedTuple):
    minute: PlaceMs


class ViewForecast(ForecastObject):
    """The forecast of a channel or group.

    Attributes:
        begin: Start of the forecast, event time, Unix ms.
        history_days: Number of whole days of history that the forecast uses.
        figures: Forecast of each figure, by name.
        limits: For each limit, the time at which it is reached.
    """

    id: Id
    name: Name
    begin: int


class WithoutForecast(TypedDict):
    """A channel or group without a forecast, and the reason."""

    id: Id
    why: str


class Planning(TypedDict):
    """The newest forecasts of channels or groups.

    Attributes:
        computed: When the forecasts were computed, wall time, Unix ms.
        problem: Why the newest computation failed; empty if it succeeded.
        days: Number of future days that forecasts cover.
        interval: Probability that the future value is between `low` and `high`,
            percent.
        total: Forecast of the sum over all channels or groups.
        without_forecast: Channels or groups that have no forecast. The list omits the
            channels or groups that `not_computed` counts.
        not_computed: Number of channels or groups whose forecasts were not computed,
            because the monitor limits the number of forecasts and the time for them.
    """

    clock: Clock
    computed: int | None
    problem: str
    days: int
    interval: int
    total: ForecastObject | None
    without_forecast: list[WithoutForecast]
    not_computed: int
    next: Next


def routes(sources: Sources, lookups: Lookups) -> list[BaseRoute]:
    """Return the routes of hourly figures and forecasts."""

    def hours(request: Request, query: DaysQuery) -> Mapping[str, Any]:
        """Return a page of the hours in which a figure changed, oldest first.

        The entry of an hour has the last value of each counter and the maximum of each
        gauge in this hour.
        """
        place = query.place(_HourPlace)
        snapshot = read_figures(sources)
        views = views_of(request, snapshot)
        name = query.existing(views.totals)
        measures = measures_of(views.kind.published)
        end_ms = snapshot.clock_ms + 1
        begin_ms = end_ms - query.days * DAY_MS
        if place is not None:
            # A later minute of the same hour follows the place.
            begin_ms = max(begin_ms, place.minute // HOUR_MS * HOUR_MS)
        rows = lookups.hours(views.kind.prefix, name, begin_ms, end_ms, measures)

        def place_of(row: Mapping[str, Any]) -> _HourPlace:
            return _HourPlace(row["minute"])

        shown, more = query.cut(rows, place, place_of)
        columns = ("minute", *measures.fields)
        return {
            "id": name,
            "clock": snapshot.clock_ms or None,
            "hours": [{column: row.get(column) for column in columns} for row in shown],
            "next": next_after(shown, more, place_of),
        }

    def planning(request: Request, query: ViewsQuery) -> Mapping[str, Any]:
        """Return a page of the newest forecasts, sorted by id.

        For each figure, a forecast has one value for the next seven days. If the
        request selects a channel or group, the forecast also has a value for each
        future day.
        """
        place = query.place(Reference)
        snapshot = read_figures(sources)
        kind = views_of(request, snapshot).kind
        plan = sources.plan(kind.prefix)
        name = query.chosen(plan.views)
        names = sorted(plan.views) if name is None else [name]
        begin = None if place is None else place.find(plan.views)
        shown, more = query.cut(names, begin, str)
        to_object = partial(forecast_object, is_whole=name is not None)
        return {
            "clock": snapshot.clock_ms or None,
            "computed": plan.computed_ms,
            "problem": plan.problem,
            "days": plan.days,
            "interval": plan.interval,
            kind.names.many: [
                {
                    "id": view,
                    "name": display_name(snapshot, view, kind) or None,
                    "begin": plan.views[view].begin_ms,
                    **to_object(plan.views[view]),
                }
                for view in shown
            ],
            "total": None if plan.total is None else to_object(plan.total),
            "without_forecast": [
                {"id": view, "why": why} for view, why in plan.without.items()
            ],
            "not_computed": plan.hidden,
            "next": next_after(shown, more, Reference.to),
        }

    return [
        json_operation(
            "/api/v1/views/{prefix}/hours",
            hours,
            HistoryBusy,
            HistoryUnreadable,
            answers=[_hours_type(kind) for kind in KINDS],
        ),
        *of_views("planning", planning, answer_of=_planning_type),
    ]


def _hours_type(kind: AnyKind) -> type:
    name, table = capital(kind.names.one), kind.published
    helps = {column.name: column.help for column in table.columns}
    fields = {
        field: Annotated[int | None, Meta(description=helps[field])]
        for field in measures_of(table).fields
    }
    minute = Annotated[
        int,
        Meta(
            description="Start of the minute in which a figure last changed in this "
            "hour, event time, Unix ms."
        ),
    ]
    hour = record(f"{name}Hour", {"minute": minute, **fields})
    return extended(f"{name}Hours", ViewHours, {"hours": list_of(hour)})


def _planning_type(kind: AnyKind) -> type:
    name = f"{capital(kind.names.one)}Planning"
    return extended(name, Planning, {kind.names.many: list[ViewForecast]})
