"""`/`: all channels, by default the most troubled first."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web import words
from connectors.web.figures import PageFigure, column_groups
from connectors.web.naming import called, channel_href, short_key
from connectors.web.pages.layout import Layout
from connectors.web.parameters import one_of
from connectors.web.sources import Sources
from connectors.web.summary import by_trouble
from sds_core.observer.figure_table import FigureTable
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.verdict import Verdict
from sds_core.observer.view_totals import ViewTotals

SHOWN_CHANNELS = 200
"""Greatest number of rows: a browser updates so many every two seconds without a
noticeable delay. It is also the default label budget."""

_TROUBLE, _NAME = "trouble", "name"

_Channel = tuple[str, ViewTotals]


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
    def asked(
        cls, columns: Mapping[str, PageFigure], given: Mapping[str, str]
    ) -> Order:
        """The order that a request asks for.

        Raises:
            WrongParameter: There is no such order.
        """
        known = [
            f"{sign}{key}" for key in (_TROUBLE, _NAME, *columns) for sign in ("", "-")
        ]
        text = one_of(given, "sort", known) or _TROUBLE
        return cls(columns, text.removeprefix("-"), text.startswith("-"))

    def __str__(self) -> str:
        """As it stands in an address."""
        return f"-{self.key}" if self.reverse else self.key

    def next(self, key: str) -> Order:
        """The order after a click on the heading of a column."""
        return replace(self, key=key, reverse=key == self.key and not self.reverse)

    def aria(self, key: str) -> str:
        """State of a column: `ascending`, `descending` or `none`."""
        if key != self.key:
            return "none"
        figure = self.columns.get(key)
        ascending = figure is None or figure.least_first
        return "ascending" if ascending is not self.reverse else "descending"

    def of(self, snapshot: Snapshot) -> list[_Channel]:
        """All channels in this order; equal ones by trouble."""
        channels = by_trouble(snapshot)
        if self.key == _TROUBLE:
            return channels[::-1] if self.reverse else channels
        if self.key == _NAME:
            return sorted(
                channels,
                key=lambda one: called(snapshot, one[0]).casefold(),
                reverse=self.reverse,
            )
        return sorted(channels, key=_rank(self.columns[self.key], self.reverse))


@dataclass(frozen=True, slots=True)
class Row:
    """One channel in words.

    Attributes:
        key: Identifies it within the page.
        name: Its name, or its shortened id.
        id: Its shortened id if it has a name; else empty.
        href: Address of its page.
        verdict: Its verdict, which decides the colour.
        muted: Until when it is muted; empty if it is not.
        totals: Its figures.
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
    """The page of all channels, with the columns of a table of figures."""
    groups = column_groups(table)
    columns = {figure.key: figure for group in groups for figure in group.figures}

    # Synchronous, so Starlette runs it in its thread pool: it reads all channels.
    def page(request: Request) -> Response:
        """Query parameters: `sort`, see `Order`; `find`, part of a name or id."""
        snapshot = sources.current()
        if not snapshot.primed:
            return layout.unread(request, snapshot, "Channels")
        order = Order.asked(columns, request.query_params)
        find = request.query_params.get("find", "")
        wanted = find.strip().casefold()
        found = [
            one
            for one in order.of(snapshot)
            if not wanted or _has(snapshot, one[0], wanted)
        ]
        rows = [_row(snapshot, *one) for one in found[:SHOWN_CHANNELS]]
        return layout.page(
            request,
            snapshot,
            "fleet.html",
            title="",
            groups=groups,
            order=order,
            find=find,
            rows=rows,
            empty=_empty(snapshot, len(found)),
            hidden=len(found) - len(rows),
            by_verdict=_by_verdict(snapshot),
        )

    return [Route("/", page)]


def _rank(
    figure: PageFigure, reverse: bool
) -> Callable[[_Channel], tuple[bool, float]]:
    sign = 1 if figure.least_first is not reverse else -1

    def rank(one: _Channel) -> tuple[bool, float]:
        value = figure.value(one[1])
        # Channels without a value are last in both orders.
        return value is None, sign * (math.inf if value is None else value)

    return rank


def _has(snapshot: Snapshot, channel: str, wanted: str) -> bool:
    return any(
        wanted in text.casefold() for text in (channel, snapshot.table.of(channel).name)
    )


def _row(snapshot: Snapshot, channel: str, totals: ViewTotals) -> Row:
    settings = snapshot.table.of(channel)
    muted = channel in snapshot.muted
    return Row(
        short_key(channel),
        name=called(snapshot, channel),
        id=words.shown(channel) if settings.name else "",
        href=channel_href(channel),
        verdict=totals.verdict,
        muted=f"Muted until {words.utc(settings.mute_until_ms)}" if muted else "",
        totals=totals,
    )


def _empty(snapshot: Snapshot, found: int) -> str:
    if found:
        return ""
    if snapshot.channels:
        return "No channel has this in its name or id."
    return "No channel has been seen yet."


def _by_verdict(snapshot: Snapshot) -> str:
    """Number of channels, in all and by verdict: "3: 2 quiet, 1 OK"."""
    verdicts = [totals.verdict for totals in snapshot.channels.values()]
    parts = [
        f"{words.number(count)} {word if verdict is Verdict.OK else word.lower()}"
        for verdict, word in words.VERDICTS.items()
        if (count := verdicts.count(verdict))
    ]
    return ": ".join([words.number(len(verdicts)), *filter(None, [", ".join(parts)])])
