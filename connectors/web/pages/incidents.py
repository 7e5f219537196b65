"""`/incidents`: which messages, who lacks them, and why the monitor says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web.incident_places import ListedIncident
from connectors.web.incident_words import KINDS, IncidentWords, incident_words
from connectors.web.lacks import READ_INCIDENTS, Lacks, group_words, is_participant
from connectors.web.lookups import Lookups
from connectors.web.naming import is_key, other_views
from connectors.web.pages.layout import Layout
from connectors.web.paging import PageRequest, next_page
from connectors.web.parameters import incident_query
from connectors.web.refusals import HistoryBusy, HistoryUnreadable
from connectors.web.sources import Sources
from sds_core.observer.incidents import ChannelIncident, IncidentQuery
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.snapshot import Snapshot

LISTED_INCIDENTS = 50
"""Incidents on a page of the list."""

_POLL_S = 10
"""Longer than on other pages, because an answer may read a month of history."""


class _Place(NamedTuple):
    """The place of an incident on the pages: those that stand come first."""

    resolved: bool
    incident: ListedIncident


@dataclass(frozen=True, slots=True)
class _List:
    """What a page of the list has.

    Attributes:
        lacks: Groups of all incidents that stand; None on later pages.
        incidents: Incidents of this page.
        next: The parameter `after` of the next page; empty if this is the last one.
        problem: Why incidents cannot be listed; empty if they can.
    """

    lacks: Lacks | None = None
    incidents: Sequence[IncidentWords] = ()
    next: str = ""
    problem: str = ""


def routes(layout: Layout, sources: Sources, lookups: Lookups) -> list[BaseRoute]:
    """The list of incidents."""

    # Synchronous, so Starlette runs it in its thread pool: it reads files.
    def page(request: Request) -> Response:
        """Query parameters: as in the API, without `limit`; empty ones are ignored.

        And `participant`, an id or its key, for messages that it lacks.
        """
        given = {name: text for name, text in request.query_params.items() if text}
        snapshot = sources.current()
        if not snapshot.primed:
            return layout.unread(request, snapshot, "Incidents")
        query = incident_query(given, snapshot)
        participant = given.get("participant", "")
        place = PageRequest(LISTED_INCIDENTS, given.get("after")).place(_Place)
        try:
            found = _read(lookups, snapshot, query, participant, place)
        except (HistoryBusy, HistoryUnreadable) as error:
            found = _List(problem=str(error))
        chosen = {name: text for name, text in given.items() if name != "after"}
        for_api = {n: t for n, t in chosen.items() if n != "participant"}
        return layout.page(
            request,
            snapshot,
            "incidents.html",
            title="Incidents",
            poll_s=_POLL_S,
            query=query,
            channel=given.get("channel", ""),
            key=given.get("key", ""),
            participant=participant,
            kinds=KINDS,
            found=found,
            others=[
                views.figures.names.many
                for views in other_views(snapshot).values()
                if views.totals
            ],
            is_first=place is None,
            first=_address(chosen),
            next=_address(chosen | {"after": found.next}) if found.next else "",
            json=f"api/v1/{_address(for_api)}",
        )

    return [Route("/incidents", page)]


def _address(chosen: dict[str, str]) -> str:
    return f"incidents?{urlencode(chosen, errors='surrogatepass')}"


def _read(
    lookups: Lookups,
    snapshot: Snapshot,
    query: IncidentQuery,
    participant: str,
    place: _Place | None,
) -> _List:
    """Read one page of the list.

    Args:
        lookups: Source of incidents.
        snapshot: Has the names of channels.
        query: Selected incidents.
        participant: A participant whose messages are selected, or its key; empty for
            all messages.
        place: Place after which the page begins; None for the first page.

    Raises:
        HistoryBusy: Too many other requests wait.
        HistoryUnreadable: The history is missing or damaged.
        WrongParameter: The channel of the place does not exist any more.
    """
    shown: list[ChannelIncident] = []
    lacks = None
    channels = snapshot.views[CHANNELS.prefix].totals
    after = None if place is None else place.incident.find(channels)
    if participant:
        # Only unresolved incidents name who lacks a message.
        query = msgspec.structs.replace(
            query, standing=True, participant=_named(lookups, query, participant)
        )
    if place is None or not place.resolved:
        wanted = msgspec.structs.replace(query, standing=True, after=after)
        # One more than is grouped, to know whether there are more.
        wanted = msgspec.structs.replace(wanted, limit=READ_INCIDENTS + 1)
        shown = list(lookups.incidents(wanted))
        if place is None:
            lacks = group_words(snapshot, shown, participant)
    if len(shown) <= LISTED_INCIDENTS and not query.standing:
        ended = msgspec.structs.replace(
            query,
            resolved=True,
            after=after if place is not None and place.resolved else None,
            limit=LISTED_INCIDENTS + 1 - len(shown),
        )
        shown += lookups.incidents(ended)
    listed = shown[:LISTED_INCIDENTS]
    return _List(
        lacks,
        [incident_words(snapshot, one) for one in listed],
        _next(listed) if len(shown) > LISTED_INCIDENTS else "",
    )


def _named(lookups: Lookups, query: IncidentQuery, participant: str) -> str:
    """Return the id of a participant, given this or its key.

    Only long ids have keys, and addresses have these instead. The id is looked for in
    the incidents of the query.
    """
    if not is_key(participant):
        return participant
    standing = msgspec.structs.replace(query, standing=True)
    for one in lookups.incidents(standing):
        for name in one.incident.lacking:
            if is_participant(name, participant):
                return name
    return participant


def _next(listed: Sequence[ChannelIncident]) -> str:
    last = listed[-1]
    return next_page(
        _Place(last.incident.ended_ms is not None, ListedIncident.of(last))
    )
