"""Incidents of each kind: since when, who lacks the message, and when it ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sds_core.observer.incidents import Incident, IncidentKind
from sds_core.wire import Dialect, HistoryEntry
from tests.support.channel import START_LAMPORT, Channel
from tests.support.observer.incidents import (
    ACK_DEADLINE,
    LOST,
    T0,
    UNACKNOWLEDGED,
    UNDELIVERED,
    latest,
    miss,
)

LACKED = T0 + 9_000
DELIVERY_DEADLINE = LACKED + 300_000
"""Of a participant that `begin_to_lack` has shown to lack a message."""
GAP_DEADLINE = T0 + 300_000
HORIZON = 3_600_000


@pytest.fixture
def gap(channel: Channel) -> Channel:
    """The channel with `x` of sue, which she names herself at 60 s."""
    channel.content("anchor", "anna", at=T0, lamport=START_LAMPORT + 1)
    channel.sync("sue", at=T0, lamport=500, history=["anchor", ("x", "sue")])
    return channel


# Unacknowledged messages.


def test_unacknowledged_message_is_recorded_at_its_deadline(channel: Channel) -> None:
    """It is not recorded while it is in flight."""
    miss(channel)
    channel.clock(ACK_DEADLINE)
    assert channel.incidents == {}
    channel.clock(ACK_DEADLINE + 5_000)
    assert latest(channel, UNACKNOWLEDGED, "m") == Incident(
        IncidentKind.UNACKNOWLEDGED, "m", "alice", T0, ACK_DEADLINE
    )


def test_late_message_is_recorded_at_the_deadline_of_its_clock(
    channel: Channel,
) -> None:
    """It begins at its own time."""
    channel.clock(T0 + 40_000)
    miss(channel)
    channel.clock(ACK_DEADLINE + 40_001)
    incident = latest(channel, UNACKNOWLEDGED, "m")
    assert (incident.since_ms, incident.found_ms) == (T0, ACK_DEADLINE + 40_000)


def test_message_acknowledged_in_time_or_unwitnessed_is_no_incident(
    channel: Channel,
) -> None:
    """Neither is a fault."""
    channel.content("m", "alice", at=T0)
    channel.sync("bob", at=T0 + 1_000, lamport=1_001, history=["m"])
    channel.content("n", "alice", at=T0 + 2_000, lamport=1_002)
    channel.clock(ACK_DEADLINE * 2)
    assert channel.totals.unwitnessed == 1
    assert channel.incidents == {}


@pytest.mark.parametrize("of_frame", [{"history": ["m"]}, {"holds": ["m"]}])
def test_unacknowledged_ends_with_the_acknowledgement(
    channel: Channel, of_frame: dict[str, Any]
) -> None:
    """Of either kind, at the clock at which it is read."""
    miss(channel)
    channel.clock(200_000)
    channel.sync("bob", at=190_000, lamport=1_002, **of_frame)
    incident = latest(channel, UNACKNOWLEDGED, "m")
    assert (incident.found_ms, incident.ended_ms) == (ACK_DEADLINE, 200_000)


def test_second_acknowledgement_does_not_move_the_end(channel: Channel) -> None:
    """The first one, by a filter, ended it."""
    miss(channel)
    channel.sync("bob", at=190_000, lamport=1_002, holds=["m"])
    channel.sync("bob", at=200_000, lamport=1_003, history=["m"])
    totals = channel.totals
    assert (totals.acknowledged_probable, totals.acknowledged_definite) == (1, 1)
    assert latest(channel, UNACKNOWLEDGED, "m").ended_ms == 190_000


def test_unacknowledged_message_names_who_lacks_it(channel: Channel) -> None:
    """With the time since when; without participants that never spoke."""
    for name in ("bob", "carol", "dave"):
        channel.sync(name, at=T0 - 1, lamport=500)
    channel.content("m", "alice", at=T0)
    channel.sync("bob", at=T0 + 6_000, lamport=1_001, holds=())
    channel.sync("bob", at=T0 + 8_000, lamport=1_002, holds=())
    channel.sync("carol", at=T0 + 7_000, lamport=1_003, holds=())
    channel.clock(ACK_DEADLINE + 1)
    both = {"bob": T0 + 6_000, "carol": T0 + 7_000}
    assert latest(channel, UNACKNOWLEDGED, "m").lacking == both
    # Bob acknowledges it; carol still lacks it.
    channel.sync("bob", at=ACK_DEADLINE + 2, lamport=1_004, history=["m"])
    assert latest(channel, UNACKNOWLEDGED, "m").lacking == {"carol": T0 + 7_000}


# Undelivered messages.


def listen(channel: Channel, *names: str) -> None:
    """Participants have spoken, and then alice sends `m`, which zoe acknowledges."""
    for name in names:
        channel.sync(name, at=T0 - 1, lamport=500)
    channel.content("m", "alice", at=T0)
    channel.sync("zoe", at=T0 + 1, lamport=1_001, history=["m"])


def lack(channel: Channel, by: str, at: int) -> None:
    """A participant's frame that lacks `m`."""
    channel.sync(by, at=at, lamport=at, holds=())


def begin_to_lack(channel: Channel, **since: int) -> None:
    """Participants lack `m` since then, and speak again later."""
    for name, at in since.items():
        lack(channel, name, at)
        lack(channel, name, at + 150_000)


def test_undelivered_message_is_recorded_when_it_is_lost_to_somebody(
    channel: Channel,
) -> None:
    """At the clock of the frame that shows it, since it was first missing."""
    listen(channel, "bob")
    begin_to_lack(channel, bob=LACKED)
    assert channel.incidents == {}
    channel.clock(DELIVERY_DEADLINE + 5_000)
    lack(channel, "bob", DELIVERY_DEADLINE + 1)
    assert latest(channel, UNDELIVERED, "m") == Incident(
        IncidentKind.UNDELIVERED,
        "m",
        "alice",
        since_ms=LACKED,
        found_ms=DELIVERY_DEADLINE + 5_000,
        lacking={"bob": LACKED},
    )


def test_undelivered_message_names_all_to_whom_it_is_lost(channel: Channel) -> None:
    """There is one incident, found once, since the first of them lacked it."""
    listen(channel, "bob", "carol", "dave")
    begin_to_lack(channel, carol=LACKED, bob=LACKED + 1, dave=LACKED + 1)
    lack(channel, "carol", DELIVERY_DEADLINE + 1)
    lack(channel, "bob", DELIVERY_DEADLINE + 2)
    lack(channel, "dave", DELIVERY_DEADLINE + 1)  # Not lost to him, not yet.
    assert latest(channel, UNDELIVERED, "m") == Incident(
        IncidentKind.UNDELIVERED,
        "m",
        "alice",
        since_ms=LACKED,
        found_ms=DELIVERY_DEADLINE + 1,
        lacking={"carol": LACKED, "bob": LACKED + 1},
    )


def test_undelivered_ends_when_the_last_has_it(channel: Channel) -> None:
    """Until then it lists who still lacks it, with the same begin."""
    listen(channel, "bob", "carol")
    begin_to_lack(channel, bob=LACKED, carol=LACKED + 1)
    lack(channel, "bob", DELIVERY_DEADLINE + 1)
    lack(channel, "carol", DELIVERY_DEADLINE + 2)
    at = DELIVERY_DEADLINE + 10
    channel.sync("bob", at=at, lamport=at, holds=["m"])
    still = latest(channel, UNDELIVERED, "m")
    assert (still.lacking, still.ended_ms) == ({"carol": LACKED + 1}, None)
    channel.clock(at + 10)
    channel.sync("carol", at=at, lamport=at, history=["m"])
    ended = latest(channel, UNDELIVERED, "m")
    assert (ended.lacking, ended.ended_ms) == ({}, at + 10)
    assert (ended.since_ms, ended.found_ms) == (LACKED, DELIVERY_DEADLINE + 1)


def test_undelivered_stands_again_when_another_lacks_it(channel: Channel) -> None:
    """The time at which it was found does not change."""
    listen(channel, "bob", "carol")
    begin_to_lack(channel, bob=LACKED, carol=LACKED + 15)
    lack(channel, "bob", DELIVERY_DEADLINE + 1)
    at = DELIVERY_DEADLINE + 10
    channel.sync("bob", at=at, lamport=at, holds=["m"])
    assert latest(channel, UNDELIVERED, "m").ended_ms == at
    lack(channel, "carol", at + 10)
    again = latest(channel, UNDELIVERED, "m")
    assert (again.ended_ms, again.lacking) == (None, {"carol": LACKED + 15})
    assert again.found_ms == DELIVERY_DEADLINE + 1
    assert again.since_ms == LACKED


def test_recovered_delivery_is_no_incident(channel: Channel) -> None:
    """It was delivered within its deadline."""
    listen(channel, "bob")
    lack(channel, "bob", T0 + 10_000)
    channel.sync("bob", at=T0 + 20_000, lamport=T0 + 20_000, history=["m"])
    assert channel.incidents == {}


# Lost messages.


def test_lost_message_is_recorded_at_its_deadline(gap: Channel) -> None:
    """With the first naming, who named it, and its sender."""
    gap.clock(GAP_DEADLINE)
    assert gap.incidents == {}
    gap.clock(GAP_DEADLINE + 5_000)
    assert latest(gap, LOST, "x") == Incident(
        IncidentKind.LOST, "x", "sue", T0, GAP_DEADLINE, named_by=["sue"]
    )


def test_gap_that_is_filled_or_the_taps_is_no_incident(gap: Channel) -> None:
    """Only a lost message is an incident."""
    gap.sync("sue", at=T0, lamport=501, history=["anchor", ("y", "sue")])
    gap.content("y", "sue", at=T0 + 9_000, lamport=502)
    gap.sync("bob", at=T0 + 9_000, lamport=503, history=["anchor", "y", "x"])
    gap.clock(GAP_DEADLINE + 1)
    assert (gap.totals.gaps_tap_gap, gap.totals.gaps_late) == (1, 1)
    assert LOST not in {kind for kind, _ in gap.incidents}


def test_lost_message_of_nobody_names_no_sender(channel: Channel) -> None:
    """The one participant that named it may be its sender."""
    channel.content("anchor", "anna", at=T0, lamport=START_LAMPORT + 1)
    channel.sync("bob", at=T0, lamport=500, history=["anchor", "x"])
    channel.sync("bob", at=T0 + 1, lamport=501, history=["anchor", "x"])
    channel.clock(GAP_DEADLINE + 1)
    incident = latest(channel, LOST, "x")
    assert (incident.sender, incident.named_by) == ("", ["bob"])


def hinted(hints: Sequence[bytes], *ids: str) -> tuple[HistoryEntry, ...]:
    """History entries with retrieval hints, all of messages of sue."""
    return tuple(
        HistoryEntry(message_id, hint, "sue")
        for message_id, hint in zip(ids, hints, strict=True)
    )


def test_lost_message_has_the_first_hint_that_was_given(gap: Channel) -> None:
    """From any participant; a hint that is too long is ignored."""
    for at, hint in enumerate((b"", b"\xff" * 1_025, b"first", b"second"), T0 + 1):
        frame = gap.frames.sync("sue", at)
        gap.take(frame._replace(causal_history=hinted([hint], "x")), at)
    gap.clock(GAP_DEADLINE + 1)
    assert latest(gap, LOST, "x").hint == b"first"


@pytest.mark.parametrize(
    ("at", "lamport", "of_frame", "lacks"),
    [
        (T0 + 5_001, 501, {}, True),
        (T0 + 5_000, 501, {}, False),
        (T0 + 5_001, 500, {}, False),
        (T0 + 5_001, 501, {"holds": None}, False),
        (T0 + 5_001, 501, {"dialect": Dialect.NIM}, False),
        (GAP_DEADLINE, 501, {}, True),
    ],
    ids=["usable", "grace", "lamport", "no filter", "other dialect", "at the deadline"],
)
def test_lost_message_names_who_lacks_it(
    gap: Channel, at: int, lamport: int, of_frame: dict[str, Any], lacks: bool
) -> None:
    """By a filter of a frame after the one that named it."""
    gap.sync("bob", at, lamport, **({"holds": ()} | of_frame))
    gap.clock(GAP_DEADLINE + 1)
    assert latest(gap, LOST, "x").lacking == ({"bob": at} if lacks else {})


def test_lost_message_is_lacked_since_the_first_such_frame(gap: Channel) -> None:
    """For each participant; the sender is not listed."""
    for by, at in (
        ("bob", 10_000),
        ("sue", 11_000),
        ("carol", 12_000),
        ("bob", 13_000),
    ):
        gap.sync(by, T0 + at, lamport=500 + at, holds=())
    gap.sync("", T0 + 14_000, lamport=90_000, holds=())
    gap.clock(GAP_DEADLINE + 1)
    incident = latest(gap, LOST, "x")
    assert incident.lacking == {"bob": T0 + 10_000, "carol": T0 + 12_000}


def test_copies_do_not_show_who_lacks_a_lost_message(gap: Channel) -> None:
    """A rebroadcast has the filter of its first broadcast."""
    frame = gap.content("b", "bob", T0 + 1, lamport=9_000, holds=(), waku_hash="1")
    gap.take(frame, T0 + 10_000, waku_hash="2")
    gap.clock(GAP_DEADLINE + 1)
    assert latest(gap, LOST, "x").lacking == {}


def test_participant_that_shows_a_message_of_nobody_lacks_it_no_more(
    channel: Channel,
) -> None:
    """It may be the sender, so the message is still lost."""
    channel.content("anchor", "anna", at=T0, lamport=START_LAMPORT + 1)
    channel.sync("", at=T0, lamport=500, history=["anchor", "x"])
    channel.sync("bob", T0 + 10_000, lamport=501, holds=())
    channel.sync("bob", T0 + 20_000, lamport=502, holds=["x"])
    channel.sync("bob", T0 + 30_000, lamport=503, holds=())
    channel.sync("carol", T0 + 30_000, lamport=503, holds=())
    channel.clock(GAP_DEADLINE + 1)
    incident = latest(channel, LOST, "x")
    assert incident.named_by == []
    assert incident.lacking == {"carol": T0 + 30_000}


@pytest.mark.parametrize(("later_ms", "ended"), [(0, True), (1, False)])
def test_lost_ends_when_the_message_comes(
    gap: Channel, later_ms: int, ended: bool
) -> None:
    """Within the horizon; the list of who lacks it is then empty."""
    gap.sync("bob", T0 + 10_000, lamport=501, holds=())
    gap.sync("sue", at=3_000_000, history=["x"])  # Keeps it remembered.
    assert latest(gap, LOST, "x").lacking == {"bob": T0 + 10_000}
    at = T0 + HORIZON + later_ms
    gap.content("x", "sue", at=at, lamport=400)
    incident = latest(gap, LOST, "x")
    assert incident.ended_ms == (at if ended else None)
    assert (incident.lacking == {}) is ended
    assert (incident.since_ms, incident.found_ms) == (T0, GAP_DEADLINE)


# Hints.


def test_message_that_was_seen_has_the_first_hint_that_was_given(
    channel: Channel,
) -> None:
    """From any participant that names it."""
    miss(channel)
    for at, hint in enumerate((b"", b"first", b"second"), ACK_DEADLINE + 1):
        frame = channel.frames.sync("bob", 2_000)
        channel.take(frame._replace(causal_history=hinted([hint], "m")), at)
    assert latest(channel, UNACKNOWLEDGED, "m").hint == b""
    for name in ("carol", "dave"):
        channel.sync(name, at=ACK_DEADLINE + 100, lamport=3_000)
    channel.content("n", "alice", at=ACK_DEADLINE + 1_000, lamport=4_000)
    frame = channel.frames.sync("bob", 5_000)
    channel.take(frame._replace(causal_history=hinted([b"n's"], "n")), 200_000)
    for number, at in enumerate((100_000, 250_000, 400_001), 6_000):
        channel.sync("carol", at=ACK_DEADLINE + at, lamport=number, holds=())
    assert latest(channel, UNDELIVERED, "n").hint == b"n's"
