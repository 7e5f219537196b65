"""The parts of pages and API that only the views of one protocol have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from starlette.routing import BaseRoute

from connectors.web.last_hour import LastHour
from connectors.web.sds.missed import Missed, missed_by_tap
from connectors.web.sds.participants import lacks_as_of_now, routes, section_values
from connectors.web.sds.reasons import reason_of
from connectors.web.sources import Sources
from sds_core.observer.kinds import AnyKind
from sds_core.observer.lacking import Lack
from sds_core.observer.snapshot import Snapshot, Views


@dataclass(frozen=True, slots=True)
class Extras:
    """Optional parts of pages and API for one kind of view.

    Attributes:
        reason: Returns the reason of a view's verdict as a text with counts, from the
            view's totals. The text is empty if the reason has no counts.
        section: File name of the template for an additional section on a view's page;
            empty if the page has no such section.
        values: Returns the values for the template `section`, from the totals of a
            view.
        json: Last part of the path at which the API returns the content of `section`,
            and the content's name in the link to this path.
        no_incident: Sentence that a view's page shows if the view has no incident;
            empty for the usual sentence.
        lacks: Returns the given groups of missing messages, updated with the newest
            figures. The first argument has the totals of all views by name.
        missed: Returns, by tap, the counts of messages that the tap missed in the last
            hour.
        routes: Further routes of the API.
    """

    reason: Callable[[Snapshot, Any], str] = lambda snapshot, totals: ""
    section: str = ""
    values: Callable[[Snapshot, Any], Mapping[str, Any]] = lambda snapshot, totals: {}
    json: tuple[str, str] | None = None
    no_incident: str = ""
    lacks: Callable[[Mapping[str, Any], Iterable[Lack]], Iterable[Lack]] = (
        lambda views, lacks: lacks
    )
    missed: Callable[[Snapshot, Views[Any], LastHour], Mapping[str, Missed]] = (
        lambda snapshot, views, hour: dict.fromkeys(snapshot.taps, Missed())
    )
    routes: Callable[[Sources], list[BaseRoute]] = lambda sources: []


EXTRAS: Mapping[str, Extras] = MappingProxyType(
    {
        "sds": Extras(
            reason=reason_of,
            section="sds/participants.html",
            values=section_values,
            json=("participants", "Participants"),
            no_incident="No lost, undelivered or unacknowledged message of this "
            "channel is known.",
            lacks=lacks_as_of_now,
            missed=missed_by_tap,
            routes=routes,
        )
    }
)
"""Prefix of a kind of view -> parts that only this kind has on pages and in the API."""

_NONE = Extras()


def extras_of(kind: AnyKind) -> Extras:
    """Return the extras of a kind of view."""
    return EXTRAS.get(kind.prefix, _NONE)
