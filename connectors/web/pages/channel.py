"""`/channel?id=…`: one channel, how it fared lately, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web import parameters, words
from connectors.web.charts import Chart, channel_charts
from connectors.web.drawing import draw
from connectors.web.figure import Ratio
from connectors.web.figures import GROUPS, acknowledged_in_time, delivered
from connectors.web.incident_words import KINDS, IncidentWords, incident_words
from connectors.web.lookups import Lookups
from connectors.web.naming import called, channel_href, channel_query
from connectors.web.pages.layout import Layout
from connectors.web.parameters import hours, one_of
from connectors.web.refusals import HistoryBusy, HistoryUnreadable, NoRecord
from connectors.web.sources import Sources
from connectors.web.trends import HOURS
from sds_core.observer.channel_table import ChannelSettings
from sds_core.observer.incidents import IncidentKind, IncidentQuery
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot

SHOWN_INCIDENTS = 5
"""Of each kind, found last first; the list of incidents has more."""


@dataclass(frozen=True, slots=True)
class KindOfIncidents:
    """Incidents of one kind.

    Attributes:
        kind: The kind.
        name: The same in words.
        shown: Found last first.
        more: Whether there are others.
    """

    kind: IncidentKind
    name: str
    shown: Sequence[IncidentWords]
    more: bool


@dataclass(frozen=True, slots=True)
class History:
    """What is not in the snapshot, but in files.

    Attributes:
        charts: Each with its picture; none if they cannot be made.
        no_charts: Why there are no charts; empty if there are.
        incidents: Of the channel: by kind, the gravest first.
        no_incidents: Why they cannot be listed; empty if they can.
    """

    charts: Sequence[tuple[Chart, Markup]] = ()
    no_charts: str = ""
    incidents: Sequence[KindOfIncidents] = ()
    no_incidents: str = ""


@dataclass(frozen=True, slots=True)
class Objective:
    """A share that the channel is to reach, and what it reached since the first record.

    Attributes:
        name: Of what it is a share.
        target: What is to be reached.
        reached: What was.
        verdict: Whether that is enough, in a word; empty if there is nothing to judge.
    """

    name: str
    target: str
    reached: str
    verdict: str

    @classmethod
    def of(cls, name: str, target: float, ratio: Ratio) -> Objective:
        """Judge a ratio."""
        value = ratio.value
        verdict = "" if value is None else "met" if value >= target else "missed"
        return cls(
            name, words.percent(target), words.share(*ratio, decimals=2), verdict
        )


def routes(layout: Layout, sources: Sources, lookups: Lookups) -> list[BaseRoute]:
    """The page of a channel."""

    # Not async, and so called in a thread: it reads files.
    def page(request: Request) -> Response:
        """Query parameters: `id` or `key`; `hours`; `history=false`, without any."""
        given = request.query_params
        shown_hours = hours(given)
        with_history = one_of(given, "history", ["true", "false"]) != "false"
        snapshot = sources.current()
        if not snapshot.primed:
            return layout.unread(request, snapshot, "Channel")
        channel = parameters.channel(given, "id", snapshot)
        if channel is None:
            sentence = "No channel was asked for."
            return layout.problem(request, snapshot, 404, sentence)
        totals = snapshot.channels.get(channel)
        if totals is None:
            sentence = f"No channel has the id {words.short(channel)}."
            return layout.problem(request, snapshot, 404, sentence)
        return layout.page(
            request,
            snapshot,
            "channel.html",
            title=called(snapshot, channel),
            light="history=false",
            channel=channel,
            href=channel_href(channel),
            as_id=channel_query(channel),
            as_channel=channel_query(channel, "channel"),
            totals=totals,
            objectives=_objectives(totals, snapshot.table.of(channel)),
            muted=snapshot.table.of(channel).mute_until_ms
            if channel in snapshot.muted
            else None,
            groups=GROUPS,
            choices=HOURS,
            hours=shown_hours,
            history=_history(lookups, snapshot, channel, shown_hours)
            if with_history
            else None,
        )

    return [Route("/channel", page)]


def _objectives(totals: ChannelTotals, settings: ChannelSettings) -> list[Objective]:
    return [
        Objective.of(
            "Acknowledged in time",
            settings.acknowledgement_objective,
            acknowledged_in_time(totals),
        ),
        Objective.of("Delivered", settings.delivery_objective, delivered(totals)),
    ]


def _history(
    lookups: Lookups, snapshot: Snapshot, channel: str, shown_hours: int
) -> History:
    found: dict[str, Any] = {}
    try:
        trend = lookups.trend(snapshot, channel, shown_hours)
    except (HistoryBusy, HistoryUnreadable, NoRecord) as error:
        found["no_charts"] = str(error)
    else:
        charts = channel_charts(trend, snapshot.table.of(channel))
        found["charts"] = [(chart, draw(chart)) for chart in charts]
    try:
        # Each kind by itself: many of one leave room for the one of another.
        kinds = [_incidents(lookups, snapshot, channel, kind) for kind in IncidentKind]
    except (HistoryBusy, HistoryUnreadable) as error:
        found["no_incidents"] = str(error)
    else:
        found["incidents"] = [one for one in kinds if one.shown]
    return History(**found)


def _incidents(
    lookups: Lookups, snapshot: Snapshot, channel: str, kind: IncidentKind
) -> KindOfIncidents:
    query = IncidentQuery(channel, kind, limit=SHOWN_INCIDENTS + 1)
    found = lookups.incidents(query)
    return KindOfIncidents(
        kind,
        KINDS[kind],
        [incident_words(snapshot, one) for one in found[:SHOWN_INCIDENTS]],
        more=len(found) > SHOWN_INCIDENTS,
    )
