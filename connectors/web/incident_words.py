"""Describes incidents in words, for the pages that list them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nsmallest

import msgspec

from connectors.web import naming, words
from sds_core.observer.incidents import ChannelIncident, Incident, IncidentKind
from sds_core.observer.kinds import AnyKind
from sds_core.observer.lacking import is_followed
from sds_core.observer.protocols import PROTOCOLS
from sds_core.observer.snapshot import Snapshot

LISTED_PARTICIPANTS = 20

_TRACED = {one.kind.prefix for one in PROTOCOLS if one.tracing is not None}

KINDS = {
    IncidentKind.LOST: "Lost to everybody",
    IncidentKind.UNDELIVERED: "Not delivered",
    IncidentKind.UNACKNOWLEDGED: "Not acknowledged",
}

_SINCE = {
    IncidentKind.LOST: "First named",
    IncidentKind.UNDELIVERED: "First lacked",
    IncidentKind.UNACKNOWLEDGED: "First seen",
}
_ENDED = {
    IncidentKind.LOST: "Arrived",
    IncidentKind.UNDELIVERED: "Delivered to all",
    IncidentKind.UNACKNOWLEDGED: "Acknowledged",
}
_NEVER_ENDED = {
    IncidentKind.LOST: "No participant is known to have received the message",
    IncidentKind.UNDELIVERED: "At least one participant is not known to have received "
    "the message",
    IncidentKind.UNACKNOWLEDGED: "Not acknowledged",
}
_TAP_HOLE = (
    "The taps were interrupted shortly before or during this incident, so they may "
    "have missed messages."
)


@dataclass(frozen=True, slots=True)
class IncidentWords:
    """An incident as a page shows it; addresses are relative to the root of the site.

    Attributes:
        summary: For an undelivered message, who lacks it; otherwise, who sent the
            message.
        trace_href: Address of the message's trace; empty if its protocol has no traces.
        stands: Whether the incident has not ended, and frames may still end it.
        standing: Words that state whether the incident has ended, and when.
        channel_href: Address of the view's page; empty if the view no longer exists.
        lacked_by: The participants that have lacked the message longest, each with the
            time since when.
        hash: Waku hash in hexadecimal digits; empty if unknown.
        hint: Retrieval hint in hexadecimal digits; empty if unknown.
        doubt: Why the incident may be false; empty if nothing suggests this.
    """

    key: str
    kind: str
    message: str
    summary: str
    since: str
    runbook: str
    runbook_href: str
    stands: bool
    standing: str
    channel: str
    channel_href: str
    message_id: str
    trace_href: str
    lacked_by: list[tuple[str, str]]
    others_lack: int
    facts: list[tuple[str, str]]
    hash: str
    hint: str
    why: str
    doubt: str


def follows(snapshot: Snapshot, found: ChannelIncident, kind: AnyKind) -> bool:
    """Whether frames may still end an incident (docs/figures.md, 12)."""
    incident = found.incident
    totals = snapshot.views[kind.prefix].totals.get(found.channel)
    # If the view was forgotten and has returned, it counts as a new view, so frames
    # cannot end its earlier incidents.
    if totals is None or incident.found_ms < (totals.first_event_ms or 0):
        return False
    return incident.ended_ms is None and is_followed(
        incident.since_ms, snapshot.clock_ms, snapshot.observer
    )


def incident_words(
    snapshot: Snapshot, found: ChannelIncident, kind: AnyKind
) -> IncidentWords:
    """Describe an incident in words."""
    incident = found.incident
    facts = [
        ("Sender", words.bounded(incident.sender) if incident.sender else "unknown"),
        (_SINCE[incident.kind], words.utc(incident.since_ms)),
        ("Found", words.utc(incident.found_ms)),
    ]
    named_by = _some(incident.named_by)
    if named_by:
        facts.append(("Named by", ", ".join(named_by)))
    lacked_by = nsmallest(
        LISTED_PARTICIPANTS, incident.lacking.items(), key=lambda one: one[1]
    )
    others_lack = len(incident.lacking) - len(lacked_by) + incident.lacking_others
    shortened = msgspec.structs.replace(
        incident,
        named_by=[words.short(name) for name in named_by],
        lacking={words.short(name): since_ms for name, since_ms in lacked_by},
        lacking_others=others_lack,
    )
    followed = follows(snapshot, found, kind)
    if incident.ended_ms is None and not followed:
        facts.append(("Followed", _until(snapshot, found, kind)))
    why = words.whole(kind.explain(shortened, snapshot.observer))
    return IncidentWords(
        key=naming.short_key(" ".join((found.channel, *incident.key))),
        kind=KINDS[incident.kind],
        message=words.short(incident.message_id),
        summary=_summary(shortened),
        since=words.moment(incident.since_ms, snapshot.clock_ms),
        runbook=(runbook := kind.runbooks.get(incident.kind, "")),
        runbook_href=naming.runbook_href(runbook, found.channel),
        stands=followed,
        standing=_standing(incident, followed),
        channel=naming.called(snapshot, found.channel, kind),
        channel_href=naming.href_if_known(snapshot, found.channel, kind),
        message_id=incident.message_id,
        trace_href=_trace_href(found, kind),
        lacked_by=[
            (words.bounded(name), words.utc(since_ms)) for name, since_ms in lacked_by
        ],
        others_lack=others_lack,
        facts=facts,
        hash=_hash(incident),
        hint=incident.hint.hex(),
        why=why[0].upper() + why[1:] + ".",
        doubt=_TAP_HOLE if found.tap_hole else "",
    )


def _standing(incident: Incident, followed: bool) -> str:
    if incident.ended_ms is not None:
        return f"{_ENDED[incident.kind]}: {words.utc(incident.ended_ms)}"
    return "Unresolved" if followed else _NEVER_ENDED[incident.kind]


def _hash(incident: Incident) -> str:
    return "0x" + incident.waku_hash.hex() if incident.waku_hash else ""


def _trace_href(found: ChannelIncident, kind: AnyKind) -> str:
    incident = found.incident
    # If the message id is too long for an address, the Waku hash replaces it.
    message = incident.message_id
    if naming.needs_key(message):
        message = _hash(incident)
    if not message or kind.prefix not in _TRACED:
        return ""
    return naming.trace_href(kind, found.channel, message, incident.since_ms)


def _until(snapshot: Snapshot, found: ChannelIncident, kind: AnyKind) -> str:
    horizon_ms = snapshot.observer.horizon_ms
    until_ms = found.incident.since_ms + horizon_ms
    if snapshot.clock_ms <= until_ms:
        return f"until the {kind.names.one} ended"
    return (
        f"until {words.utc(until_ms)}, because the monitor follows each message only "
        f"for {words.duration(horizon_ms)}"
    )


def _summary(incident: Incident) -> str:
    sender = words.short(incident.sender) if incident.sender else "an unknown sender"
    if incident.kind is not IncidentKind.UNDELIVERED or not incident.lacking:
        return f"from {sender}"
    first = next(iter(incident.lacking))
    others = len(incident.lacking) - 1 + incident.lacking_others
    if not others:
        return f"to {first}"
    return f"to {first} and {words.counted(others, 'other')}"


def _some(names: Sequence[str]) -> list[str]:
    listed = [words.bounded(name) for name in names[:LISTED_PARTICIPANTS]]
    others = len(names) - len(listed)
    return [*listed, words.counted(others, "other")] if others else listed
