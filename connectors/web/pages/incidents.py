"""`/incidents`: messages with a problem, its reason, and who lacks the messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web.incident_words import KINDS, IncidentWords, incident_words
from connectors.web.lacks import READ_INCIDENTS, Lacks, group_words, is_participant
from connectors.web.lookups import Lookups
from connectors.web.naming import is_key, json_href, label_of
from connectors.web.pages.layout import Layout
from connectors.web.paging import ListedIncident, PageQuery, next_after
from connectors.web.parameters import IncidentSelection, query_of, read_query, views_of
from connectors.web.refusals import HistoryBusy, HistoryUnreadable
from connectors.web.sources import Sources
from sds_core.observer.incidents import ChannelIncident, IncidentKind, IncidentQuery
from sds_core.observer.snapshot import Snapshot, Views

LISTED_INCIDENTS = 50

_POLL_S = 10
"""Interval of updates, s. It is longer than the default `POLL_S`, because an update may
read a month of history."""


class _Place(NamedTuple):
    resolved: bool
    incident: ListedIncident


@dataclass(frozen=True, slots=True)
class _List:
    lacks: Lacks | None = None
    incidents: Sequence[IncidentWords] = ()
    next: str = ""
    problem: str = ""


def routes(layout: Layout, sources: Sources, lookups: Lookups) -> list[BaseRoute]:
    """Return the routes of the list of incidents."""

    def page(request: Request) -> Response:
        """Query parameters: `participant`, and those of the API's list but `limit`."""
        given = {name: text for name, text in request.query_params.items() if text}
        snapshot = sources.current()
        views = views_of(request, snapshot)
        kind, label = views.kind, label_of(views.kind)
        if not snapshot.primed:
            return layout.unread(request, snapshot, "Incidents")
        selected = read_query(IncidentSelection, given, label, strict=False)
        query = selected.query(views.totals)
        participant = given.get("participant", "")
        place = PageQuery(after=given.get("after")).place(_Place)
        try:
            found = _read(lookups, snapshot, views, query, participant, place)
        except (HistoryBusy, HistoryUnreadable) as error:
            found = _List(problem=str(error))
        chosen = {name: text for name, text in given.items() if name != "after"}
        for_api = query_of(IncidentSelection, given, label)
        return layout.page(
            request,
            snapshot,
            "incidents.html",
            title="Incidents",
            poll_s=_POLL_S,
            names=kind.names,
            label=label,
            by_participant=IncidentKind.UNDELIVERED in kind.personal,
            query=query,
            view_name=given.get(label, ""),
            key=given.get("key", ""),
            participant=participant,
            kinds=KINDS,
            found=found,
            others=[
                one.kind.names.many
                for one in snapshot.views.values()
                if kind.at_root and one is not views and one.totals
            ],
            is_first=place is None,
            first=_address(chosen),
            next=_address(chosen | {"after": found.next}) if found.next else "",
            json=f"{json_href(kind, what='incidents')}?{for_api}",
        )

    return [Route("/incidents", page), Route("/views/{prefix}/incidents", page)]


def _address(chosen: dict[str, str]) -> str:
    return f"incidents?{urlencode(chosen, errors='surrogatepass')}"


def _read(
    lookups: Lookups,
    snapshot: Snapshot,
    views: Views[Any],
    query: IncidentQuery,
    participant: str,
    place: _Place | None,
) -> _List:
    kind = views.kind
    find = partial(lookups.incidents, kind.prefix)
    shown: list[ChannelIncident] = []
    lacks = None
    after = None if place is None else place.incident.find(views.totals)
    if participant:
        # An incident that has ended no longer names the participants that lacked its
        # message.
        query = msgspec.structs.replace(query, standing=True)
        named = _named(find, query, participant)
        query = msgspec.structs.replace(query, participant=named)
    if place is None or not place.resolved:
        # The function `group_words` groups at most `READ_INCIDENTS` incidents. One more
        # incident shows that more exist.
        limit = READ_INCIDENTS + 1
        shown += find(
            msgspec.structs.replace(query, standing=True, after=after, limit=limit)
        )
        if place is None:
            lacks = group_words(snapshot, kind, shown, participant)
    if len(shown) <= LISTED_INCIDENTS and not query.standing:
        ended = msgspec.structs.replace(
            query,
            resolved=True,
            after=after if place is not None and place.resolved else None,
            limit=LISTED_INCIDENTS + 1 - len(shown),
        )
        shown += find(ended)
    listed = shown[:LISTED_INCIDENTS]
    return _List(
        lacks,
        [incident_words(snapshot, one, kind) for one in listed],
        next_after(listed, len(shown) > LISTED_INCIDENTS, _place_of) or "",
    )


def _named(
    find: Callable[[IncidentQuery], Sequence[ChannelIncident]],
    query: IncidentQuery,
    participant: str,
) -> str:
    # An address has the participant's key instead of the id if the id needs a key.
    if not is_key(participant):
        return participant
    for one in find(query):
        for name in one.incident.lacking:
            if is_participant(name, participant):
                return name
    return participant


def _place_of(one: ChannelIncident) -> _Place:
    return _Place(one.incident.ended_ms is not None, ListedIncident.of(one))
