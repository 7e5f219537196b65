"""Standing incidents, grouped by who lacks the messages."""

from __future__ import annotations

from typing import Any

from sds_core.observer.incidents import (
    ChannelIncident,
    Incident,
    IncidentKind,
    Incidents,
)
from sds_core.observer.lacking import Lack, lacks_of, standing_of

LOST, UNDELIVERED, UNACKNOWLEDGED = IncidentKind


def found(
    kind: IncidentKind, message_id: str, since_ms: int, **values: Any
) -> ChannelIncident:
    """An incident of channel `c`; `tap_hole` is of the channel's taps."""
    tap_hole = values.pop("tap_hole", False)
    incident = Incident(kind, message_id, "alice", since_ms, since_ms + 300, **values)
    return ChannelIncident("c", incident, tap_hole)


def test_messages_are_counted_for_each_participant_that_lacks_them() -> None:
    """The participant that lacks most comes first, with the time of the first one."""
    incidents = [
        found(UNDELIVERED, "m1", 20, lacking={"bob": 20}),
        found(UNDELIVERED, "m2", 10, lacking={"bob": 15, "eve": 10}, tap_hole=True),
    ]
    assert lacks_of(standing_of(incidents)) == [
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
    assert lacks_of(standing_of(incidents)) == [
        Lack("c", LOST, None, messages=2, since_ms=7, tap_hole=0),
        Lack("c", UNDELIVERED, "bob", messages=1, since_ms=6, tap_hole=0),
        Lack("c", UNACKNOWLEDGED, None, messages=1, since_ms=5, tap_hole=0),
    ]


def test_ended_incident_is_in_no_group() -> None:
    """An unacknowledged message that was acknowledged may still be lacked."""
    ended = found(UNACKNOWLEDGED, "m", 5, lacking={"bob": 7}, ended_ms=9)
    assert lacks_of(standing_of([ended])) == []


def test_group_is_at_least_so_large_if_incidents_do_not_name_everybody() -> None:
    """Which names an incident keeps depends on the cut into batches."""
    who = {f"p{number:02}": 1 for number in range(60)}
    incidents = Incidents()
    for number in range(50):
        one = Incident(UNDELIVERED, f"m{number}", "alice", 1, 2, lacking=dict(who))
        incidents.record(one)
    drained = incidents.drain()
    lacks = lacks_of(standing_of(ChannelIncident("c", one, False) for one in drained))
    (last,) = [one for one in lacks if one.participant == "p59"]
    assert last.messages < 50
    text = f"p59 lacks at least {last.messages} messages since now"
    assert last.sentence("p59", "now") == text
    whole = lacks_of(standing_of([found(UNDELIVERED, "m", 1, lacking=who)]))
    assert not any(one.at_least for one in whole)
