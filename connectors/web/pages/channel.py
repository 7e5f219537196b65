"""`/channel?id=…`: the figures, charts and incidents of one channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web import parameters, words
from connectors.web.figures import page_groups
from connectors.web.held_words import held_words
from connectors.web.lacks import incidents_href
from connectors.web.lookups import Lookups
from connectors.web.naming import called, channel_href, channel_query
from connectors.web.pages.layout import Layout
from connectors.web.pages.past import history_of
from connectors.web.parameters import hours, one_of
from connectors.web.participants import participant_rows, table_of
from connectors.web.reasons import likely_causes, reason_of
from connectors.web.sources import Sources
from connectors.web.strips import shown_of
from connectors.web.trends import HOURS
from sds_core.observer.channel_table import ChannelSettings
from sds_core.observer.figure_table import FigureTable
from sds_core.observer.figures import Proportion
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.view_totals import ViewTotals


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
        totals = snapshot.views[CHANNELS.prefix].totals.get(channel)
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
            shown=shown_of(sources, channel),
            held=held_words(snapshot, channel, most=None),
            causes=likely_causes(snapshot, totals),
            objectives=_objectives(table, totals, snapshot.table.of(channel)),
            participants=participant_rows(snapshot, table_of(totals)),
            other_participants=table_of(totals).others,
            incidents_href=incidents_href,
            delivery_deadline_ms=snapshot.observer.delivery_deadline_ms,
            epoch_ms=snapshot.observer.epoch_ms,
            muted=snapshot.table.of(channel).mute_until_ms
            if channel in snapshot.views[CHANNELS.prefix].muted
            else None,
            groups=groups,
            choices=HOURS,
            hours=chosen_hours,
            history=history_of(lookups, table, snapshot, channel, chosen_hours)
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
