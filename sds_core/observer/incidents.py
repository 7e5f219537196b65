"""Incidents, each of which describes one message that a figure counts as a problem.

An incident states which message is affected, since when, why, and which participants
lack the message. When an incident changes, the whole incident is recorded again. If
several records have the same kind and message id, only the latest is valid
(docs/figures.md, 12).
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple, TypedDict

import msgspec

from sds_core.observer.settings import DEFAULTS, ObserverSettings
from sds_core.text import counted

MOST_LACKING = 100
"""Maximum number of participants that an incident lists in `lacking`."""

_NAMES_AT_ONCE = 2_000
"""Approximate limit for the names of participants in the result of one `drain`.

The limit counts the names in all incidents of the result. Hostile traffic can change
20,000 incidents in a batch, and a single Spark process collects all of them.
"""
_FEW_NAMES = 3
"""Maximum number of names in an incident after `_NAMES_AT_ONCE` is reached.

This is also the maximum number of names in the result of `lacking_names`.
"""


class IncidentKind(enum.StrEnum):
    """Kind of problem with a message."""

    LOST = "lost"
    """Causal histories name the message, but by its deadline no participant except the
    sender had shown that it has the message (docs/figures.md, 6)."""
    UNDELIVERED = "undelivered"
    """A tap saw the message, but at least one participant still lacked it after the
    deadline (docs/figures.md, 5)."""
    UNACKNOWLEDGED = "unacknowledged"
    """No participant acknowledged the message by its deadline, although other
    participants sent frames (docs/figures.md, 4)."""


class Incident(msgspec.Struct, array_like=True, tag=True):
    """One message with a problem. Times are event times in Unix ms.

    Attributes:
        sender: Participant id of the message's sender; empty if unknown.
        since_ms: For a lost message, the time when a frame first named it. For an
            undelivered message, the time when a frame first showed that a participant
            lacked it. For an unacknowledged message, the time of its first copy (t0).
        found_ms: Time of the channel's clock when the problem was found.
        ended_ms: Time of the channel's clock when the problem ended; None if it
            continues. The problem of a lost message ends when the message arrives. For
            an undelivered message, it ends when the message has reached every
            participant in `lacking`. For an unacknowledged message, it ends when the
            message is acknowledged.
        lacking: Participants that are known to lack the message, each with the time of
            the first frame that showed the lack. In an MVDS group, each has the time
            when the message was first sent to the participant. When the problem of a
            lost or undelivered message has ended, `lacking` is empty. When an
            unacknowledged message has been acknowledged, participants may still lack
            it.
        named_by: For a lost message, the first two participants whose causal history
            named it. In an MVDS group, participants that sent the message.
        waku_hash: Waku hash of the first copy, 32 bytes; empty if no tap saw the
            message, or if the tap reported no hash.
        hint: Retrieval hint of the message from a causal history; empty if none is
            known.
        lacking_others: Minimum number of participants that are known to lack the
            message but are not in `lacking`, which has at most `MOST_LACKING`.
    """

    kind: IncidentKind
    message_id: str
    sender: str
    since_ms: int
    found_ms: int
    ended_ms: int | None = None
    lacking: dict[str, int] = {}
    named_by: list[str] = []
    waku_hash: bytes = b""
    hint: bytes = b""
    lacking_others: int = 0

    @property
    def key(self) -> tuple[str, str]:
        """Kind and message id.

        If several records have the same key, only the latest is valid.
        """
        return self.kind.value, self.message_id

    def is_lacked(self, participant: str) -> bool:
        """Whether the message is still undelivered to a participant."""
        return (
            self.kind is IncidentKind.UNDELIVERED
            and self.ended_ms is None
            and participant in self.lacking
        )


class GroupIncident(msgspec.Struct, array_like=True, tag=True):
    """An incident of a group; a view that observes a part of this group emits it."""

    group: str
    incident: Incident


class ChannelIncident(NamedTuple):
    """An incident, and the name of its channel or group.

    Attributes:
        tap_hole: Whether every tap of the channel had a capture gap in the period that
            begins shortly before the incident's `since_ms` and ends at its `found_ms`.
            If so, these gaps may have caused the incident.
    """

    channel: str
    incident: Incident
    tap_hole: bool


class IncidentPlace(NamedTuple):
    """The position of an incident in query results.

    Query results list first the incident that was found last.

    Attributes:
        found_ms: When the incident was found, Unix ms.
        channel, kind, message_id: If incidents were found at the same time, these
            values determine their order.
    """

    found_ms: int
    channel: str
    kind: IncidentKind
    message_id: str


class IncidentQuery(msgspec.Struct, frozen=True):
    """Conditions by which a query selects incidents; None means no condition.

    Attributes:
        since_ms: Event time, Unix ms. Incidents that were found before this time are
            selected only if they have not ended.
        standing: Whether to select only incidents that have not ended.
        limit: Maximum number of incidents. If more meet the other conditions, the query
            selects those that were found last.
        after: A position in the query results; only the incidents that follow this
            position are selected.
        resolved: Whether to select only incidents that have ended.
        participant: Id of a participant; only undelivered messages that this
            participant is known to lack are selected.
    """

    channel: str | None = None
    kind: IncidentKind | None = None
    since_ms: int | None = None
    standing: bool = False
    limit: int | None = None
    after: IncidentPlace | None = None
    resolved: bool = False
    participant: str | None = None

    @property
    def sql_values(self) -> dict[str, Any]:
        """The conditions as named parameters of an SQL statement.

        The names of the parameters for `after` begin with ``after_``.
        """
        values = msgspec.structs.asdict(self)
        place = values.pop("after") or (None,) * len(IncidentPlace._fields)
        names = (f"after_{name}" for name in IncidentPlace._fields)
        return values | dict(zip(names, place, strict=True))


class Incidents:
    """Collects the incidents that begin or change between two calls of `drain`."""

    def __init__(self) -> None:
        self._changed: dict[tuple[str, str], Incident] = {}

    def record(self, incident: Incident) -> None:
        """Record an incident as it is now; this replaces an earlier record of it."""
        self._changed[incident.key] = incident

    def drain(self) -> list[Incident]:
        """Return the incidents that were recorded since the last `drain`.

        When the first incidents of the result together name `_NAMES_AT_ONCE`
        participants, each further incident names at most `_FEW_NAMES` participants, and
        counts its other participants in `lacking_others`.
        """
        changed, self._changed = self._changed.values(), {}
        left = _NAMES_AT_ONCE
        found = []
        for incident in changed:
            limit = max(left, _FEW_NAMES)
            left -= len(incident.lacking)
            found.append(_shortened(incident, limit))
        return found


def _shortened(incident: Incident, limit: int) -> Incident:
    excess = len(incident.lacking) - limit
    if excess <= 0:
        return incident
    return msgspec.structs.replace(
        incident,
        lacking=dict(islice(incident.lacking.items(), limit)),
        lacking_others=incident.lacking_others + excess,
    )


class IncidentObject(TypedDict):
    """One message with a problem. All times are event times, Unix ms.

    Attributes:
        channel: Id of the message's channel or group.
        kind: Kind of the problem.
        message_id: Id of the message.
        sender: Participant id of the message's sender; null if it is unknown.
        since: Time at which the problem began.
        found: When the monitor found the problem.
        ended: When the incident ended; null if it has not ended.
        lacking: Participants that are known to lack the message. The value of each
            participant is the time of the first frame that showed the lack; in an MVDS
            group, the value is the time when the message was first sent to the
            participant.
        lacking_others: `lacking` omits at least this number of participants that are
            known to lack the message.
        named_by: For a lost message, participants whose causal history named the
            message. In an MVDS group, participants that sent the message.
        waku_hash: Waku hash of the first copy, as `0x` and 64 digits; null if unknown.
        retrieval_hint: The message's retrieval hint in hexadecimal digits, from a
            causal history; null if no hint is known.
        tap_hole: Whether every tap of the channel had a capture gap in the period that
            begins shortly before the time `since` and ends at the time `found`.
        why: The reason for the incident in one sentence, with the time limit of the
            rule that found the incident.
    """

    channel: str
    kind: str
    message_id: str
    sender: str | None
    since: int
    found: int
    ended: int | None
    lacking: dict[str, int]
    lacking_others: int
    named_by: list[str]
    waku_hash: str | None
    retrieval_hint: str | None
    tap_hole: bool
    why: str


def incident_object(
    found: ChannelIncident,
    settings: ObserverSettings = DEFAULTS,
    why: Callable[[Incident, ObserverSettings], str] | None = None,
) -> IncidentObject:
    """Return an incident as a JSON object, for the report and the API.

    `why` is the function that returns the reason for the incident, such as a kind's
    `Kind.explain`. By default, it is `explain`.
    """
    channel, incident, tap_hole = found
    return {
        "channel": channel,
        "kind": incident.kind.value,
        "message_id": incident.message_id,
        "sender": incident.sender or None,
        "since": incident.since_ms,
        "found": incident.found_ms,
        "ended": incident.ended_ms,
        "lacking": incident.lacking,
        "lacking_others": incident.lacking_others,
        "named_by": incident.named_by,
        "waku_hash": "0x" + incident.waku_hash.hex() if incident.waku_hash else None,
        "retrieval_hint": incident.hint.hex() or None,
        "tap_hole": tap_hole,
        "why": (why or explain)(incident, settings),
    }


def explain(incident: Incident, settings: ObserverSettings = DEFAULTS) -> str:
    """The reason for an SDS incident in one sentence, with the rule's time limit."""
    match incident.kind:
        case IncidentKind.LOST:
            named_by = _listed(incident.named_by) or "a participant without a name"
            reached = (
                "reached nobody but the sender"
                if incident.sender
                else "reached at most one participant, who may be the sender"
            )
            return (
                f"{reached}: {named_by} named it, and for "
                f"{_duration(settings.gap_deadline_ms)} nobody else showed to have it"
            )
        case IncidentKind.UNDELIVERED:
            names = lacking_names(incident)
            later = f"{_duration(settings.delivery_deadline_ms)} later"
            if not names:
                return (
                    f"{later} a participant was still sending, and its list of "
                    "received messages did not contain it"
                )
            one = len(names) == 1
            return (
                f"{later} {_listed(names)} {'was' if one else 'were'} still sending, "
                f"and {'its list' if one else 'their lists'} of received messages did "
                "not contain it"
            )
        case IncidentKind.UNACKNOWLEDGED:
            return (
                f"others sent messages after it, but for "
                f"{_duration(settings.ack_deadline_ms)} nobody showed to have it"
            )


def lacking_names(incident: Incident) -> list[str]:
    """The first participants in `lacking`, then a text that counts the others."""
    names = [*islice(incident.lacking, _FEW_NAMES)]
    others = len(incident.lacking) - len(names) + incident.lacking_others
    return [*names, counted(others, "other")] if others else names


def _duration(milliseconds: int) -> str:
    minutes, rest = divmod(milliseconds, 60_000)
    if minutes and not rest:
        return counted(minutes, "minute")
    return f"{milliseconds / 1000:g} seconds"


def _listed(names: list[str]) -> str:
    *first, last = names or [""]
    return f"{', '.join(first)} and {last}" if first else last
