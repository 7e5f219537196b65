"""When a missing dependency opens a gap (docs/figures.md, 6)."""

from __future__ import annotations

import pytest

from sds_core.observer.sds.limits import LeftOut
from sds_core.observer.settings import ObserverSettings
from sds_core.wire import Dialect
from tests.support.channel import START_LAMPORT, Channel
from tests.support.frames import bloom
from tests.support.observer.gaps import NAMED, OVERDUE, SETTLED, outcomes

# Before the monitor's first sight.


@pytest.mark.parametrize(("at", "opened"), [(30_000, 0), (30_001, 1)])
def test_no_gap_opens_in_the_warm_up(at: int, opened: int) -> None:
    """In a channel's first 30 s an unseen id is only noted."""
    channel = Channel()
    channel.sync("", at=0, lamport=START_LAMPORT)
    # Old by its clock, yet above L0: a frame of the warm-up would raise L0.
    channel.content("anchor", "anna", at=at, lamport=START_LAMPORT + 1)
    channel.sync("bob", at=at, lamport=START_LAMPORT, history=["anchor", "x"])
    channel.clock(at + 2_001)
    assert channel.totals.gaps_opened == opened


def test_warm_up_runs_from_the_channels_first_record() -> None:
    """Not from the first record of the topic."""
    channel = Channel()
    channel.clock(500_000)
    channel.sync("", at=500_000, lamport=START_LAMPORT)
    channel.content("anchor", "anna", at=530_001, lamport=START_LAMPORT + 1)
    channel.sync("bob", at=530_001, history=["anchor", "x"])
    channel.clock(540_000)
    assert channel.totals.gaps_opened == 1


def test_id_named_in_the_warm_up_may_open_later(channel: Channel) -> None:
    """The first naming after the warm-up decides."""
    fresh = Channel()
    fresh.sync("", at=0, lamport=START_LAMPORT, history=["x"])
    fresh.content("anchor", "anna", at=40_000, lamport=START_LAMPORT + 1)
    fresh.sync("bob", at=41_000, history=["anchor", "x"])
    fresh.clock(43_001)
    assert fresh.totals.gaps_opened == 1


@pytest.mark.parametrize(("above", "opened"), [(0, 0), (1, 1)])
def test_seen_id_before_it_must_lie_above_l0(above: int, opened: int) -> None:
    """L0 is the highest lamport of the warm-up; a seen id at it proves nothing."""
    channel = Channel.after_warm_up()
    channel.content("anchor", "anna", at=60_000, lamport=START_LAMPORT + above)
    channel.sync("bob", at=NAMED, history=["anchor", "x"])
    channel.clock(SETTLED)
    assert channel.totals.gaps_opened == opened


@pytest.mark.parametrize(
    ("history", "opened"),
    [
        (["anchor", "x"], 1),
        (["x", "anchor"], 0),
        (["x"], 0),
        (["anchor", "x", "y"], 2),
        (["y", "anchor", "x"], 1),
        (["unseen", "x"], 0),
    ],
)
def test_position_in_the_history_decides(
    channel: Channel, history: list[str], opened: int
) -> None:
    """An unseen id without a seen one before it lies before the first sight."""
    channel.sync("bob", at=NAMED, history=history)
    channel.clock(SETTLED)
    assert channel.totals.gaps_opened == opened


def test_before_start_is_sticky(channel: Channel) -> None:
    """Once an id lay before the first sight it is never counted."""
    channel.sync("bob", at=NAMED, history=["x"])
    channel.sync("bob", at=NAMED + 1, history=["anchor", "x"])
    channel.clock(OVERDUE + 10_000)
    channel.content("x", "sue", at=OVERDUE + 20_000)
    assert channel.totals.gaps_opened == 0
    assert outcomes(channel) == {}


def test_l0_is_separate_for_each_dialect() -> None:
    """Lamport timestamps of one dialect do not affect the other."""
    channel = Channel()
    channel.sync("", at=0, lamport=100, dialect=Dialect.SPEC)
    channel.sync("", at=0, lamport=5_000, dialect=Dialect.NIM)
    channel.content("spec", "anna", at=60_000, lamport=101)
    channel.content("nim", "nia", at=60_000, lamport=4_999, dialect=Dialect.NIM)
    channel.sync("bob", at=NAMED, history=["spec", "x"])
    channel.sync("bob", at=NAMED, history=["nim", "y"])
    channel.clock(SETTLED)
    assert channel.totals.gaps_opened == 1


def test_ephemeral_frames_set_no_l0() -> None:
    """They have no lamport timestamp."""
    channel = Channel()
    channel.ephemeral("anna", at=0)
    channel.content("anchor", "anna", at=60_000, lamport=1)
    channel.sync("bob", at=NAMED, history=["anchor", "x"])
    channel.clock(SETTLED)
    assert channel.totals.gaps_opened == 1


def test_replica_opens_no_gap(channel: Channel) -> None:
    """It adds nothing to its broadcast."""
    frame = channel.frames.sync("bob", history=["x"])
    channel.take(frame, at=NAMED, waku_hash="1")
    other = channel.frames.sync("bob", history=["anchor", "y"])
    channel.take(other, at=NAMED, waku_hash="1")
    channel.clock(SETTLED)
    assert channel.totals.gaps_opened == 0


def test_request_alone_opens_no_gap(channel: Channel) -> None:
    """Only a causal history names a dependency."""
    channel.sync("bob", at=NAMED, history=["anchor"], requests=["x"])
    channel.clock(OVERDUE + 1)
    assert channel.totals.gaps_opened == 0


def test_id_that_names_itself_is_seen(channel: Channel) -> None:
    """A frame's own id is not missing."""
    channel.content("c", "bob", at=NAMED, history=["anchor", "c"])
    channel.sync("bob", at=NAMED, message_id="s", history=["anchor", "s"])
    channel.clock(SETTLED)
    assert channel.totals.gaps_opened == 0


def test_seen_id_is_no_gap(channel: Channel) -> None:
    """A message that a tap saw is not missing."""
    channel.content("m", "anna", at=61_000, lamport=200)
    channel.sync("bob", at=NAMED, history=["anchor", "m"])
    channel.clock(SETTLED)
    assert channel.totals.gaps_opened == 0


def test_entry_without_an_id_names_nothing(channel: Channel) -> None:
    """A stranger may send one; no gap opens."""
    channel.sync("bob", at=NAMED, history=["anchor", ""], requests=[""])
    channel.clock(OVERDUE + 1)
    assert channel.totals.gaps_opened == 0
    assert channel.totals.repair_requests == 0


# Settling.


@pytest.mark.parametrize(("at", "opened"), [(2_000, 0), (2_001, 1)])
def test_gap_counts_when_it_has_stood_for_two_seconds(
    channel: Channel, at: int, opened: int
) -> None:
    """An arrival at exactly 2 s is reordering at the tap."""
    channel.sync("bob", at=NAMED, history=["anchor", "x"])
    channel.content("x", "sue", at=NAMED + at)
    assert channel.totals.gaps_opened == opened
    assert outcomes(channel) == ({"late": 1} if opened else {})


def test_gap_opens_by_the_clock_alone(channel: Channel) -> None:
    """At 2 s it is settling; a millisecond later it is open."""
    channel.sync("bob", at=NAMED, history=["anchor", "x"])
    channel.clock(NAMED + 2_000)
    assert channel.totals.gaps_opened == 0
    channel.clock(NAMED + 2_001)
    assert (channel.totals.gaps_opened, channel.totals.gaps_open) == (1, 1)


def test_second_naming_does_not_renew_the_gap(channel: Channel) -> None:
    """Its time runs from the first naming."""
    channel.sync("bob", at=NAMED, history=["anchor", "x"])
    channel.sync("carol", at=NAMED + 1_500, history=["anchor", "x"])
    channel.clock(SETTLED)
    assert channel.totals.gaps_opened == 1
    channel.content("x", "sue", at=NAMED + 8_000)
    assert channel.totals.gap_duration.sum_ms == 8_000


# Pushed out by the limit, and named again.


def full_of_gaps() -> Channel:
    """A channel with room for two gaps, which forgot the older gap `x` at 100 s."""
    channel = Channel.after_warm_up(ObserverSettings(remembered=2))
    channel.content("anchor", "anna", at=60_000, lamport=START_LAMPORT + 1)
    channel.sync("bob", at=NAMED, history=["anchor", ("x", "bob")])
    channel.sync("bob", at=100_000, history=["anchor", ("y", "bob"), ("z", "bob")])
    return channel


def test_settle_time_of_a_forgotten_gap_is_not_that_of_the_next() -> None:
    """If the id is named again, the settle time starts anew."""
    channel = Channel.after_warm_up(ObserverSettings(remembered=2))
    channel.content("anchor", "anna", at=60_000, lamport=START_LAMPORT + 1)
    channel.sync("bob", at=NAMED, history=["anchor", "x"])
    channel.sync("bob", at=NAMED + 500, history=["anchor", "y", "z"])
    # It pushes out `y`, so that `x` and `z` are left.
    channel.sync("bob", at=NAMED + 1_500, history=["anchor", "x"])
    channel.clock(NAMED + 2_500)
    assert channel.totals.gaps_opened == 0
    channel.clock(NAMED + 3_500)
    assert channel.totals.gaps_opened == 1
    channel.clock(NAMED + 3_501)
    assert channel.totals.gaps_opened == 2


def test_deadline_of_a_forgotten_gap_is_not_that_of_the_next() -> None:
    """If the id is named again, its 300 s start anew."""
    channel = full_of_gaps()
    assert outcomes(channel) == {"tap_gap": 1}
    channel.sync("bob", at=200_000, history=["anchor", ("x", "bob")])
    channel.clock(OVERDUE + 1)
    # `y` was pushed out; `x` and `z` are open.
    assert outcomes(channel) == {"tap_gap": 2}
    assert channel.totals.gaps_open == 2
    channel.clock(400_001)
    assert outcomes(channel) == {"tap_gap": 2, "lost": 1}
    channel.clock(500_000)
    assert channel.totals.gaps_open == 1
    channel.clock(500_001)
    assert outcomes(channel) == {"tap_gap": 2, "lost": 2}


def test_participants_that_lack_an_id_are_limited() -> None:
    """A stranger may use any number of names."""
    channel = Channel.after_warm_up()
    channel.content("anchor", "anna", at=60_000, lamport=1_000)
    channel.sync("anna", at=61_000, lamport=1_001, history=["anchor", ("x", "anna")])
    for number in range(150):
        at = 70_000 + number
        channel.sync(f"name-{number}", at=at, lamport=2_000 + number, holds=())
    channel.clock(361_001)
    assert len(channel.incidents["lost", "x"].lacking) == 100


def test_only_later_frames_of_others_show_that_a_lost_id_is_lacking() -> None:
    """Later than the naming by Lamport timestamp, and by more than 5 s."""
    channel = Channel.after_warm_up()
    channel.content("anchor", "anna", at=60_000, lamport=1_000)
    channel.sync("anna", at=61_000, lamport=1_001, history=["anchor", ("x", "anna")])
    channel.sync("soon", at=66_000, lamport=2_000, holds=())
    channel.sync("bob", at=66_001, lamport=1_002, holds=())
    channel.sync("level", at=70_000, lamport=1_001, holds=())
    channel.sync("anna", at=71_000, lamport=2_001, holds=())
    channel.clock(361_001)
    assert list(channel.incidents["lost", "x"].lacking) == ["bob"]


# By the participant's own earlier history.


def named_later(channel: Channel, *later: str, lamport: int = 1_001) -> int:
    """Bob's history begins with the anchor, and is another later; returns the gaps."""
    channel.sync("bob", at=61_000, history=["anchor", "anchor"], lamport=1_000)
    channel.sync("bob", at=NAMED, history=list(later), lamport=lamport)
    channel.clock(SETTLED)
    return channel.totals.gaps_opened


@pytest.mark.parametrize(
    ("later", "opened"),
    [(["x", "y"], 2), (["w", "x", "y"], 2), (["y"], 0)],
    ids=["as long", "longer", "shorter"],
)
def test_last_entries_of_a_later_history_follow_the_head_of_the_earlier_one(
    channel: Channel, later: list[str], opened: int
) -> None:
    """A log of messages only grows: so many entries lie at or after its head."""
    assert named_later(channel, *later) == opened


def test_history_that_is_not_later_proves_nothing(channel: Channel) -> None:
    """The Lamport timestamp must be greater."""
    assert named_later(channel, "x", "y", lamport=1_000) == 0


def test_history_of_another_participant_proves_nothing(channel: Channel) -> None:
    """Each has its own log."""
    channel.sync("bob", at=61_000, history=["anchor", "anchor"])
    channel.sync("carol", at=NAMED, history=["x", "y"], lamport=2_000)
    channel.clock(SETTLED)
    assert channel.totals.gaps_opened == 0


def test_participant_that_began_anew_has_no_earlier_history(channel: Channel) -> None:
    """Its filter shows that it lost its state, and with it its log."""
    channel.sync("bob", at=61_000, history=["anchor"], holds=["a", "b"])
    channel.sync("bob", at=NAMED, history=["x"], holds=["c"], lamport=1_001)
    channel.clock(SETTLED)
    assert channel.totals.gaps_opened == 0


def test_rebroadcast_with_an_old_history_proves_nothing(channel: Channel) -> None:
    """Only first copies have the history of their time."""
    channel.content("old", "bob", at=61_000, history=["x", "y"], lamport=1_001)
    channel.sync("bob", at=62_000, history=["anchor"], lamport=1_002)
    channel.content("old", "bob", at=NAMED, history=["x", "y"], lamport=1_001)
    channel.clock(SETTLED)
    assert channel.totals.gaps_opened == 0


def test_head_that_is_a_gap_was_sent_after_the_start(channel: Channel) -> None:
    """Although no tap has shown it; and so is what stands behind it."""
    channel.sync("bob", at=61_000, history=["anchor", "x"], lamport=1_000)
    channel.sync("bob", at=62_000, history=["x", "y"], lamport=1_001)
    channel.sync("bob", at=63_000, history=["y", "z"], lamport=1_002)
    channel.sync("carol", at=NAMED, history=["z", "last"], lamport=1_003)
    channel.clock(SETTLED)
    assert channel.totals.gaps_opened == 4


def test_head_of_before_the_start_proves_nothing(channel: Channel) -> None:
    """The messages after it may be from before the start too."""
    channel.sync("bob", at=61_000, history=["unknown"], lamport=1_000)
    channel.sync("bob", at=NAMED, history=["x"], lamport=1_001)
    channel.clock(SETTLED)
    assert channel.totals.gaps_opened == 0


def test_heads_of_histories_are_followed_for_a_limited_number() -> None:
    """As filters are."""
    channel = Channel.after_warm_up(ObserverSettings(followed=1))
    channel.content("anchor", "anna", at=60_000, lamport=START_LAMPORT + 1)
    assert named_later(channel, "x", "y") == 0


# Histories of nim-sds are in the order of delivery.


def late_start(held: list[str], dialect: Dialect) -> Channel:
    """A channel whose first record comes from a participant that holds some ids."""
    channel = Channel(dialect=dialect)
    channel.sync("sue", at=0, lamport=START_LAMPORT, holds=held)
    channel.content("anchor", "anna", at=60_000, lamport=START_LAMPORT + 1)
    channel.sync("bob", at=NAMED, lamport=200, history=["anchor", "x"])
    channel.clock(SETTLED)
    return channel


def test_id_that_a_filter_of_the_warm_up_holds_opens_no_gap() -> None:
    """It was sent before the start, and delivered to bob after `anchor`."""
    assert late_start(["x"], Dialect.NIM).totals.gaps_opened == 0


def test_id_that_no_filter_of_the_warm_up_holds_opens_a_gap() -> None:
    """What was sent afterwards is in none of them."""
    assert late_start(["y"], Dialect.NIM).totals.gaps_opened == 1


def test_filters_of_the_warm_up_do_not_matter_where_histories_have_an_order() -> None:
    """In the specification they are in the order of Lamport timestamps."""
    assert late_start(["x"], Dialect.SPEC).totals.gaps_opened == 1


def test_filter_that_holds_anything_hides_no_gap() -> None:
    """A stranger may send one; it is left out, and counted."""
    channel = Channel(dialect=Dialect.NIM)
    full = bloom(dialect=Dialect.NIM, bits_set=100_000)
    channel.sync("eve", at=0, lamport=START_LAMPORT, filter_=full)
    channel.content("anchor", "anna", at=60_000, lamport=START_LAMPORT + 1)
    channel.sync("bob", at=NAMED, lamport=200, history=["anchor", "x"])
    channel.clock(SETTLED)
    assert channel.totals.gaps_opened == 1
    assert channel.totals.left_out == {LeftOut.START_FILTER: 1}
