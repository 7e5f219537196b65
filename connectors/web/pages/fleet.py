"""All views of one kind, by default the most troubled first.

`/` has the channels of SDS, `/views/<prefix>` the views of another protocol.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web import words
from connectors.web.figures import Group, PageFigure, column_groups
from connectors.web.naming import called, channel_href, short_key
from connectors.web.pages.layout import Layout, other_path
from connectors.web.parameters import one_of
from connectors.web.sources import Sources
from connectors.web.summary import by_trouble
from sds_core.observer.figure_table import FigureTable, Names
from sds_core.observer.kinds import AnyKind
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.snapshot import Snapshot, Views
from sds_core.observer.verdict import Verdict
from sds_core.observer.view_totals import ViewTotals

LISTED_VIEWS = 200
"""Greatest number of rows: a browser updates so many every two seconds without a
noticeable delay. It is also the default label budget."""

_TROUBLE, _NAME = "trouble", "name"

_View = tuple[str, ViewTotals]


@dataclass(frozen=True, slots=True)
class Order:
    """The order of the rows.

    Attributes:
        columns: Columns of figures by key.
        key: Key of the column to sort by; of a figure, `trouble` or `name`.
        reverse: Whether rows are in the opposite of the usual order of that column.
    """

    columns: Mapping[str, PageFigure]
    key: str = _TROUBLE
    reverse: bool = False

    @classmethod
    def requested(
        cls, columns: Mapping[str, PageFigure], given: Mapping[str, str]
    ) -> Order:
        """Return the order that a request selects.

        Raises:
            WrongParameter: The order does not exist.
        """
        known = [
            f"{sign}{key}" for key in (_TROUBLE, _NAME, *columns) for sign in ("", "-")
        ]
        text = one_of(given, "sort", known) or _TROUBLE
        return cls(columns, text.removeprefix("-"), text.startswith("-"))

    def __str__(self) -> str:
        """Return the order in the form of an address."""
        return f"-{self.key}" if self.reverse else self.key

    def next(self, key: str) -> Order:
        """Return the order after a click on the heading of a column."""
        return replace(self, key=key, reverse=key == self.key and not self.reverse)

    def aria(self, key: str) -> str:
        """Return the state of a column: `ascending`, `descending` or `none`."""
        if key != self.key:
            return "none"
        figure = self.columns.get(key)
        ascending = figure is None or figure.least_first
        return "ascending" if ascending is not self.reverse else "descending"

    def of(self, snapshot: Snapshot, kind: AnyKind) -> list[_View]:
        """Return all views of a kind in this order; equal ones by trouble."""
        views = by_trouble(snapshot, kind.prefix)
        if self.key == _TROUBLE:
            return views[::-1] if self.reverse else views
        if self.key == _NAME:
            return sorted(
                views,
                key=lambda one: called(snapshot, one[0], kind).casefold(),
                reverse=self.reverse,
            )
        return sorted(views, key=_rank(self.columns[self.key], self.reverse))


@dataclass(frozen=True, slots=True)
class Row:
    """One view in words.

    Attributes:
        key: Identifies it within the page.
        name: Display name, or the view's own name, shortened.
        id: The view's own name, shortened, if it has a display name; else empty.
        href: Address of the view's page; empty if it has no page.
        verdict: Verdict, which decides the colour.
        muted: Time until which the view is muted; empty if it is not.
        totals: Figures of the view.
    """

    key: str
    name: str
    id: str
    href: str
    verdict: Verdict
    muted: str
    totals: ViewTotals


def routes(
    layout: Layout, sources: Sources, table: FigureTable[Any]
) -> list[BaseRoute]:
    """The page of all channels, and one for the views of each other protocol.

    Args:
        layout: Makes the pages.
        sources: Source of the figures.
        table: The figures of channels.
    """

    # Synchronous, so Starlette runs them in its thread pool: they read all views.
    def channels(request: Request) -> Response:
        """Query parameters: `sort`, see `Order`; `find`, part of a name or id."""
        snapshot = sources.current()
        if not snapshot.primed:
            return layout.unread(request, snapshot, "Channels")
        views = snapshot.views[CHANNELS.prefix]
        return _page(layout, request, snapshot, views, table, title="")

    def others(request: Request) -> Response:
        """Query parameters as for channels."""
        snapshot = sources.current()
        views = snapshot.others.get(request.path_params["prefix"])
        if views is None:
            raise HTTPException(404)
        title = views.figures.names.many.capitalize()
        if not snapshot.primed:
            return layout.unread(request, snapshot, title)
        return _page(layout, request, snapshot, views, views.figures, title)

    return [Route("/", channels), Route("/" + other_path("{prefix}"), others)]


def _page(
    layout: Layout,
    request: Request,
    snapshot: Snapshot,
    views: Views[ViewTotals],
    table: FigureTable[Any],
    title: str,
) -> Response:
    """The page of all views of one kind, with the columns of a table of figures."""
    kind, names = views.kind, table.names
    groups: list[Group] = column_groups(table)
    columns = {figure.key: figure for group in groups for figure in group.figures}
    order = Order.requested(columns, request.query_params)
    find = request.query_params.get("find", "")
    wanted = find.strip().casefold()
    found = [
        one
        for one in order.of(snapshot, kind)
        if not wanted or _has(snapshot, kind, one[0], wanted)
    ]
    rows = [_row(snapshot, kind, *one) for one in found[:LISTED_VIEWS]]
    return layout.page(
        request,
        snapshot,
        "fleet.html",
        title=title,
        names=names,
        is_channels=kind.prefix == CHANNELS.prefix,
        groups=groups,
        order=order,
        find=find,
        rows=rows,
        empty="" if found else _empty(names, bool(views.totals)),
        hidden=len(found) - len(rows),
        by_verdict=_by_verdict(views.totals.values()),
    )


def _rank(figure: PageFigure, reverse: bool) -> Callable[[_View], tuple[bool, float]]:
    sign = 1 if figure.least_first is not reverse else -1

    def rank(one: _View) -> tuple[bool, float]:
        value = figure.value(one[1])
        # Views without a value are last in both orders.
        return value is None, sign * (math.inf if value is None else value)

    return rank


def _has(snapshot: Snapshot, kind: AnyKind, name: str, wanted: str) -> bool:
    texts = [name]
    if kind.in_channel_table:
        texts.append(snapshot.table.of(name).name)
    return any(wanted in text.casefold() for text in texts)


def _row(snapshot: Snapshot, kind: AnyKind, name: str, totals: ViewTotals) -> Row:
    if not kind.in_channel_table:
        called_so = words.short(name)
        return Row(short_key(name), called_so, "", "", totals.verdict, "", totals)
    settings = snapshot.table.of(name)
    muted = name in snapshot.muted
    return Row(
        short_key(name),
        name=called(snapshot, name),
        id=words.short(name) if settings.name else "",
        href=channel_href(name),
        verdict=totals.verdict,
        muted=f"Muted until {words.utc(settings.mute_until_ms)}" if muted else "",
        totals=totals,
    )


def _empty(names: Names, has_views: bool) -> str:
    """Return the text of the page if it lists no view."""
    if has_views:
        return f"No {names.one} has this in its name or id."
    return f"No {names.one} has been seen yet."


def _by_verdict(views: Iterable[ViewTotals]) -> str:
    """Number of views, in all and by verdict: "3: 2 quiet, 1 OK"."""
    verdicts = [totals.verdict for totals in views]
    parts = [
        f"{words.number(count)} {word if verdict is Verdict.OK else word.lower()}"
        for verdict, word in words.VERDICTS.items()
        if (count := verdicts.count(verdict))
    ]
    return ": ".join([words.number(len(verdicts)), *filter(None, [", ".join(parts)])])
