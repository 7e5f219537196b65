"""Deliveries in the truth (docs/figures.md, 5)."""

from __future__ import annotations

from typing import Any

import pytest

from sds_core.message_channel.events import Cause
from sds_core.message_channel.profile import Profile
from sds_core.wire import Dialect, Frame
from tests.support.simulation.simulated import START_MS, Simulated

T = 4_000_000
"""When the message `m` is sent, with lamport timestamp 10."""

EPHEMERAL = Frame.build(
    Dialect.SPEC,
    message_id="e",
    channel_id="channel",
    sender_id="ben",
    bloom_filter=b"filter",
    content=b"text",
)

ROLLING = Profile(bloom_rollover_ids=3, bloom_kept_ids=1)


def with_message(by: str = "ana", lamport: int = 10) -> Simulated:
    """Ben has spoken, and then ana sends `m`."""
    it = Simulated()
    it.sync("ben", at=T - 1_000, lamport=1)
    it.content("m", by, at=T, lamport=lamport)
    return it


def lack(it: Simulated, at: int) -> None:
    """Ben lacks what he lacks for more than 300 s, in which he is never silent long."""
    for number, later in enumerate((0, 150_000, 300_001)):
        it.sync("ben", at=at + later, lamport=11 + number)


def outcome_of(it: Simulated, participant: str = "ben") -> str | None:
    """What became of the delivery of `m`; None if none was expected."""
    delivery = it.message("m")["deliveries"].get(participant)
    return None if delivery is None else delivery["outcome"]


def test_filter_that_holds_a_message_shows_its_delivery() -> None:
    """At the first frame, with any time or Lamport timestamp."""
    it = with_message()
    it.receive("ben", "m", at=T + 100)
    it.sync("ben", at=T + 200, lamport=2)
    assert it.deliveries() == {"first_pass": 1}


def test_history_that_names_a_message_shows_its_delivery() -> None:
    """Also in a frame without a filter, or of the other dialect."""
    for of_frame in ({"has_filter": False}, {"dialect": Dialect.NIM}):
        it = with_message()
        it.sync("ben", at=T + 200, lamport=2, history=["m"], **of_frame)
        assert it.deliveries() == {"first_pass": 1}


def test_delivery_ends_at_the_first_frame_that_shows_it() -> None:
    """Later frames change nothing."""
    it = with_message()
    it.sync("ben", at=T + 200, lamport=11, history=["m"])
    it.sync("ben", at=T + 400_000, lamport=12)
    it.sync("ben", at=T + 500_000, lamport=13, history=["m"])
    assert it.deliveries() == {"first_pass": 1}


def test_delivery_shown_missing_first_is_recovered() -> None:
    """Its time runs from the first frame that shows it missing."""
    it = with_message()
    it.sync("ben", at=T + 10_000, lamport=11)
    it.sync("ben", at=T + 20_000, lamport=12)
    it.receive("ben", "m", at=T + 30_000)
    it.sync("ben", at=T + 40_000, lamport=13)
    assert it.deliveries() == {"recovered": 1}
    assert it.figures("delivery_recovery_ms") == {"count": 1, "sum": 30_000}


def test_recovery_time_is_not_negative() -> None:
    """Another tap's clock may be behind."""
    it = with_message()
    it.sync("ben", at=T + 10_000, lamport=11)
    late = it.sync("ben", at=T + 11_000, lamport=12, history=["m"], seen=False)
    it.sight(late, at=T + 9_000, tap="behind")
    assert it.deliveries() == {"recovered": 1}
    assert it.figures("delivery_recovery_ms") == {"count": 1, "sum": 0}


@pytest.mark.parametrize(
    ("lag", "outcome"), [(5_000, "first_pass"), (5_001, "recovered")]
)
def test_frame_within_the_grace_shows_nothing_missing(lag: int, outcome: str) -> None:
    """The message may have been in transit."""
    it = with_message()
    it.sync("ben", at=T + lag, lamport=11)
    it.sync("ben", at=T + 20_000, lamport=12, history=["m"])
    assert it.deliveries() == {outcome: 1}


@pytest.mark.parametrize(
    "of_frame",
    [
        {"lamport": 10},
        {"lamport": 9},
        {"lamport": 11, "dialect": Dialect.NIM},
        {"lamport": 11, "has_filter": False},
    ],
    ids=["same lamport", "earlier lamport", "other dialect", "no filter"],
)
def test_frame_that_need_not_know_the_message_shows_nothing_missing(
    of_frame: dict[str, Any],
) -> None:
    """At any time."""
    it = with_message()
    it.sync("ben", at=T + 400_000, **of_frame)
    assert it.message("m")["deliveries"]["ben"]["lacking"] is None
    lack(it, T + 400_001)
    assert outcome_of(it) == "lost"


def test_ephemeral_frame_shows_nothing_missing() -> None:
    """It has no Lamport timestamp, even if it has a filter."""
    it = with_message(lamport=0)
    it.transmit(EPHEMERAL, "ben", T + 10_000, Cause.EPHEMERAL)
    assert outcome_of(it) == "open"


def test_rebroadcast_and_collision_show_nothing() -> None:
    """Neither a delivery nor a miss."""
    it = Simulated()
    old = it.content("n", "ben", at=T - 1_000, lamport=11)
    it.content("m", "ana", at=T, lamport=10)
    it.again(old, at=T + 10_000)
    it.content("n", "ben", at=T + 20_000, lamport=12)
    it.content("n", "ben", at=T + 30_000, lamport=13, history=["m"])
    assert outcome_of(it) == "open"


def test_rebroadcast_seen_first_has_an_old_filter() -> None:
    """Its Lamport timestamp mostly shows it; otherwise the claim is wrong."""
    for lamport, outcome in ((9, "first_pass"), (11, "recovered")):
        it = with_message()
        late = it.content("n", "ben", at=T + 50, lamport=lamport, seen=False)
        it.receive("ben", "m", at=T + 100)
        it.again(late, at=T + 30_000)
        it.sync("ben", at=T + 40_000, lamport=12)
        assert it.deliveries()[outcome] == 1
        lacking = it.message("m")["deliveries"]["ben"]["lacking"]
        assert lacking == (
            None
            if outcome == "first_pass"
            else {"composed_ms": START_MS + T + 50, "seen_ms": START_MS + T + 30_000}
        )


def test_message_is_lost_at_a_frame_not_by_a_timer() -> None:
    """At the first frame without it more than 300 s after the first such frame."""
    it = with_message()
    it.sync("ben", at=T + 10_000, lamport=11)
    it.sync("ben", at=T + 160_000, lamport=12)
    it.sync("ben", at=T + 310_000, lamport=13)
    it.heartbeat(at=T + 3_000_000)
    assert it.deliveries() == {}
    assert outcome_of(it) == "open"


@pytest.mark.parametrize(
    ("times", "outcome"),
    [
        ((1_000_000, 1_100_000), "open"),
        ((1_000_000, 1_150_000, 1_300_001), "lost"),
        ((10_000, 1_000_000, 1_300_000), "open"),
        ((10_000, 1_000_000, 1_300_000, 1_300_001), "lost"),
        ((10_000, 310_001), "open"),
        ((10_000, 310_001, 610_002), "lost"),
    ],
    ids=[
        "just back",
        "back for long",
        "shown before it left",
        "shown before it left, and back for long",
        "back once",
        "back twice",
    ],
)
def test_participant_that_comes_back_has_the_deadline_anew(
    times: tuple[int, ...], outcome: str
) -> None:
    """But only once: one that speaks seldom is not always just back."""
    it = with_message()
    for number, at in enumerate(times):
        it.sync("ben", at=T + at, lamport=11 + number)
    assert outcome_of(it) == outcome


def test_lost_message_that_arrives_is_retracted_once() -> None:
    """It does not count as recovered, and `lost` stays."""
    it = with_message()
    lack(it, T + 10_000)
    assert it.deliveries() == {"lost": 1}
    it.sync("ben", at=T + 400_000, lamport=14)
    assert it.deliveries() == {"lost": 1}
    it.sync("ben", at=T + 500_000, lamport=15, history=["m"])
    it.sync("ben", at=T + 600_000, lamport=16, history=["m"])
    assert it.deliveries() == {"lost": 1, "retracted": 1}
    assert it.figures("delivery_recovery_ms") == {"count": 0, "sum": 0}


def test_frames_after_the_horizon_do_not_count() -> None:
    """One exactly at the horizon does."""
    it = with_message()
    lack(it, T + 3_300_000)
    assert outcome_of(it) == "open"
    it = with_message()
    lack(it, T + 3_299_999)
    it.sync("ben", at=T + 3_600_001, lamport=14, history=["m"])
    assert outcome_of(it) == "lost"


@pytest.mark.parametrize(
    ("last_spoke", "is_active"),
    [
        (T - 3_600_001, False),
        (T - 3_600_000, True),
        (T - 1, True),
        (T, False),
    ],
)
def test_delivery_is_expected_to_recently_active_participants(
    last_spoke: int, is_active: bool
) -> None:
    """To the millisecond of the record, also for late records."""
    it = Simulated()
    it.sync("ana", at=T - 3_000_000)
    it.sync("ben", at=last_spoke)
    it.content("m", "ana", at=T, lamport=10)
    it.sync("ben", at=T + 10_000, lamport=11, history=["m"])
    assert it.deliveries() == ({"first_pass": 1} if is_active else {})


def test_participant_seen_later_in_the_topic_was_not_active() -> None:
    """Whatever the record's time: another tap may be behind."""
    it = Simulated()
    it.content("m", "ana", at=T, lamport=10)
    it.sync("ben", at=T - 1_000, lamport=1)
    it.sync("ben", at=T + 10_000, lamport=11, history=["m"])
    assert outcome_of(it) is None


def test_only_first_copies_make_a_participant_active() -> None:
    """Not collisions, rebroadcasts and replicas."""
    it = Simulated()
    old = it.content("n", "ben", at=0, lamport=1)
    it.content("n", "cem", at=T - 1_000, lamport=1)
    it.again(old, at=T - 900)
    it.sight(old, at=T - 800, tap="other")
    it.ephemeral("dov", at=T - 700)
    it.content("m", "ana", at=T, lamport=10)
    assert list(it.message("m")["deliveries"]) == ["dov"]


def test_unknown_participants_have_no_deliveries() -> None:
    """Neither as sender nor as receiver."""
    it = with_message(by="")
    it.sync("ben", at=T + 10_000, lamport=11)
    assert outcome_of(it) is None
    it = Simulated()
    it.sync("", at=T - 1_000)
    it.content("m", "ana", at=T, lamport=10)
    it.sync("", at=T + 400_000, lamport=11)
    assert it.deliveries() == {}


def test_sender_is_not_expected_to_receive_its_own() -> None:
    """Although it is active."""
    it = Simulated()
    it.sync("ana", at=T - 1_000)
    it.content("m", "ana", at=T, lamport=10)
    it.sync("ana", at=T + 10_000, lamport=11, history=["m"])
    assert it.deliveries() == {}


def test_replica_shows_nothing() -> None:
    """A frame seen again is not a later frame."""
    it = with_message()
    lacking = it.sync("ben", at=T + 10_000, lamport=11)
    it.sight(lacking, at=T + 400_000, tap="other")
    assert outcome_of(it) == "open"


def test_each_participant_is_judged_by_its_own_frames() -> None:
    """Of three, one has it at once, one later and one never."""
    it = Simulated()
    for name in ("ben", "cem", "dov"):
        it.sync(name, at=T - 1_000, lamport=1)
    it.content("m", "ana", at=T, lamport=10)
    it.receive("ben", "m", at=T + 100)
    for name in ("ben", "cem", "dov"):
        it.sync(name, at=T + 10_000, lamport=11)
    it.receive("cem", "m", at=T + 20_000)
    for number, at in enumerate((160_000, 310_001)):
        for name in ("ben", "cem", "dov"):
            it.sync(name, at=T + at, lamport=12 + number)
    assert it.deliveries() == {"first_pass": 1, "recovered": 1, "lost": 1}
    assert [outcome_of(it, name) for name in ("ben", "cem", "dov")] == [
        "first_pass",
        "recovered",
        "lost",
    ]


@pytest.mark.parametrize(
    ("is_seen_before", "outcome"), [(True, "open"), (False, "lost")]
)
def test_filter_that_rolled_over_shows_nothing_older_missing(
    is_seen_before: bool, outcome: str
) -> None:
    """If a frame before shows what was in it; else nobody can know.

    An ephemeral one does not.
    """
    it = Simulated()
    it.begin_as("ben", ROLLING)
    it.receive("ben", "a", "b", at=0)
    it.transmit(EPHEMERAL, "ben", T - 2_000, Cause.EPHEMERAL)
    it.sync("ben", at=T - 1_000, lamport=1, has_filter=is_seen_before)
    it.content("m", "ana", at=T, lamport=10)
    # Received, and dropped again to make room.
    it.receive("ben", "m", "c", "d", at=T + 100)
    lack(it, T + 10_000)
    assert outcome_of(it) == outcome


@pytest.mark.parametrize(
    ("age", "outcome"),
    [(1, "first_pass"), (0, "recovered")],
    ids=["older", "as old"],
)
def test_roll_over_counts_from_the_frame_that_shows_it(age: int, outcome: str) -> None:
    """The new filter shows missing messages from then on."""
    it = Simulated()
    it.begin_as("ben", ROLLING)
    it.receive("ben", "a", "b", at=0)
    it.sync("ben", at=T - 2_000, lamport=1)
    it.content("m", "ana", at=T - age, lamport=10)
    it.receive("ben", "c", "d", at=T)
    it.sync("ben", at=T, lamport=11)
    it.sync("ben", at=T + 10_000, lamport=12)
    it.sync("ben", at=T + 20_000, lamport=13, history=["m"])
    assert it.deliveries() == {outcome: 1}


def test_filter_seen_late_shows_no_roll_over() -> None:
    """Its Lamport timestamp shows that it is older."""
    it = Simulated()
    it.begin_as("ben", ROLLING)
    it.receive("ben", "a", "b", at=0)
    old = it.content("n", "ben", at=0, lamport=5, seen=False)
    it.receive("ben", "c", "d", at=T - 3_000)
    it.sync("ben", at=T - 2_000, lamport=6)
    it.again(old, at=T - 1_000)
    it.content("m", "ana", at=T, lamport=10)
    it.sync("ben", at=T + 10_000, lamport=11)
    it.receive("ben", "m", at=T + 20_000)
    it.sync("ben", at=T + 30_000, lamport=12)
    assert it.deliveries() == {"recovered": 1}


def test_filter_that_grows_is_measured_by_the_newest() -> None:
    """A roll-over is found by comparison with the frame before it."""
    it = Simulated()
    it.begin_as("ben", ROLLING)
    it.receive("ben", "a", "b", "c", "d", at=0)
    it.sync("ben", at=T - 2_000, lamport=1)
    it.receive("ben", "e", at=T - 1_500)
    it.sync("ben", at=T - 1_000, lamport=2)
    it.content("m", "ana", at=T, lamport=10)
    lack(it, T + 10_000)
    assert outcome_of(it) == "lost"


def test_roll_over_to_a_larger_filter_is_found() -> None:
    """nim-sds grows its filter then, but it has fewer ids."""
    profile = Profile(
        dialect=Dialect.NIM,
        bloom_rollover_ids=3,
        bloom_kept_ids=1,
        bloom_rolled=Profile.nim_sds().bloom_rolled,
    )
    it = Simulated()
    it.begin_as("ben", profile)
    it.receive("ben", "a", "b", at=0)
    it.sync("ben", at=T - 1_000, lamport=1, dialect=Dialect.NIM)
    it.content("m", "ana", at=T, lamport=10, dialect=Dialect.NIM)
    it.receive("ben", "m", "c", "d", at=T + 100)
    it.sync("ben", at=T + 400_000, lamport=11, dialect=Dialect.NIM)
    assert outcome_of(it) == "open"


def test_state_that_is_lost_rolls_the_filter_over() -> None:
    """A filter that began again proves nothing about messages from before."""
    it = with_message()
    it.receive("ben", "old", at=T)
    it.sync("ben", at=T + 10_000, lamport=11)
    it.present("ben", at=T + 20_000, is_new=True)
    it.receive("ben", "new", at=T + 30_000)
    it.sync("ben", at=T + 400_000, lamport=12)
    assert outcome_of(it) == "open"


def test_state_that_is_kept_shows_the_loss() -> None:
    """The same participant without a restart."""
    it = with_message()
    it.receive("ben", "old", at=T)
    it.sync("ben", at=T + 10_000, lamport=11)
    it.present("ben", at=T + 20_000)
    it.sync("ben", at=T + 390_000, lamport=12)
    it.sync("ben", at=T + 400_000, lamport=13)
    it.sync("ben", at=T + 691_000, lamport=14)
    assert outcome_of(it) == "lost"
