"""Records of incidents: when a view returns one, its hash, and its JSON."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from sds_core.observer.fingerprint import fingerprint
from sds_core.observer.incidents import (
    ChannelIncident,
    Incident,
    IncidentKind,
    Incidents,
    explain,
    incident_object,
)
from sds_core.observer.sds.channel_state import BLOB_VERSION
from sds_core.observer.sds.channel_view import ChannelView
from sds_core.observer.sds.digest import Arrival, ChannelDigester
from sds_core.observer.settings import ObserverSettings
from sds_core.wire import Frame
from tests.support.channel import START_LAMPORT, Channel
from tests.support.frames import START_MS, FrameFactory, Record, value_of
from tests.support.observer.incidents import (
    ACK_DEADLINE,
    LOST,
    T0,
    UNACKNOWLEDGED,
    UNDELIVERED,
    latest,
    miss,
)

# What leaves the view.


def test_incident_is_recorded_when_it_changes_and_no_more(channel: Channel) -> None:
    """The call that changes it returns it once."""
    miss(channel)
    channel.clock(ACK_DEADLINE + 1)
    assert channel.incidents.keys() == {(UNACKNOWLEDGED, "m")}
    channel.incidents.clear()
    channel.clock(ACK_DEADLINE + 50_000)
    assert channel.incidents == {}
    channel.sync("bob", at=ACK_DEADLINE + 60_000, lamport=1_002, history=["m"])
    assert channel.incidents.keys() == {(UNACKNOWLEDGED, "m")}


def test_of_two_records_in_one_call_the_last_counts(channel: Channel) -> None:
    """Found and ended in one batch."""
    frames = channel.frames
    channel.take_records(
        [
            Record(T0, frames.content("m", "alice")),
            Record(T0 + 1, frames.sync("bob", 1_001)),
            Record(ACK_DEADLINE + 1, frames.sync("bob", 1_002, history=["m"])),
        ]
    )
    assert latest(channel, UNACKNOWLEDGED, "m").ended_ms == ACK_DEADLINE + 1


def test_recorded_incidents_are_returned_once() -> None:
    """In the order of their first records, each as recorded last."""
    incidents = Incidents()
    first = Incident(IncidentKind.LOST, "x", "", 1, 2)
    other = Incident(IncidentKind.UNDELIVERED, "x", "", 1, 2)
    last = Incident(IncidentKind.LOST, "x", "", 1, 2, ended_ms=3)
    for incident in (first, other, last):
        incidents.record(incident)
    assert incidents.drain() == [last, other]
    assert incidents.drain() == []


def latest_with_hashes(frames: Sequence[tuple[int, Frame, bytes]]) -> list[Incident]:
    """Latest records of incidents, with a restart after each frame."""
    view, found = ChannelView(), {}
    for offset, (at, frame, waku_hash) in enumerate(frames):
        digester, value = ChannelDigester(0), value_of(frame)
        hashed = fingerprint(waku_hash)
        time_ms = START_MS + at
        arrival = Arrival(offset, time_ms, time_ms, "tap", offset, hashed, waku_hash)
        digester.add(frame, value, arrival)
        for event in view.apply([digester.finish()], START_MS):
            if isinstance(event, Incident):
                found[event.key] = event
        view = ChannelView.from_blob(BLOB_VERSION, view.to_blob())
    return list(found.values())


def test_incidents_carry_the_hash_of_the_first_copy() -> None:
    """Also after a restart; of a lost message, the hash of its arrival."""
    frames, numbers = FrameFactory(), itertools.count(1)
    m, x, n = (bytes([letter]) * 32 for letter in b"mxn")

    def other() -> bytes:
        return bytes([next(numbers)]) * 32

    told_last = latest_with_hashes(
        [
            (0, frames.sync("bob", START_LAMPORT), other()),
            (60_000, frames.content("m", "alice", 101), m),
            (61_000, frames.sync("bob", 102, history=["m", "x"]), other()),
            (62_000, frames.content("n", "alice", 103), n),
            (63_000, frames.content("n", "alice", 103), other()),
            (64_000, frames.sync("bob", 104), other()),
            (70_000, frames.sync("bob", 105, holds=()), other()),
            (220_000, frames.sync("bob", 106, holds=()), other()),
            (370_001, frames.sync("bob", 107, holds=()), other()),
            (371_000, frames.content("x", "sue", 90), x),
        ]
    )
    assert {(one.kind.value, one.message_id): one.waku_hash for one in told_last} == {
        (UNACKNOWLEDGED, "n"): n,
        (UNDELIVERED, "n"): n,
        (LOST, "x"): x,
    }


# The JSON object of an incident.


def test_incident_in_json_has_every_field() -> None:
    """Hash and hint are hex, unknown values are null."""
    incident = Incident(
        IncidentKind.LOST,
        "x",
        "sue",
        since_ms=1,
        found_ms=2,
        ended_ms=3,
        lacking={"bob": 4},
        named_by=["sue", "carol"],
        waku_hash=bytes(range(32)),
        hint=b"\x01\xff",
        lacking_others=7,
    )
    assert incident_object(ChannelIncident("c", incident, tap_hole=True)) == {
        "channel": "c",
        "kind": "lost",
        "message_id": "x",
        "sender": "sue",
        "since": 1,
        "found": 2,
        "ended": 3,
        "lacking": {"bob": 4},
        "lacking_others": 7,
        "named_by": ["sue", "carol"],
        "waku_hash": "0x" + bytes(range(32)).hex(),
        "retrieval_hint": "01ff",
        "tap_hole": True,
        "why": "reached nobody but the sender: sue and carol named it, and for "
        "5 minutes nobody else showed to have it",
    }
    bare = Incident(IncidentKind.UNDELIVERED, "m", "", 1, 2)
    shown_object = incident_object(ChannelIncident("c", bare, tap_hole=False))
    absent = {name for name, value in shown_object.items() if value is None}
    assert absent == {"sender", "ended", "waku_hash", "retrieval_hint"}
    assert (shown_object["lacking"], shown_object["named_by"]) == ({}, [])


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (
            IncidentKind.LOST,
            "reached at most one participant, who may be the sender: a participant "
            "without a name named it, and for 1.5 seconds nobody else showed to have "
            "it",
        ),
        (
            IncidentKind.UNDELIVERED,
            "2 seconds later a participant was still sending, and its list of received "
            "messages did not contain it",
        ),
        (
            IncidentKind.UNACKNOWLEDGED,
            "others sent messages after it, but for 3 seconds nobody showed to have it",
        ),
    ],
)
def test_incident_is_explained_by_its_rule(kind: IncidentKind, sentence: str) -> None:
    """The explanation has the limits from the settings."""
    settings = ObserverSettings(
        gap_deadline_ms=1_500, delivery_deadline_ms=2_000, ack_deadline_ms=3_000
    )
    assert explain(Incident(kind, "m", "", 1, 2), settings) == sentence


@pytest.mark.parametrize(
    ("names", "others", "sentence"),
    [
        (1, 0, "p1 was still sending, and its list of received messages did"),
        (2, 0, "p1 and p2 were still sending, and their lists of received messages"),
        (4, 3, "p1, p2, p3 and 4 others were still sending, and their lists"),
    ],
)
def test_explanation_names_who_did_not_receive_the_message(
    names: int, others: int, sentence: str
) -> None:
    """At most three of them; the others are counted."""
    lacking = {f"p{n}": n for n in range(1, names + 1)}
    incident = Incident(
        IncidentKind.UNDELIVERED, "m", "", 1, 2, lacking=lacking, lacking_others=others
    )
    assert explain(incident).startswith(f"5 minutes later {sentence}")
