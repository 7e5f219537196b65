"""`/`: all channels, the most troubled first unless another order is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web import words
from connectors.web.figure import Figure
from connectors.web.figures import chosen
from connectors.web.naming import called, channel_href, short_key
from connectors.web.pages.layout import Layout
from connectors.web.parameters import one_of
from connectors.web.sources import Sources
from connectors.web.summary import by_trouble
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.verdict import Verdict

SHOWN_CHANNELS = 200
"""Rows at most: what a browser updates every two seconds without being noticed, and
the default budget of labels."""

GROUPS = chosen(
    "messages",
    "ack_p50",
    "ack_p95",
    "in_time",
    "unacknowledged",
    "delivered",
    "gaps_open",
    "gaps_lost",
    "answered",
    "redundant",
)
"""Columns after name and verdict; the channel's page has all figures."""

_FIGURES = {figure.key: figure for _, figures in GROUPS for figure in figures}
_TROUBLE, _NAME = "trouble", "name"

_Channel = tuple[str, ChannelTotals]


@dataclass(frozen=True, slots=True)
class Order:
    """In which order channels are shown.

    Attributes:
        key: A figure's, `trouble` or `name`.
        reverse: Whether it is the opposite of the order that the key has by itself.
    """

    key: str = _TROUBLE
    reverse: bool = False

    def __str__(self) -> str:
        """As it stands in an address."""
        return f"-{self.key}" if self.reverse else self.key

    def next(self, key: str) -> Order:
        """The order that the button of a column asks for."""
        return Order(key, reverse=key == self.key and not self.reverse)

    def aria(self, key: str) -> str:
        """Of a column: `ascending`, `descending` or `none`."""
        if key != self.key:
            return "none"
        figure = _FIGURES.get(key)
        ascending = figure is None or figure.least_first
        return "ascending" if ascending is not self.reverse else "descending"

    def of(self, snapshot: Snapshot) -> list[_Channel]:
        """All channels in this order; of equal ones the more troubled first."""
        channels = by_trouble(snapshot)
        if self.key == _TROUBLE:
            return channels[::-1] if self.reverse else channels
        if self.key == _NAME:
            return sorted(
                channels,
                key=lambda one: called(snapshot, one[0]).casefold(),
                reverse=self.reverse,
            )
        return sorted(channels, key=_rank(_FIGURES[self.key], self.reverse))


ORDERS = [
    str(Order(key, reverse))
    for key in (_TROUBLE, _NAME, *_FIGURES)
    for reverse in (False, True)
]
"""What can be asked for."""


@dataclass(frozen=True, slots=True)
class Row:
    """One channel in words.

    Attributes:
        key: Tells it apart from all others.
        name: What it is called.
        id: Its id in one line if it is called something else, else empty.
        href: Its page.
        verdict: Its verdict, as the colours know it.
        muted: Until when nobody is told of its troubles; empty if they are.
        totals: Its figures.
    """

    key: str
    name: str
    id: str
    href: str
    verdict: Verdict
    muted: str
    totals: ChannelTotals


def routes(layout: Layout, sources: Sources) -> list[BaseRoute]:
    """The first view."""

    # Not async, and so called in a thread: it goes through all channels.
    def page(request: Request) -> Response:
        """Query parameters: `sort`, one of `ORDERS`; `find`, part of name or id."""
        snapshot = sources.current()
        if not snapshot.primed:
            return layout.unread(request, snapshot, "Channels")
        asked = one_of(request.query_params, "sort", ORDERS) or _TROUBLE
        order = Order(asked.removeprefix("-"), asked.startswith("-"))
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
            groups=GROUPS,
            order=order,
            find=find,
            rows=rows,
            empty=_empty(snapshot, len(found)),
            hidden=len(found) - len(rows),
            by_verdict=_by_verdict(snapshot),
        )

    return [Route("/", page)]


def _rank(figure: Figure, reverse: bool) -> Callable[[_Channel], tuple[bool, float]]:
    sign = 1 if figure.least_first is not reverse else -1

    def rank(one: _Channel) -> tuple[bool, float]:
        value = figure.value(one[1])
        # What cannot be measured comes last either way.
        return value is None, sign * (math.inf if value is None else value)

    return rank


def _has(snapshot: Snapshot, channel: str, wanted: str) -> bool:
    return any(
        wanted in text.casefold() for text in (channel, snapshot.table.of(channel).name)
    )


def _row(snapshot: Snapshot, channel: str, totals: ChannelTotals) -> Row:
    settings = snapshot.table.of(channel)
    muted = channel in snapshot.muted
    return Row(
        short_key(channel),
        name=called(snapshot, channel),
        id=words.short(channel) if settings.name else "",
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
    """How many channels there are, and of which verdicts: "3: 2 quiet, 1 OK"."""
    verdicts = [totals.verdict for totals in snapshot.channels.values()]
    parts = [
        f"{words.number(count)} {word if verdict is Verdict.OK else word.lower()}"
        for verdict, word in words.VERDICTS.items()
        if (count := verdicts.count(verdict))
    ]
    return ": ".join([words.number(len(verdicts)), *filter(None, [", ".join(parts)])])
