"""Who lacks how many messages since when: standing incidents, grouped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sds_core.observer.incidents import ChannelIncident, IncidentKind
from sds_core.text import counted


class StandingIncident(NamedTuple):
    """What a group needs to know of an incident that has not ended.

    Attributes:
        channel, kind, message_id, since_ms: See `Incident`.
        lacking: Participants that lack the message; see `Incident`.
        lacking_others: Number of further participants that lack it.
        tap_hole: See `ChannelIncident`.
    """

    channel: str
    kind: IncidentKind
    message_id: str
    since_ms: int
    lacking: Mapping[str, int]
    lacking_others: int
    tap_hole: bool


class Lack(NamedTuple):
    """Messages of one channel with the same problem, and for whom.

    Attributes:
        channel: Channel id.
        kind: The problem.
        participant: The participant to which they were not delivered; None if the
            problem is not one of a single participant.
        messages: Number of messages.
        since_ms: For a participant, when it first showed to lack one of them; else the
            earliest `Incident.since_ms`. Unix ms.
        tap_hole: Number of messages that the taps may have missed instead.
        at_least: Whether there may be more messages: incidents of the channel do not
            name all participants that lack theirs.
    """

    channel: str
    kind: IncidentKind
    participant: str | None
    messages: int
    since_ms: int
    tap_hole: int
    at_least: bool = False

    def sentence(self, who: str, since: str) -> str:
        """Say who lacks how many messages since when.

        Args:
            who: The participant as it is to be displayed; unused without one.
            since: `since_ms` as it is to be displayed.
        """
        count = counted(self.messages, "message")
        one = self.messages == 1
        match self.kind:
            case IncidentKind.LOST:
                senders = "its sender" if one else "their senders"
                return f"{count} reached nobody but {senders} since {since}"
            case IncidentKind.UNDELIVERED if self.participant is not None:
                bound = "at least " if self.at_least else ""
                return f"{who} lacks {bound}{count} since {since}"
            case _:
                verb = "was" if one else "were"
                return f"{count} since {since} {verb} not acknowledged"


_RANK = {
    IncidentKind.LOST: 0,
    IncidentKind.UNDELIVERED: 1,
    IncidentKind.UNACKNOWLEDGED: 2,
}


def standing_of(found: Iterable[ChannelIncident]) -> list[StandingIncident]:
    """The incidents that have not ended."""
    return [
        StandingIncident(
            channel,
            incident.kind,
            incident.message_id,
            incident.since_ms,
            incident.lacking,
            incident.lacking_others,
            tap_hole,
        )
        for channel, incident, tap_hole in found
        if incident.ended_ms is None
    ]


def lacks_of(found: Iterable[StandingIncident]) -> list[Lack]:
    """Group incidents by channel and by who lacks the messages.

    A message that was not delivered to several participants counts for each of them.

    Returns:
        What everybody lacks, then participants, then messages without acknowledgement;
        of each the groups with most messages first.
    """
    groups: dict[tuple[str, IncidentKind, str | None], tuple[int, int, int]] = {}
    unnamed = set()
    for one in found:
        who: Mapping[str | None, int] = {None: one.since_ms}
        if one.kind is IncidentKind.UNDELIVERED:
            who = {name: since_ms for name, since_ms in one.lacking.items()}
            if one.lacking_others:
                unnamed.add(one.channel)
        for name, since_ms in who.items():
            key = one.channel, one.kind, name
            messages, first_ms, holes = groups.get(key, (0, since_ms, 0))
            groups[key] = (
                messages + 1,
                min(first_ms, since_ms),
                holes + one.tap_hole,
            )
    lacks = [
        Lack(*key, *counts, at_least=key[2] is not None and key[0] in unnamed)
        for key, counts in groups.items()
    ]
    lacks.sort(
        key=lambda one: (
            _RANK[one.kind],
            -one.messages,
            one.since_ms,
            one.channel,
            one.participant or "",
        )
    )
    return lacks
