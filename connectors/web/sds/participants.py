"""Participants of a channel: in words for its page, and as objects for the API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web.answers import answer
from connectors.web.lookups import read_figures
from connectors.web.naming import display_name, short_key, unresolved_href
from connectors.web.parameters import existing, views_of
from connectors.web.sources import Sources
from sds_core.observer.lacking import Lack
from sds_core.observer.sds.participant_figures import (
    ParticipantFigures,
    ParticipantTable,
    unpack_participants,
)
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot


def routes(sources: Sources) -> list[BaseRoute]:
    """The API of participants; a request that cannot be answered is a `Refusal`."""

    # Synchronous, so Starlette runs it in its thread pool.
    def participants(request: Request) -> Response:
        """Participants of a channel, those that lack most first.

        Query parameters: `channel`, an id, or `key`.
        """
        snapshot = read_figures(sources)
        views = views_of(request, snapshot)
        channel = existing(request.query_params, "channel", views.totals)
        table = table_of(views.totals[channel])
        return answer(
            {
                "channel": channel,
                "channel_name": display_name(snapshot, channel, views.kind) or None,
                "clock": snapshot.clock_ms or None,
                "participants": [participant_object(one) for one in table.participants],
                "others": table.others,
            }
        )

    return [Route("/api/v1/participants", participants)]


def table_of(totals: ChannelTotals) -> ParticipantTable:
    """Return the figures of the participants of a channel."""
    return unpack_participants(totals.participant_table)


def section_values(snapshot: Snapshot, totals: ChannelTotals) -> Mapping[str, Any]:
    """Return the values of `templates/sds/participants.html`.

    Participants are those that lack most first.
    """
    table = table_of(totals)
    return {
        "participants": table.participants,
        "other_participants": table.others,
        "short_key": short_key,
        "unresolved_href": unresolved_href,
        "delivery_deadline_ms": snapshot.observer.delivery_deadline_ms,
        "epoch_ms": snapshot.observer.epoch_ms,
    }


def lacks_as_of_now(
    channels: Mapping[str, ChannelTotals], lacks: Iterable[Lack]
) -> Iterator[Lack]:
    """Yield groups of lacked messages with the figures of participants, where known.

    Incidents do not name everybody who lacks a message, and the monitor may follow a
    message no longer.
    """
    tables: dict[str, dict[str, ParticipantFigures]] = {}
    for lack in lacks:
        totals = channels.get(lack.channel)
        if lack.participant is None or totals is None:
            yield lack
            continue
        if lack.channel not in tables:
            rows = table_of(totals).participants
            tables[lack.channel] = {row.name: row for row in rows}
        figures = tables[lack.channel].get(lack.participant)
        if figures is None:
            yield lack
        elif figures.undelivered:
            since_ms = figures.lacks_since_ms or lack.since_ms
            yield lack._replace(
                messages=figures.undelivered,
                # The table's time may be that of a message that may still arrive in
                # time, and that of a group lacks incidents that name others.
                since_ms=since_ms if lack.at_least else max(since_ms, lack.since_ms),
                tap_hole=min(lack.tap_hole, figures.undelivered),
                at_least=False,
            )


def participant_object(one: ParticipantFigures) -> dict[str, Any]:
    """Return a participant as a JSON object, for the API."""
    ended = one.delivered + one.failed
    return {
        "id": one.name,
        "heard": one.heard_ms,
        "lacks": one.lacks,
        "lacks_since": one.lacks_since_ms,
        "undelivered": one.undelivered,
        "delivered": one.delivered,
        "failed": one.failed,
        "delivered_ratio": one.delivered / ended if ended else None,
        "filter": None
        if one.filter is None
        else {
            "bits": one.filter.m_bits,
            "bits_set": one.filter.bits_set,
            "hashes": one.filter.k,
            "false_positive_ratio": one.filter.false_positive_ratio,
            "one_percent": one.filter.one_percent_ms,
        },
        "epoch_messages": one.epoch_messages,
    }
