"""What profiles lose in a network with losses; the page on participants has more."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from docs import make_participant
from docs.make_participant import PROFILES, SITUATIONS, Losses, measured
from sds_core.message_channel import (
    Acknowledged,
    Cause,
    Delivered,
    Evidence,
    Missing,
    Received,
)
from sds_core.message_channel.profile import Profile
from sds_core.simulation.log import Entry, Happening, Presence, Transmission
from sds_core.simulation.profile_share import ProfileShare
from sds_core.wire import Dialect, encode
from tests.support.frames import START_MS, FrameFactory

SMALL_GROUP = SITUATIONS[0]
SEEDS = range(1, 5)


def test_default_profile_loses_nothing() -> None:
    """Each delivery happens, to participants that join late too."""
    losses = measured(ProfileShare(base="default"), SMALL_GROUP, SEEDS)
    assert losses.deliveries > 1_000
    assert losses.joins == 3 * len(SEEDS)
    assert (losses.silent, losses.reported, losses.joins_with_loss) == (0, 0, 0)


def test_history_of_two_with_a_clock_that_counts_loses_without_a_trace() -> None:
    """The reason why it is not the default; in the same simulations."""
    assert measured(ProfileShare(base="spec"), SMALL_GROUP, SEEDS).silent > 0


def heard(participant: str, event: object) -> Happening:
    """An event of a participant."""
    return Happening(START_MS, "channel", participant, event)  # type: ignore[arg-type]


def simulated(*more: Entry) -> list[Entry]:
    """Alice sends a message to bob, who is there, and to carol, who has come late."""
    frame = FrameFactory("channel", Dialect.SPEC).content("m", "alice")
    start_ms = make_participant.START_MS
    sent = Transmission(
        0, START_MS, "channel", "alice", Cause.CONTENT, frame, encode(frame), "", 0
    )
    return [
        Presence(start_ms, "channel", "alice", present=True),
        Presence(start_ms, "channel", "bob", present=True),
        Presence(start_ms + 1, "channel", "carol", present=True),
        sent,
        Presence(start_ms + 2, "channel", "dave", present=True),
        heard("bob", Delivered("m", "alice", 1, b"text")),
        *more,
    ]


ACKNOWLEDGED = heard("alice", Acknowledged("m", "bob", Evidence.BLOOM_FILTER))


@pytest.mark.parametrize(
    ("more", "silent", "reported", "joins_with_loss"),
    [
        ([], 0, 1, 1),
        ([ACKNOWLEDGED], 1, 0, 1),
        ([ACKNOWLEDGED, heard("carol", Missing("m", b"", "alice", "n"))], 0, 1, 1),
        ([ACKNOWLEDGED, heard("carol", Received("m", "alice"))], 0, 1, 1),
        ([heard("carol", Delivered("m", "alice", 1, b"text"))], 0, 0, 0),
    ],
    ids=["unacknowledged", "silent", "missed", "waiting", "delivered"],
)
def test_losses_are_counted_by_who_knows_of_them(
    more: Iterable[Entry], silent: int, reported: int, joins_with_loss: int
) -> None:
    """For those who were there when the message was sent: dave came later."""
    losses = Losses()
    losses.count(simulated(*more))
    assert losses == Losses(
        deliveries=2,
        silent=silent,
        reported=reported,
        joins=2,
        joins_with_loss=joins_with_loss,
        frames=1,
        frame_bytes=losses.frame_bytes,
    )


def test_page_has_every_profile_and_the_default_loses_nothing_there() -> None:
    """A row for each, in order; ``python -m docs.make_participant`` makes them."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in make_participant.PART.current().splitlines()
        if line.startswith("|")
    ][2:]
    profiles = [share.profile() for share in PROFILES]
    assert [row[:2] for row in rows] == [
        [str(one.lamport_rule), str(one.causal_history_size)] for one in profiles
    ]
    assert profiles.count(Profile()) == profiles.count(Profile.spec()) == 1
    default = rows[profiles.index(Profile())]
    assert default[2] == "`Profile()`"
    assert default[3].startswith("0 of ")
    assert default[7].startswith("0 of ")
    assert not rows[profiles.index(Profile.spec())][3].startswith("0 of ")
