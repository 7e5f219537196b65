"""An incident in words, for the pages that list some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nsmallest

import msgspec

from connectors.web import words
from connectors.web.naming import called, channel_href, short_key
from sds_core.observer.incidents import ChannelIncident, IncidentKind, explain
from sds_core.observer.snapshot import Snapshot

LISTED_PARTICIPANTS = 20
"""Of those that lack a message, and of those that named it; the API has all."""

KINDS = {
    IncidentKind.LOST: "Lost",
    IncidentKind.UNDELIVERED: "Not delivered",
    IncidentKind.UNACKNOWLEDGED: "Not acknowledged",
}

_SINCE = {
    IncidentKind.LOST: "First named",
    IncidentKind.UNDELIVERED: "First lacked",
    IncidentKind.UNACKNOWLEDGED: "First seen",
}
_ENDED = {
    IncidentKind.LOST: "It came",
    IncidentKind.UNDELIVERED: "All have it since",
    IncidentKind.UNACKNOWLEDGED: "Acknowledged",
}
_TAP_HOLE = (
    "Every tap of the channel had a hole in its records meanwhile: the taps may have "
    "missed what the network had."
)


@dataclass(frozen=True, slots=True)
class IncidentWords:
    """An incident as a page shows it.

    Attributes:
        key: Tells it apart from all others.
        kind: What is wrong.
        stands: Whether it still does.
        standing: The same in words, with the time of its end.
        channel: What its channel is called.
        channel_href: The channel's page, relative to the root of the site.
        message_id: As it is.
        lacked_by: Participants that lack it, each with the time since when, those that
            lack it longest.
        others_lack: How many others do.
        facts: What else is known: heading and text.
        hash: Of the Waku message, and `hint`, to retrieve it by: as hexadecimal
            text; empty if unknown.
        hint: See `hash`.
        why: Why the monitor says so.
        doubt: Why it may not be so; empty if nothing speaks for that.
    """

    key: str
    kind: str
    stands: bool
    standing: str
    channel: str
    channel_href: str
    message_id: str
    lacked_by: list[tuple[str, str]]
    others_lack: int
    facts: list[tuple[str, str]]
    hash: str
    hint: str
    why: str
    doubt: str


def incident_words(snapshot: Snapshot, found: ChannelIncident) -> IncidentWords:
    """An incident in words.

    Args:
        snapshot: Knows what its channel is called.
        found: The incident.
    """
    incident = found.incident
    facts = [
        ("Sender", words.bounded(incident.sender) if incident.sender else "unknown"),
        (_SINCE[incident.kind], words.utc(incident.since_ms)),
        ("Found", words.utc(incident.found_ms)),
    ]
    named_by = _some(incident.named_by)
    if named_by:
        facts.append(("Named by", ", ".join(named_by)))
    why = words.whole(explain(msgspec.structs.replace(incident, named_by=named_by)))
    lacked_by = nsmallest(
        LISTED_PARTICIPANTS, incident.lacking.items(), key=lambda one: one[1]
    )
    return IncidentWords(
        key=short_key(" ".join((found.channel, *incident.key))),
        kind=KINDS[incident.kind],
        stands=incident.ended_ms is None,
        standing="Still stands"
        if incident.ended_ms is None
        else f"{_ENDED[incident.kind]}: {words.utc(incident.ended_ms)}",
        channel=called(snapshot, found.channel),
        channel_href=channel_href(found.channel),
        message_id=incident.message_id,
        lacked_by=[
            (words.bounded(name), words.utc(since_ms)) for name, since_ms in lacked_by
        ],
        others_lack=len(incident.lacking) - len(lacked_by),
        facts=facts,
        hash="0x" + incident.waku_hash.hex() if incident.waku_hash else "",
        hint=incident.hint.hex(),
        why=why[0].upper() + why[1:] + ".",
        doubt=_TAP_HOLE if found.tap_hole else "",
    )


def _some(names: Sequence[str]) -> list[str]:
    """The first names, and how many others there are."""
    listed = [words.bounded(name) for name in names[:LISTED_PARTICIPANTS]]
    others = len(names) - len(listed)
    return [*listed, words.counted(others, "other")] if others else listed
