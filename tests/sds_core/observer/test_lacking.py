"""Standing incidents, grouped by who lacks the messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from sds_core.observer.incidents import (
    ChannelIncident,
    Incident,
    IncidentKind,
    Incidents,
)
from sds_core.observer.lacking import (
    Lack,
    is_followed,
    lacks_of,
    standing_of,
)
from sds_core.observer.mvds.kind import SHARD_VIEWS
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.settings import DEFAULTS

LOST, UNDELIVERED, UNACKNOWLEDGED = IncidentKind


def found(
    kind: IncidentKind, message_id: str, since_ms: int, **values: Any
) -> ChannelIncident:
    """An incident of channel `c`; `tap_hole` is of the channel's taps."""
    tap_hole = values.pop("tap_hole", False)
    incident = Incident(kind, message_id, "alice", since_ms, since_ms + 300, **values)
    return ChannelIncident("c", incident, tap_hole)


def groups(incidents: Iterable[ChannelIncident], clock_ms: int = 100) -> list[Lack]:
    """The groups as of a moment, Unix ms."""

    def follows(one: ChannelIncident) -> bool:
        return is_followed(one.incident.since_ms, clock_ms, DEFAULTS)

    return lacks_of(standing_of(incidents, follows), CHANNELS.personal)


def test_messages_are_counted_for_each_participant_that_lacks_them() -> None:
    """The participant that lacks most comes first, with the time of the first one."""
    incidents = [
        found(UNDELIVERED, "m1", 20, lacking={"bob": 20}),
        found(UNDELIVERED, "m2", 10, lacking={"bob": 15, "eve": 10}, tap_hole=True),
    ]
    assert groups(incidents) == [
        Lack("c", UNDELIVERED, "bob", messages=2, since_ms=15, tap_hole=1),
        Lack("c", UNDELIVERED, "eve", messages=1, since_ms=10, tap_hole=1),
    ]


def test_lost_to_everybody_is_another_group_than_not_delivered() -> None:
    """Whoever is known to lack a lost message: nobody has it."""
    incidents = [
        found(UNACKNOWLEDGED, "m1", 5, lacking={"bob": 7}),
        found(UNDELIVERED, "m2", 6, lacking={"bob": 6}),
        found(LOST, "m3", 8, lacking={"bob": 9, "eve": 9}),
        found(LOST, "m4", 7),
    ]
    assert groups(incidents) == [
        Lack("c", LOST, None, messages=2, since_ms=7, tap_hole=0),
        Lack("c", UNDELIVERED, "bob", messages=1, since_ms=6, tap_hole=0),
        Lack("c", UNACKNOWLEDGED, None, messages=1, since_ms=5, tap_hole=0),
    ]


def test_ended_incident_is_in_no_group() -> None:
    """An unacknowledged message that was acknowledged may still be lacked."""
    ended = found(UNACKNOWLEDGED, "m", 5, lacking={"bob": 7}, ended_ms=9)
    assert groups([ended]) == []


def test_group_is_at_least_so_large_if_incidents_do_not_name_everybody() -> None:
    """Which names an incident keeps depends on the cut into batches."""
    who = {f"p{number:02}": 1 for number in range(60)}
    incidents = Incidents()
    for number in range(50):
        one = Incident(UNDELIVERED, f"m{number}", "alice", 1, 2, lacking=dict(who))
        incidents.record(one)
    drained = incidents.drain()
    lacks = groups(ChannelIncident("c", one, False) for one in drained)
    (last,) = [one for one in lacks if one.participant == "p59"]
    assert last.messages < 50
    text = f"at least {last.messages} messages did not reach p59 since now"
    assert last.sentence("p59", "now") == text
    whole = groups([found(UNDELIVERED, "m", 1, lacking=who)])
    assert not any(one.at_least for one in whole)


@pytest.mark.parametrize(
    ("kind", "now", "later"),
    [
        (
            LOST,
            "1 message reached nobody but its sender since X",
            "1 message since X was seen at nobody but its sender",
        ),
        (
            UNDELIVERED,
            "1 message did not reach bob since X",
            "1 message since X was not seen to reach bob",
        ),
        (
            UNACKNOWLEDGED,
            "1 message since X was not acknowledged",
            "1 message since X was not acknowledged",
        ),
    ],
)
def test_group_of_messages_that_are_followed_no_longer_says_what_was_seen(
    kind: IncidentKind, now: str, later: str
) -> None:
    """The monitor follows a message for an hour; bob may have it since."""
    incidents = [found(kind, "m", 20, lacking={"bob": 20})]
    for clock_ms, sentence in ((3_600_020, now), (3_600_021, later)):
        (lack,) = groups(incidents, clock_ms)
        assert lack.sentence("bob", "X") == sentence


def test_messages_that_are_followed_come_before_older_ones() -> None:
    """They are groups of their own, also for the same participant."""
    incidents = [
        found(UNDELIVERED, "m1", 20, lacking={"bob": 20}),
        found(LOST, "m2", 20),
        found(UNDELIVERED, "m3", 50, lacking={"bob": 50}),
    ]
    now, *older = groups(incidents, 3_600_030)
    assert (now.participant, now.messages, now.since_ms) == ("bob", 1, 50)
    assert [(one.kind, one.messages) for one in older] == [(LOST, 1), (UNDELIVERED, 1)]


def test_peers_that_did_not_acknowledge_are_named() -> None:
    """Where each receiver is to acknowledge a message, and not in a channel."""
    incidents = [
        found(UNACKNOWLEDGED, "a", 5, lacking={"peer-1": 5, "peer-2": 7}),
        found(UNACKNOWLEDGED, "b", 3, lacking={"peer-1": 3}),
    ]
    standing = standing_of(incidents, lambda _: True)
    assert [
        one.sentence(one.participant or "", "X")
        for one in lacks_of(standing, CHANNELS.personal)
    ] == ["2 messages since X were not acknowledged"]
    peers = lacks_of(standing, SHARD_VIEWS.personal)
    assert [(one.participant, one.messages, one.since_ms) for one in peers] == [
        ("peer-1", 2, 3),
        ("peer-2", 1, 7),
    ]
    first, _ = peers
    sentence = "peer-1 did not acknowledge 2 messages since X"
    assert first.sentence("peer-1", "X") == sentence
