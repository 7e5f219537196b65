"""The messages behind the figures: which, since when, who lacks it, and why.

An incident is told whole each time something about it changes; of those with the same
kind and message id the latest counts.
"""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import msgspec

from sds_core.observer.settings import DEFAULTS, ObserverSettings


class IncidentKind(enum.StrEnum):
    """What is wrong with a message."""

    LOST = "lost"
    """Named in causal histories, and nobody but its sender showed to have it (6)."""
    UNDELIVERED = "undelivered"
    """Seen, and lacked by participants for longer than the deadline (5)."""
    UNACKNOWLEDGED = "unacknowledged"
    """Seen, and not acknowledged in time although others spoke (4)."""


class Incident(msgspec.Struct, array_like=True, tag=True):
    """One message with which something is wrong. Times are Unix ms of event time.

    Attributes:
        kind: What is wrong.
        message_id: The message.
        sender: Its sender; empty if unknown.
        since_ms: A lost message: when it was first named. An undelivered one: when a
            frame first showed that somebody lacked it. An unacknowledged one: its t0.
        found_ms: When it was decided, by the channel's clock.
        ended_ms: When the message came, was delivered to all who lacked it, or was
            acknowledged; None as long as it is not.
        lacking: Participants shown to lack it and not shown to have it since, and
            when that was first shown. Of an ended incident: none, except of an
            unacknowledged message, which some may still lack.
        named_by: Participants whose causal history named a lost message.
        waku_hash: Message hash of its first copy, 32 bytes; empty if no tap saw it or
            the tap gave none.
        hint: Retrieval hint from a causal history; empty if none gave one.
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

    @property
    def key(self) -> tuple[str, str]:
        """Kind and message id: what a later telling replaces."""
        return self.kind.value, self.message_id


class ChannelIncident(NamedTuple):
    """An incident with what its channel's view does not know.

    Attributes:
        channel: Channel id.
        incident: The incident.
        tap_hole: Whether every tap of the channel had a hole meanwhile: it may be of
            the taps' making.
    """

    channel: str
    incident: Incident
    tap_hole: bool


class IncidentQuery(msgspec.Struct, frozen=True):
    """Which incidents are asked for; None asks for nothing in particular.

    Attributes:
        channel: Those of one channel.
        kind: Those of one kind.
        since_ms: Those found at this event time, Unix ms, or later, and those that
            still stand.
        standing: Only those that still stand.
        limit: How many at most, those found last.
    """

    channel: str | None = None
    kind: IncidentKind | None = None
    since_ms: int | None = None
    standing: bool = False
    limit: int | None = None


class Incidents:
    """Collects the incidents that one call of a view begins or changes."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], Incident] = {}

    def tell(self, incident: Incident) -> None:
        """Note an incident as it is now."""
        self._told[incident.key] = incident

    def take(self) -> list[Incident]:
        """Those told since the last call, each as it was told last."""
        told, self._told = list(self._told.values()), {}
        return told


def incident_object(found: ChannelIncident) -> dict[str, Any]:
    """The incident in values of JSON, as report and API show it."""
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
        "named_by": incident.named_by,
        "waku_hash": "0x" + incident.waku_hash.hex() if incident.waku_hash else None,
        "retrieval_hint": incident.hint.hex() or None,
        "tap_hole": tap_hole,
        "why": explain(incident),
    }


def explain(incident: Incident, settings: ObserverSettings = DEFAULTS) -> str:
    """Why the monitor says so, in one sentence that follows its rule."""
    match incident.kind:
        case IncidentKind.LOST:
            named_by = _listed(incident.named_by) or "a participant without a name"
            shown_by = (
                "nobody but its sender"
                if incident.sender
                else "at most one participant, who may be its sender,"
            )
            return (
                f"named in a causal history by {named_by}; for "
                f"{_seconds(settings.gap_deadline_ms)} no tap saw it, and {shown_by} "
                "showed to have it"
            )
        case IncidentKind.UNDELIVERED:
            return (
                f"more than {_seconds(settings.delivery_deadline_ms)} after it was "
                "first seen, participants still sent new frames, with a greater "
                "Lamport timestamp, whose filters were without it"
            )
        case IncidentKind.UNACKNOWLEDGED:
            return (
                f"for {_seconds(settings.ack_deadline_ms)} no other participant named "
                "it and too few filters held it, although others spoke after it"
            )


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:g} s"


def _listed(names: list[str]) -> str:
    return " and ".join(names)
