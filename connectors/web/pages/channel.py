"""`/channel?id=…`: the figures, charts and incidents of one channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web import parameters, words
from connectors.web.charts import Chart, charts_of
from connectors.web.drawing import draw
from connectors.web.figures import page_groups
from connectors.web.incident_words import IncidentWords, incident_words
from connectors.web.lacks import READ_INCIDENTS, Lacks, group_words, incidents_href
from connectors.web.lookups import Lookups
from connectors.web.naming import called, channel_href, channel_query
from connectors.web.pages.layout import Layout
from connectors.web.parameters import hours, one_of
from connectors.web.participants import participant_rows, table_of
from connectors.web.reasons import reason_of
from connectors.web.refusals import HistoryBusy, HistoryUnreadable, NoRecord
from connectors.web.sources import Sources
from connectors.web.trends import HOURS, Trend
from sds_core.observer.channel_table import ChannelSettings
from sds_core.observer.figure_table import FigureTable
from sds_core.observer.figures import Proportion
from sds_core.observer.incidents import ChannelIncident, IncidentKind, IncidentQuery
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.view_totals import ViewTotals

LISTED_INCIDENTS = 5
"""Single incidents of each kind, those that stand first; `/incidents` has more."""


@dataclass(frozen=True, slots=True)
class History:
    """The parts of the page that come from files instead of the snapshot.

    Attributes:
        heading: The time that the charts cover.
        intervals: Length of their intervals, and what is not known.
        charts: Charts, each with its picture, which is empty if there is nothing to
            draw; none if they cannot be drawn.
        no_charts: Why charts cannot be drawn; empty if they can.
        lacks: Who lacks what since when; None if incidents cannot be listed.
        incidents: Single incidents, those that stand first, of them the gravest.
        more_incidents: Whether the channel has further incidents.
        no_incidents: Why incidents cannot be listed; empty if they can.
    """

    heading: str
    intervals: str = ""
    charts: Sequence[tuple[Chart, Markup]] = ()
    no_charts: str = ""
    lacks: Lacks | None = None
    incidents: Sequence[IncidentWords] = ()
    more_incidents: bool = False
    no_incidents: str = ""


@dataclass(frozen=True, slots=True)
class Objective:
    """A share that the channel should reach, and its value since the first record.

    Attributes:
        name: Name of the share.
        target: The share that should be reached.
        reached: The share that was reached.
        verdict: `met` or `missed`; empty if there is nothing to judge.
    """

    name: str
    target: str
    reached: str
    verdict: str

    @classmethod
    def of(cls, name: str, target: float, reached: Proportion) -> Objective:
        """Compare a share with its target."""
        value = reached.value
        verdict = "" if value is None else "met" if value >= target else "missed"
        return cls(
            name, words.percent(target), words.share(*reached, decimals=2), verdict
        )


def routes(
    layout: Layout, sources: Sources, lookups: Lookups, table: FigureTable[Any]
) -> list[BaseRoute]:
    """The page of a channel, with the figures of a table."""
    groups = page_groups(table)

    # Synchronous, so Starlette runs it in its thread pool: it reads files.
    def page(request: Request) -> Response:
        """Query parameters: `id` or `key`; `hours`; `history=false` to omit history."""
        given = request.query_params
        chosen_hours = hours(given)
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
            reason=reason_of(snapshot, totals),
            objectives=_objectives(table, totals, snapshot.table.of(channel)),
            participants=participant_rows(snapshot, table_of(totals)),
            other_participants=table_of(totals).others,
            incidents_href=incidents_href,
            delivery_deadline_ms=snapshot.observer.delivery_deadline_ms,
            epoch_ms=snapshot.observer.epoch_ms,
            muted=snapshot.table.of(channel).mute_until_ms
            if channel in snapshot.muted
            else None,
            groups=groups,
            choices=HOURS,
            hours=chosen_hours,
            history=_history(lookups, table, snapshot, channel, chosen_hours)
            if with_history
            else None,
        )

    return [Route("/channel", page)]


def _objectives(
    table: FigureTable[Any], totals: ViewTotals, settings: ChannelSettings
) -> list[Objective]:
    return [
        Objective.of(
            share.objective.heading,
            getattr(settings, share.objective.setting),
            share.of_totals(totals),
        )
        for share in table.shares
        if share.objective is not None
    ]


def _history(
    lookups: Lookups,
    table: FigureTable[Any],
    snapshot: Snapshot,
    channel: str,
    chosen_hours: int,
) -> History:
    found: dict[str, Any] = {"heading": _last_hours(chosen_hours)}
    try:
        trend = lookups.trend(table, snapshot, channel, chosen_hours)
    except (HistoryBusy, HistoryUnreadable, NoRecord) as error:
        found["no_charts"] = str(error)
    else:
        charts = charts_of(table, trend, snapshot.table.of(channel), snapshot.observer)
        found["charts"] = [
            (chart, Markup() if chart.is_empty else draw(chart)) for chart in charts
        ]
        found |= _span(trend, snapshot, channel, chosen_hours)
    try:
        found |= _incidents(lookups, snapshot, channel)
    except (HistoryBusy, HistoryUnreadable) as error:
        found["no_incidents"] = str(error)
    return History(**found)


def _last_hours(chosen_hours: int) -> str:
    return f"The last {words.counted(chosen_hours, 'hour')}"


def _span(
    trend: Trend, snapshot: Snapshot, channel: str, chosen_hours: int
) -> dict[str, str]:
    """Return heading and length of intervals of the charts of a channel."""
    heading, known = _last_hours(chosen_hours), ""
    if len(trend.growth) * trend.step_ms < chosen_hours * 3_600_000:
        heading = f"Since {words.since(trend.begin_ms, snapshot.clock_ms)}"
        first_ms = snapshot.channels[channel].first_event_ms or 0
        if first_ms < trend.begin_ms:
            known = "; earlier minutes are not stored"
    step = words.duration(trend.step_ms)
    return {"heading": heading, "intervals": f"intervals of {step}{known}"}


def _incidents(lookups: Lookups, snapshot: Snapshot, channel: str) -> dict[str, Any]:
    """Read the incidents of a channel; returns attributes of `History`.

    Raises:
        HistoryBusy: Too many other requests wait.
        HistoryUnreadable: The history is missing or damaged.
    """
    query = IncidentQuery(channel, standing=True, limit=READ_INCIDENTS + 1)
    standing = lookups.incidents(query)
    query = IncidentQuery(channel, resolved=True, limit=LISTED_INCIDENTS + 1)
    ended = lookups.incidents(query)
    listed: list[ChannelIncident] = []
    # Many incidents of one kind must not hide another.
    for kind in IncidentKind:
        of_kind = (one for one in standing if one.incident.kind is kind)
        listed += islice(of_kind, LISTED_INCIDENTS)
    listed += ended[:LISTED_INCIDENTS]
    return {
        "lacks": group_words(snapshot, standing),
        "incidents": [incident_words(snapshot, one) for one in listed],
        "more_incidents": len(standing) + len(ended) > len(listed),
    }
