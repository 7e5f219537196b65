"""The JSON API of the hours of a view, which forecasts are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypedDict

from msgspec import Meta
from starlette.requests import Request
from starlette.routing import BaseRoute

from connectors.web.answer_types import (
    Clock,
    Id,
    Next,
    capital,
    extended,
    list_of,
    record,
)
from connectors.web.lookups import Lookups, read_figures
from connectors.web.operations import KINDS, json_operation
from connectors.web.paging import PageQuery, next_after
from connectors.web.parameters import ViewQuery, views_of
from connectors.web.refusals import HistoryBusy, HistoryUnreadable
from connectors.web.sources import Sources
from sds_core.observer.kinds import AnyKind
from sds_core.planning.hours import DAY_MS, hour_rows
from sds_core.planning.measures import measures_of

DEFAULT_DAYS = 56
MAX_DAYS = 365


@dataclass(frozen=True, kw_only=True)
class DaysQuery(ViewQuery, PageQuery):
    """Selects a page of the hours of a view.

    Attributes:
        days: Days up to now.
    """

    days: Annotated[int, Meta(ge=1, le=MAX_DAYS)] = DEFAULT_DAYS


class ViewHours(TypedDict):
    """A page of the hours in which a figure of a view changed, oldest first."""

    id: Id
    clock: Clock
    next: Next


class _HourPlace(NamedTuple):
    """The place of an hour in the list: its last minute, Unix ms."""

    minute: int


def routes(sources: Sources, lookups: Lookups) -> list[BaseRoute]:
    """The route; a request that cannot be answered raises a `Refusal`."""

    def hours(request: Request, query: DaysQuery) -> Mapping[str, Any]:
        """Return a page of the hours in which a figure of a view changed, oldest first.

        An hour has the last value of each counter and the greatest of each gauge.
        """
        place = query.place(_HourPlace)
        snapshot = read_figures(sources)
        views = views_of(request, snapshot)
        name = query.existing(views.totals)
        measures = measures_of(views.kind.published)
        end_ms = snapshot.clock_ms + 1
        rows = lookups.minutes(
            views.kind.prefix,
            name,
            end_ms - query.days * DAY_MS,
            end_ms,
            measures.fields,
        )

        def place_of(row: Mapping[str, Any]) -> _HourPlace:
            return _HourPlace(row["minute"])

        shown, more = query.cut(hour_rows(rows, measures.gauges), place, place_of)
        columns = ("minute", *measures.fields)
        return {
            "id": name,
            "clock": snapshot.clock_ms or None,
            "hours": [{column: row.get(column) for column in columns} for row in shown],
            "next": next_after(shown, more, place_of),
        }

    return [
        json_operation(
            "/api/v1/views/{prefix}/hours",
            hours,
            HistoryBusy,
            HistoryUnreadable,
            answers=[_hours_type(kind) for kind in KINDS],
        )
    ]


def _hours_type(kind: AnyKind) -> type:
    name, table = capital(kind.names.one), kind.published
    helps = {column.name: column.help for column in table.columns}
    fields = {
        field: Annotated[int | None, Meta(description=helps[field])]
        for field in measures_of(table).fields
    }
    minute = Annotated[
        int, Meta(description="Begin of the hour's last minute, event time, Unix ms.")
    ]
    hour = record(f"{name}Hour", {"minute": minute, **fields})
    return extended(f"{name}Hours", ViewHours, {"hours": list_of(hour)})
