"""Groups unresolved incidents by the participant that lacks messages.

The monitor tracks a message only for the retention window. After this window, the
monitor cannot know whether the message arrived. A group of such messages states what
the monitor knew when the window ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from sds_core.observer.incidents import ChannelIncident, IncidentKind
from sds_core.observer.settings import ObserverSettings
from sds_core.text import counted


class StandingIncident(NamedTuple):
    """The facts about an unresolved incident that `lacks_of` needs; see `Incident`.

    Attributes:
        followed: Whether the monitor still tracks the message, so that a frame may end
            the incident.
    """

    channel: str
    kind: IncidentKind
    message_id: str
    since_ms: int
    lacking: Mapping[str, int]
    lacking_others: int
    tap_hole: bool
    followed: bool


class Lack(NamedTuple):
    """The messages of one channel that have the same problem for the same participant.

    Attributes:
        participant: The participant that did not receive the messages, or the peer that
            did not acknowledge them. None if the problem concerns no single
            participant.
        since_ms: Time of the first frame that showed that `participant` lacked one of
            the messages, Unix ms. If `participant` is None, the earliest
            `Incident.since_ms` of the messages.
        tap_hole: Number of those messages that may have arrived unseen, because all
            taps had a capture gap.
        at_least: Whether `messages` is only a minimum, because an incident in the
            channel does not name all participants that lack its message.
        followed: Whether the monitor still tracks the messages, so that it may see them
            arrive.
    """

    channel: str
    kind: IncidentKind
    participant: str | None
    messages: int
    since_ms: int
    tap_hole: int
    at_least: bool = False
    followed: bool = True

    def sentence(self, who: str, since: str) -> str:
        """Return a sentence: which participant lacks how many messages since when.

        `who` and `since` are the displayed forms of `participant` and `since_ms`.
        """
        count = counted(self.messages, "message")
        one = self.messages == 1
        senders = "its sender" if one else "their senders"
        verb = "was" if one else "were"
        bound = "at least " if self.at_least else ""
        match self.kind:
            case IncidentKind.LOST if self.followed:
                return f"{count} reached nobody but {senders} since {since}"
            case IncidentKind.LOST:
                return f"{count} since {since} {verb} seen at nobody but {senders}"
            case IncidentKind.UNDELIVERED if self.participant is not None:
                if self.followed:
                    return f"{bound}{count} did not reach {who} since {since}"
                return f"{bound}{count} since {since} {verb} not seen to reach {who}"
            case IncidentKind.UNACKNOWLEDGED if self.participant is not None:
                return f"{who} did not acknowledge {bound}{count} since {since}"
            case _:
                return f"{count} since {since} {verb} not acknowledged"


class _Group(NamedTuple):
    channel: str
    kind: IncidentKind
    participant: str | None
    followed: bool


_RANK = {kind: rank for rank, kind in enumerate(IncidentKind)}


def is_followed(since_ms: int, clock_ms: int, settings: ObserverSettings) -> bool:
    """Whether the monitor still tracks the message of an incident.

    `since_ms` is `Incident.since_ms`; `clock_ms` is the clock at which the incident is
    read, Unix ms.
    """
    return clock_ms <= since_ms + settings.horizon_ms


def standing_of(
    found: Iterable[ChannelIncident], follows: Callable[[ChannelIncident], bool]
) -> list[StandingIncident]:
    """Return the incidents that have not ended.

    `follows` takes an incident, and returns the value for `StandingIncident.followed`.
    """
    return [
        StandingIncident(
            one.channel,
            one.incident.kind,
            one.incident.message_id,
            one.incident.since_ms,
            one.incident.lacking,
            one.incident.lacking_others,
            one.tap_hole,
            follows(one),
        )
        for one in found
        if one.incident.ended_ms is None
    ]


def lacks_of(
    found: Iterable[StandingIncident], personal: frozenset[IncidentKind]
) -> list[Lack]:
    """Group incidents by channel, kind, participant and `followed`.

    If several participants lack a message, the message counts for each of them. For
    `personal`, see `Kind.personal`.

    Returns:
        The groups that are `followed`, then those that are not. In both parts, groups
        are sorted by `IncidentKind`, then by number of messages, largest first.
    """
    groups: dict[_Group, tuple[int, int, int]] = {}
    unnamed = set()
    for one in found:
        who: Mapping[str | None, int] = {None: one.since_ms}
        if one.kind in personal:
            who = {name: since_ms for name, since_ms in one.lacking.items()}
            if one.lacking_others:
                unnamed.add(one.channel)
        for name, since_ms in who.items():
            key = _Group(one.channel, one.kind, name, one.followed)
            messages, first_ms, holes = groups.get(key, (0, since_ms, 0))
            groups[key] = (messages + 1, min(first_ms, since_ms), holes + one.tap_hole)
    lacks = [
        Lack(
            *key[:3],
            *counts,
            at_least=key.participant is not None and key.channel in unnamed,
            followed=key.followed,
        )
        for key, counts in groups.items()
    ]
    lacks.sort(
        key=lambda one: (
            not one.followed,
            _RANK[one.kind],
            -one.messages,
            one.since_ms,
            one.channel,
            one.participant or "",
        )
    )
    return lacks
