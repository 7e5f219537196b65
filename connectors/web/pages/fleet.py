"""The page that lists all views of one kind, by default the worst verdict first.

`/` lists the views of the kind whose `at_root` is true. `/views/<prefix>` lists the
views of the kind with this prefix. By default, figures cover the last hour. If the kind
has no stored data, figures cover the time since the first record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web import naming, words
from connectors.web.alert_words import held_words
from connectors.web.figures import Group, PageFigure, column_groups
from connectors.web.last_hour import LastHour, Lately, Trend
from connectors.web.pages.layout import Layout
from connectors.web.parameters import one_of, views_of
from connectors.web.reasons import reason_of
from connectors.web.sources import Sources
from connectors.web.strips import Strip, hour_strips
from connectors.web.summary import names_by_trouble
from sds_core.observer.blindness import causes_of
from sds_core.observer.figure_table import Names
from sds_core.observer.kinds import AnyKind
from sds_core.observer.snapshot import Snapshot, Views
from sds_core.observer.verdict import Verdict
from sds_core.observer.view_totals import ViewTotals

LISTED_VIEWS = 200
"""Maximum number of rows. A browser can update this number of rows every two seconds
without a noticeable delay. The default label limit is the same number."""

_TROUBLE, _NAME = "trouble", "name"

_HOUR, _ALL = "hour", "all"

_TROUBLED = (Verdict.FAILING, Verdict.BLIND, Verdict.DEGRADED)


@dataclass(frozen=True, slots=True)
class Order:
    """The order of the rows.

    Attributes:
        key: Key of the column to sort by: a figure's key, `trouble` or `name`.
        reverse: Whether the usual order of the column is reversed.
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
        """Return the order in the form that addresses contain."""
        return f"-{self.key}" if self.reverse else self.key

    def next(self, key: str) -> Order:
        """Return the order after a click on the heading of a column."""
        return replace(self, key=key, reverse=key == self.key and not self.reverse)

    def aria(self, key: str) -> str:
        """Return how a column is sorted: `ascending`, `descending` or `none`."""
        if key != self.key:
            return "none"
        figure = self.columns.get(key)
        ascending = figure is None or figure.least_first
        return "ascending" if ascending is not self.reverse else "descending"

    def sort(
        self,
        snapshot: Snapshot,
        kind: AnyKind,
        names: Sequence[str],
        lately: Callable[[str], Lately],
    ) -> Sequence[str]:
        """Return the names of the views in this order.

        `names` is sorted by trouble; views with equal values keep this order.
        `lately` returns the figures in the row of a view, from the name of the view.
        """
        if self.key == _TROUBLE:
            return names[::-1] if self.reverse else names
        if self.key == _NAME:
            return sorted(
                names,
                key=lambda name: naming.called(snapshot, name, kind).casefold(),
                reverse=self.reverse,
            )
        return sorted(names, key=_rank(self.columns[self.key], self.reverse, lately))


@dataclass(frozen=True, slots=True)
class Row:
    """One view in words.

    Attributes:
        id: The view's id, shortened; empty if `name` is the id, because the view has no
            display name.
        since: If the verdict needs attention, the verdict and its start; otherwise
            empty.
        figures: Figures of the columns; None if they are unknown.
        counted_since: In words, the time from which the view's figures count; empty if
            it is the time that the page states for all views.
        trend: The view's trend in the last hour; None if the page has no trends.
        strip: The verdicts that were shown in the last hour; None if none was shown.
    """

    key: str
    name: str
    id: str
    href: str
    verdict: Verdict
    reason: str
    cause: str
    since: str
    muted: str
    figures: Any
    counted_since: str
    trend: Trend | None
    strip: Strip | None


def routes(layout: Layout, sources: Sources) -> list[BaseRoute]:
    """Return the routes of the page that lists all views of a kind."""

    def page(request: Request) -> Response:
        """Query parameters: `sort`, `find` and `window`.

        `sort` is an `Order` as text, `find` is part of a name or id, and `window` is
        `hour` or `all`.
        """
        given = request.query_params
        snapshot = sources.current()
        views = views_of(request, snapshot)
        kind, table = views.kind, views.figures
        title = kind.names.many.capitalize()
        if not snapshot.primed:
            return layout.unread(request, snapshot, title)
        window = one_of(given, "window", [_HOUR, _ALL])
        stored, hour = sources.of(kind.prefix), None
        if stored is not None and window != _ALL:
            hour = LastHour(stored, table, snapshot.clock_ms)
        groups: list[Group] = column_groups(table)
        columns = {figure.key: figure for group in groups for figure in group.figures}
        order = Order.requested(columns, given)
        find = given.get("find", "")
        wanted = find.strip().casefold()
        found: Sequence[str] = [
            name
            for name in names_by_trouble(views)
            if not wanted or _has(snapshot, kind, name, wanted)
        ]

        def lately(name: str) -> Lately:
            totals = views.totals[name]
            if hour is None:
                return Lately(totals, totals.first_event_ms)
            return hour.lately(name, totals)

        found = order.sort(snapshot, kind, found, lately)
        listed = {name: views.totals[name] for name in found[:LISTED_VIEWS]}
        trends = {} if hour is None else hour.trends(listed)
        strips = hour_strips(stored, listed)
        begin_ms = None if hour is None else hour.begin_ms
        rows = [
            _row(
                snapshot,
                views,
                name,
                lately(name),
                trends.get(name),
                strips.get(name),
                begin_ms,
            )
            for name in listed
        ]
        return layout.page(
            request,
            snapshot,
            "fleet.html",
            title="" if kind.at_root else title,
            names=kind.names,
            json=naming.json_href(kind),
            has_hour=stored is not None,
            # Only the list of the kind at the root links to the other kinds' lists.
            others=[
                (
                    one.kind.names.many.capitalize(),
                    naming.path_of(one.kind),
                    _by_verdict(one.totals.values()),
                )
                for one in snapshot.views.values()
                if kind.at_root and one is not views
            ],
            held=held_words(snapshot, [views]),
            groups=groups,
            order=order,
            find=find,
            rows=rows,
            empty="" if found else _empty(kind.names, bool(views.totals)),
            hidden=len(found) - len(rows),
            by_verdict=_by_verdict(views.totals.values()),
            is_hour=hour is not None,
            windows=_windows(order, find),
            since=_since(snapshot, hour),
        )

    return [Route("/", page), Route("/views/{prefix}", page)]


def _windows(order: Order, find: str) -> list[tuple[str, str, bool]]:
    kept = {"find": find, "sort": "" if str(order) == _TROUBLE else str(order)}

    def address(window: str) -> str:
        given = {name: value for name, value in kept.items() if value}
        return "?" + urlencode({"window": window} | given, errors="surrogatepass")

    return [
        ("Last hour", address(_HOUR), True),
        ("Since the first record", address(_ALL), False),
    ]


def _since(snapshot: Snapshot, hour: LastHour | None) -> str:
    if hour is None:
        return "The counts and times begin with the checkpoint's first record."
    if not snapshot.clock_ms:
        return "The counts and times cover the last hour."
    begin = words.since(hour.begin_ms, snapshot.clock_ms)
    return f"The counts and times begin at {begin} (event time)."


def _rank(
    figure: PageFigure, reverse: bool, lately: Callable[[str], Lately]
) -> Callable[[str], float]:
    sign = 1 if figure.least_first is not reverse else -1

    def rank(name: str) -> float:
        found = lately(name).figures
        value = None if found is None else figure.value(found)
        # In both directions, views without a value are last.
        return math.inf if value is None else sign * value

    return rank


def _has(snapshot: Snapshot, kind: AnyKind, name: str, wanted: str) -> bool:
    texts = (name, naming.display_name(snapshot, name, kind))
    return any(wanted in text.casefold() for text in texts)


def _row(
    snapshot: Snapshot,
    views: Views[Any],
    name: str,
    lately: Lately,
    trend: Trend | None,
    strip: Strip | None,
    begin_ms: int | None,
) -> Row:
    kind, totals = views.kind, views.totals[name]
    has_name = naming.display_name(snapshot, name, kind)
    muted = ""
    if name in views.muted:
        until_ms = naming.settings_of(snapshot, name, kind).mute_until_ms
        muted = f"Muted until {words.utc(until_ms)}"
    causes = [one.in_brief(words.short) for one in causes_of(snapshot, totals, kind)]
    since = ""
    if totals.verdict in _TROUBLED and totals.verdict_since_ms:
        begin = words.since(totals.verdict_since_ms, snapshot.clock_ms)
        since = f"{words.VERDICTS[totals.verdict].lower()} since {begin}"
    return Row(
        naming.short_key(name),
        naming.called(snapshot, name, kind),
        words.short(name) if has_name else "",
        naming.view_href(kind, name),
        totals.verdict,
        reason_of(snapshot, totals, kind),
        f"Likely cause: {'; '.join(causes)}" if causes else "",
        since,
        muted,
        lately.figures,
        _counted_since(snapshot, lately, begin_ms),
        trend,
        strip,
    )


def _counted_since(snapshot: Snapshot, lately: Lately, begin_ms: int | None) -> str:
    if begin_ms is None:
        return ""
    if lately.figures is None:
        return "not known yet"
    if not lately.since_ms or lately.since_ms == begin_ms:
        return ""
    return f"since {words.since(lately.since_ms, snapshot.clock_ms)}"


def _empty(names: Names, has_views: bool) -> str:
    if has_views:
        return f"No {names.one} has this text in its name or id."
    return f"No {names.one} has been seen yet."


def _by_verdict(views: Iterable[ViewTotals]) -> str:
    # For example "3: 2 quiet, 1 OK".
    verdicts = [totals.verdict for totals in views]
    parts = [
        f"{words.number(count)} {word if verdict is Verdict.OK else word.lower()}"
        for verdict, word in words.VERDICTS.items()
        if (count := verdicts.count(verdict))
    ]
    return ": ".join([words.number(len(verdicts)), *filter(None, [", ".join(parts)])])
