"""`/channel?id=…` and `/views/<prefix>/one?id=…`: everything about one view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web import naming, words
from connectors.web.alert_words import held_words
from connectors.web.blocks import Block, pictured
from connectors.web.charts import charts_of
from connectors.web.extras import extras_of
from connectors.web.figures import page_groups
from connectors.web.incident_words import IncidentWords, incident_words
from connectors.web.lacks import READ_INCIDENTS, Lacks, group_words
from connectors.web.lookups import Lookups
from connectors.web.pages.layout import Layout
from connectors.web.parameters import HoursQuery, one_of, read_query, views_of
from connectors.web.reasons import reason_of
from connectors.web.refusals import HistoryBusy, HistoryUnreadable, NoRecord
from connectors.web.sources import Sources
from connectors.web.strips import shown_of
from connectors.web.trends import HOURS, Hours
from sds_core.observer.blindness import causes_of
from sds_core.observer.channel_table import DEFAULT_SETTINGS
from sds_core.observer.figures import Proportion
from sds_core.observer.incidents import ChannelIncident, IncidentKind, IncidentQuery
from sds_core.observer.kinds import AnyKind
from sds_core.observer.snapshot import Snapshot, Views

LISTED_INCIDENTS = 5


@dataclass(frozen=True, slots=True)
class History:
    """The parts of the page that come from stored data, not from the snapshot.

    Attributes:
        intervals: Length of the charts' intervals. If the view is older than the
            history's first minute, a note states that the history has no earlier
            minutes.
        no_charts: Why charts cannot be drawn; empty if they can.
        lacks: Groups of missing messages; None if incidents cannot be listed.
        incidents: First the unresolved incidents, in the order of `IncidentKind`, then
            the ended incidents.
        no_incidents: Why incidents cannot be listed; empty if they can.
    """

    heading: str
    intervals: str = ""
    charts: Sequence[tuple[Block, Markup | None]] = ()
    no_charts: str = ""
    lacks: Lacks | None = None
    incidents: Sequence[IncidentWords] = ()
    more_incidents: bool = False
    no_incidents: str = ""


def _history(
    lookups: Lookups, snapshot: Snapshot, views: Views[Any], name: str, hours: Hours
) -> History:
    found: dict[str, Any] = {"heading": f"The last {words.counted(hours, 'hour')}"}
    try:
        trend = lookups.trend(snapshot, views, name, hours)
    except (HistoryBusy, HistoryUnreadable, NoRecord) as error:
        found["no_charts"] = str(error)
    else:
        settings = DEFAULT_SETTINGS
        if views.kind.has_objectives:
            settings = naming.settings_of(snapshot, name, views.kind)
        charts = charts_of(views.figures, trend, settings, snapshot.observer)
        found["charts"] = pictured(charts)
        known = ""
        if len(trend.growth) * trend.step_ms < hours * 3_600_000:
            begin = words.since(trend.begin_ms, snapshot.clock_ms)
            found["heading"] = f"Since {begin}"
            if (views.totals[name].first_event_ms or 0) < trend.begin_ms:
                known = "; the history has no earlier minutes"
        found["intervals"] = f"intervals of {words.duration(trend.step_ms)}{known}"
    try:
        found |= _incidents(lookups, snapshot, views.kind, name)
    except (HistoryBusy, HistoryUnreadable) as error:
        found["no_incidents"] = str(error)
    return History(**found)


def _incidents(
    lookups: Lookups, snapshot: Snapshot, kind: AnyKind, name: str
) -> dict[str, Any]:
    query = IncidentQuery(name, standing=True, limit=READ_INCIDENTS + 1)
    standing = lookups.incidents(kind.prefix, query)
    query = IncidentQuery(name, resolved=True, limit=LISTED_INCIDENTS + 1)
    ended = lookups.incidents(kind.prefix, query)
    listed: list[ChannelIncident] = []
    # The number of incidents is limited for each kind separately, so that many
    # incidents of one kind do not hide the incidents of another kind.
    for problem in IncidentKind:
        of_kind = (one for one in standing if one.incident.kind is problem)
        listed += islice(of_kind, LISTED_INCIDENTS)
    listed += ended[:LISTED_INCIDENTS]
    return {
        "lacks": group_words(snapshot, kind, standing),
        "incidents": [incident_words(snapshot, one, kind) for one in listed],
        "more_incidents": len(standing) + len(ended) > len(listed),
    }


def routes(layout: Layout, sources: Sources, lookups: Lookups) -> list[BaseRoute]:
    """Return the routes of a view's page."""

    def page(request: Request) -> Response:
        """Query parameters: `id` or `key`, `hours`, `history`.

        With `history=false`, the page omits its `History`.
        """
        given = request.query_params
        query = read_query(HoursQuery, given, strict=False)
        with_history = one_of(given, "history", ["true", "false"]) != "false"
        snapshot = sources.current()
        views = views_of(request, snapshot)
        kind, names = views.kind, views.kind.names
        if not snapshot.primed:
            return layout.unread(request, snapshot, names.one.capitalize())
        name = query.find(views.totals)
        if name is None:
            sentence = f"The address of this page does not name a {names.one}."
            return layout.problem(request, snapshot, 404, sentence)
        totals = views.totals.get(name)
        if totals is None:
            sentence = f"No {names.one} has the id {words.short(name)}."
            return layout.problem(request, snapshot, 404, sentence)
        stored, extras = sources.of(kind.prefix), extras_of(kind)
        settings = naming.settings_of(snapshot, name, kind)
        return layout.page(
            request,
            snapshot,
            "view.html",
            title=naming.called(snapshot, name, kind),
            light="history=false",
            kind=kind,
            names=names,
            name=name,
            href=naming.view_href(kind, name),
            incidents=naming.incidents_href(kind, name),
            json=partial(naming.json_href, kind, name),
            totals=totals,
            reason=reason_of(snapshot, totals, kind),
            shown=shown_of(stored, name),
            held=held_words(snapshot, [views], name, most=None),
            causes=[
                one.sentence(words.short) for one in causes_of(snapshot, totals, kind)
            ],
            objectives=[
                _objective(
                    share.objective.heading,
                    getattr(settings, share.objective.setting),
                    share.of_totals(totals),
                )
                for share in views.figures.shares
                if kind.has_objectives and share.objective is not None
            ],
            extras=extras,
            muted=settings.mute_until_ms if name in views.muted else None,
            groups=page_groups(views.figures),
            choices=HOURS,
            hours=query.hours,
            history=_history(lookups, snapshot, views, name, query.hours)
            if with_history and stored is not None
            else None,
            **extras.values(snapshot, totals),
        )

    return [Route("/channel", page), Route("/views/{prefix}/one", page)]


def _objective(
    name: str, target: float, reached: Proportion
) -> tuple[str, str, str, str]:
    value = reached.value
    verdict = "" if value is None else "met" if value >= target else "missed"
    return name, words.percent(target), words.share(*reached, decimals=2), verdict
