"""Duplicates, replicas, rebroadcasts and collisions (docs/figures.md, 2)."""

from __future__ import annotations

import pytest

from sds_core.observer.settings import ObserverSettings
from sds_core.wire import Dialect
from tests.support.channel import Channel
from tests.support.frames import START_MS

HORIZON_MS = 3_600_000


@pytest.fixture
def channel() -> Channel:
    """A channel that has warmed up, at 60 s."""
    return Channel.after_warm_up()


# Duplicates.


def test_duplicate_changes_only_the_clock(channel: Channel) -> None:
    """Kafka delivered one record twice."""
    channel.content("a", "alice", at=60_000)
    frame = channel.frames.content("m", "bob", history=["a"], requests=["r"])
    channel.take(frame, at=61_000, observer="tap", seq=7)
    channel.take(frame, at=61_000, observer="tap", seq=7)
    before = channel.totals.frames.copy(), channel.totals.repair_requests
    channel.take(frame, at=61_000, observer="tap", seq=7)
    totals = channel.totals
    assert (totals.frames, totals.repair_requests) == before
    assert (totals.replicas, totals.rebroadcasts_retry) == (0, 0)
    assert totals.frames["content.spec"] == 2
    assert totals.messages == 2


def test_duplicate_is_recognised_by_observer_and_seq(
    channel: Channel,
) -> None:
    """Another frame with a known tap and sequence number is a duplicate too."""
    channel.content("m", "alice", at=60_000, observer="tap", seq=7)
    channel.content("n", "alice", at=90_000, observer="tap", seq=7)
    assert channel.totals.messages == 1
    assert channel.totals.last_event_ms == START_MS + 60_000


@pytest.mark.parametrize(
    ("observer", "seq"), [("tap", 8), ("other", 7), ("", 7), ("tap", -1)]
)
def test_other_or_missing_numbers_make_no_duplicate(
    channel: Channel, observer: str, seq: int
) -> None:
    """Tap and sequence number must both be present and equal."""
    channel.content("m", "alice", at=60_000, observer="tap", seq=7)
    channel.content("n", "alice", at=61_000, observer=observer, seq=seq)
    assert channel.totals.messages == 2


@pytest.mark.parametrize("numbers", [("", 7), ("tap", -1)])
def test_records_without_numbers_are_never_duplicates(
    channel: Channel, numbers: tuple[str, int]
) -> None:
    """A missing header is not a repeated number."""
    observer, seq = numbers
    channel.content("m", "alice", at=60_000, observer=observer, seq=seq)
    channel.content("n", "alice", at=61_000, observer=observer, seq=seq)
    assert channel.totals.messages == 2


@pytest.mark.parametrize(("later_ms", "messages"), [(0, 1), (1, 2)])
def test_numbers_are_remembered_for_the_horizon(
    channel: Channel, later_ms: int, messages: int
) -> None:
    """A sequence number that returns after more than 3600 s counts as new."""
    channel.content("m", "alice", at=60_000, observer="tap", seq=7)
    at = 60_000 + HORIZON_MS + later_ms
    channel.content("n", "alice", at=at, observer="tap", seq=7)
    assert channel.totals.messages == messages


def test_taps_that_saw_the_channel_are_named(channel: Channel) -> None:
    """Sorted by id, with or without numbers; forgotten after the horizon."""
    channel.content("m", "alice", at=60_000, observer="west", seq=1)
    channel.content("n", "alice", at=61_000, observer="east")
    channel.clock(60_000 + HORIZON_MS)
    assert channel.totals.observers == ["east", "west"]
    channel.clock(60_001 + HORIZON_MS)
    assert channel.totals.observers == ["east"]


# Replicas.


def test_same_hash_is_a_replica(channel: Channel) -> None:
    """Another copy of one broadcast changes only the count of replicas."""
    frame = channel.content("m", "alice", at=60_000, waku_hash="1", requests=["r"])
    channel.take(frame, at=61_000, waku_hash="1")
    totals = channel.totals
    assert totals.replicas == 1
    assert totals.frames["content.spec"] == 1
    assert (totals.repair_requests, totals.rebroadcasts_retry) == (1, 0)


def test_same_hash_is_a_replica_long_after(channel: Channel) -> None:
    """A hash identifies copies for the whole horizon, as a Store sweep needs."""
    frame = channel.content("m", "alice", at=60_000, waku_hash="1")
    channel.take(frame, at=60_000 + HORIZON_MS, waku_hash="1")
    assert channel.totals.replicas == 1


def test_replica_renews_the_memory_of_its_hash(channel: Channel) -> None:
    """A hash that was seen recently is not forgotten."""
    frame = channel.content("m", "alice", at=60_000, waku_hash="1")
    channel.take(frame, at=2_060_000, waku_hash="1")
    channel.take(frame, at=4_060_000, waku_hash="1")
    assert channel.totals.replicas == 2


@pytest.mark.parametrize(
    ("first", "second"), [("", ""), ("1", ""), ("", "1")], ids=["none", "1st", "2nd"]
)
@pytest.mark.parametrize(
    ("later_ms", "replicas"), [(2_000, 1), (2_001, 0), (-2_000, 1), (-2_001, 0)]
)
def test_identical_bytes_within_two_seconds_are_a_replica_without_both_hashes(
    channel: Channel, first: str, second: str, later_ms: int, replicas: int
) -> None:
    """In both directions, because a second tap may be behind the clock."""
    frame = channel.content("m", "alice", at=70_000, waku_hash=first)
    channel.take(frame, at=70_000 + later_ms, waku_hash=second)
    totals = channel.totals
    assert (totals.replicas, totals.rebroadcasts_retry) == (replicas, 1 - replicas)


def test_identical_bytes_under_two_hashes_are_a_rebroadcast(channel: Channel) -> None:
    """If both copies have a hash, the hash decides, whatever their times."""
    frame = channel.content("m", "alice", at=60_000, waku_hash="1")
    channel.take(frame, at=60_000, waku_hash="2")
    assert (channel.totals.replicas, channel.totals.rebroadcasts_retry) == (0, 1)


def test_other_bytes_within_two_seconds_are_a_rebroadcast(channel: Channel) -> None:
    """Without hashes only identical bytes are a replica."""
    channel.content("m", "alice", at=60_000, history=["a"])
    channel.content("m", "alice", at=60_001, history=["b"])
    assert (channel.totals.replicas, channel.totals.rebroadcasts_retry) == (0, 1)


def test_hash_of_a_replica_is_remembered(channel: Channel) -> None:
    """The hash of a copy that matched by its bytes identifies later copies."""
    frame = channel.content("m", "alice", at=60_000)
    channel.take(frame, at=61_000, waku_hash="1")
    channel.take(frame, at=90_000, waku_hash="1")
    assert channel.totals.replicas == 2


def test_hash_of_a_replica_identifies_the_next_broadcast(channel: Channel) -> None:
    """The broadcast then has a hash, so another hash is another broadcast."""
    frame = channel.content("m", "alice", at=60_000)
    channel.take(frame, at=60_500, waku_hash="1")
    channel.take(frame, at=61_000, waku_hash="2")
    assert (channel.totals.replicas, channel.totals.rebroadcasts_retry) == (1, 1)


def test_replica_is_compared_with_the_latest_broadcast(channel: Channel) -> None:
    """Bytes sent again and seen twice are a rebroadcast and its replica."""
    frame = channel.content("m", "alice", at=60_000)
    channel.take(frame, at=70_000)
    channel.take(frame, at=71_000)
    assert (channel.totals.replicas, channel.totals.rebroadcasts_retry) == (1, 1)


def test_replica_moves_first_and_last_event(
    channel: Channel,
) -> None:
    """Event times are those of all records except duplicates."""
    frame = channel.content("m", "alice", at=60_000, waku_hash="1")
    channel.take(frame, at=99_000, waku_hash="1")
    assert channel.totals.first_event_ms == START_MS
    assert channel.totals.last_event_ms == START_MS + 99_000


# First copies and frames.


def test_frames_are_counted_by_kind_and_dialect() -> None:
    """Rebroadcasts count; replicas and duplicates do not."""
    channel = Channel()
    frame = channel.content("m", "alice", at=0, waku_hash="1")
    channel.take(frame, at=0, waku_hash="1")
    channel.take(frame, at=0, waku_hash="2")
    channel.sync("alice", at=0)
    channel.ephemeral("alice", at=0)
    channel.sync("nia", at=0, dialect=Dialect.NIM)
    assert channel.totals.frames == {
        "content.spec": 2,
        "sync.spec": 1,
        "ephemeral.spec": 1,
        "sync.nim": 1,
    }
    assert channel.totals.frames_sync == 2
    assert channel.totals.messages == 1


def test_sync_ids_may_repeat(channel: Channel) -> None:
    """A sync frame is neither a rebroadcast nor a collision."""
    channel.sync("alice", at=60_000, message_id="s", history=["a"])
    channel.sync("bob", at=61_000, message_id="s", history=["b"], lamport=7)
    totals = channel.totals
    assert (totals.rebroadcasts_retry, totals.message_id_collisions) == (0, 0)
    assert totals.frames["sync.spec"] == 3
    assert totals.participants == 2


def test_participants_are_distinct_senders_of_first_copies(channel: Channel) -> None:
    """Named and unknown senders do not count."""
    channel.content("m", "alice", at=60_000, history=[("x", "zoe")])
    channel.sync("alice", at=61_000)
    channel.sync("bob", at=62_000)
    channel.sync("", at=63_000)
    assert channel.totals.participants == 2


def test_late_record_widens_the_window_of_events(channel: Channel) -> None:
    """By its own time, not by the clock."""
    channel.content("m", "alice", at=-5_000)
    assert channel.totals.first_event_ms == START_MS - 5_000


# Rebroadcasts and their causes.


@pytest.mark.parametrize(
    ("dialect", "window_ms"), [(Dialect.SPEC, 135_000), (Dialect.NIM, 315_000)]
)
@pytest.mark.parametrize(("later_ms", "cause"), [(0, "repair"), (1, "retry")])
def test_cause_is_repair_while_the_latest_request_is_in_its_window(
    dialect: Dialect, window_ms: int, later_ms: int, cause: str
) -> None:
    """135 s for the specification, 315 s for nim; a millisecond later a retry."""
    channel = Channel.after_warm_up(dialect=dialect)
    frame = channel.content("m", "alice", at=60_000, waku_hash="1")
    channel.sync("bob", at=70_000, requests=["m"])
    channel.take(frame, at=70_000 + window_ms + later_ms, waku_hash="2")
    totals = channel.totals
    assert getattr(totals, f"rebroadcasts_{cause}") == 1
    assert totals.rebroadcasts_repair + totals.rebroadcasts_retry == 1


def test_rebroadcast_without_any_request_is_a_retry(channel: Channel) -> None:
    """Without a request, the sender retries."""
    frame = channel.content("m", "alice", at=60_000, waku_hash="1")
    channel.sync("bob", at=61_000, requests=["other"])
    channel.take(frame, at=62_000, waku_hash="2")
    assert channel.totals.rebroadcasts_retry == 1


def test_request_after_the_rebroadcast_does_not_cause_it(channel: Channel) -> None:
    """Only requests earlier in the topic count, whatever their time."""
    frame = channel.content("m", "alice", at=60_000, waku_hash="1")
    channel.take(frame, at=62_000, waku_hash="2")
    channel.sync("bob", at=61_000, requests=["m"])
    assert channel.totals.rebroadcasts_retry == 1


def test_latest_request_counts_not_the_first(channel: Channel) -> None:
    """A new request restarts the window."""
    frame = channel.content("m", "alice", at=60_000, waku_hash="1")
    channel.sync("bob", at=61_000, requests=["m"])
    channel.sync("carol", at=190_000, requests=["m"])
    channel.take(frame, at=325_000, waku_hash="2")
    assert channel.totals.rebroadcasts_repair == 1


def test_rebroadcast_in_other_bytes_is_one(channel: Channel) -> None:
    """Only the id decides."""
    channel.content("m", "alice", at=60_000, waku_hash="1", holds=["a"])
    channel.content("m", "alice", at=70_000, waku_hash="2", holds=["a", "b"])
    assert channel.totals.rebroadcasts_retry == 1


@pytest.mark.parametrize("later_ms", [0, 1])
def test_frame_of_a_message_older_than_the_horizon_shows_no_others(
    channel: Channel, later_ms: int
) -> None:
    """Its history and filter are ignored; its requests and itself count."""
    channel.content("b", "", at=60_000, waku_hash="1")
    channel.content("b", "", at=3_000_000, waku_hash="2")
    at = 60_000 + HORIZON_MS
    channel.content("m", "alice", at=at - 1_000)
    channel.content(
        "b", "", at=at + later_ms, waku_hash="3", history=["m"], requests=["z"]
    )
    channel.content(
        "b", "bob", at=at + later_ms, waku_hash="4", history=["m"], holds=["m"]
    )
    totals = channel.totals
    assert totals.frames["content.spec"] == 5
    assert totals.rebroadcasts_retry == 2
    assert totals.message_id_collisions == 1
    assert totals.repair_requests == 1
    assert totals.acknowledged_definite == 1 - later_ms
    assert totals.acknowledged_probable == 0


# Collisions.


@pytest.mark.parametrize(("sender", "lamport"), [("bob", 1_000), ("alice", 1_001)])
def test_known_id_with_another_sender_or_lamport_is_a_collision(
    channel: Channel, sender: str, lamport: int
) -> None:
    """It is no rebroadcast, answers no request and does not change t0."""
    channel.content("m", "alice", at=60_000, lamport=1_000)
    channel.sync("carol", at=61_000, requests=["m"])
    channel.content("m", sender, at=62_000, lamport=lamport)
    totals = channel.totals
    assert totals.message_id_collisions == 1
    assert (totals.rebroadcasts_repair, totals.rebroadcasts_retry) == (0, 0)
    assert totals.repair_responses == 0
    assert totals.messages == 1
    assert totals.frames["content.spec"] == 2
    channel.sync("carol", at=63_000, history=["m"])
    assert totals.definite_latency.sum_ms == 3_000


def test_collision_does_not_replace_the_known_message(channel: Channel) -> None:
    """Later copies are compared with the first copy."""
    channel.content("m", "alice", at=60_000, lamport=1_000)
    channel.content("m", "bob", at=61_000, lamport=1_000)
    channel.content("m", "alice", at=62_000, lamport=1_000, history=["a"])
    assert channel.totals.message_id_collisions == 1
    assert channel.totals.rebroadcasts_retry == 1


# Limits of memory.


def test_oldest_message_is_evicted_and_counted() -> None:
    """Beyond the limit the oldest is forgotten; in flight it ends unwitnessed."""
    channel = Channel(ObserverSettings(remembered=2))
    for number in range(4):
        # The frames' own bytes are remembered too, and evicted as well.
        channel.content(f"m{number}", "alice", at=number, lamport=number)
    assert channel.totals.in_flight == 2
    assert channel.totals.unwitnessed == 2
    assert channel.totals.remembered_evicted == 4
    channel.content("m3", "alice", at=100, lamport=3, history=["m3"])
    assert channel.totals.rebroadcasts_retry == 1
    channel.content("m0", "alice", at=200, lamport=0, history=["m0"])
    assert channel.totals.messages == 5


def test_nothing_is_evicted_within_the_limit() -> None:
    """Exactly the limit fits."""
    channel = Channel(ObserverSettings(remembered=3))
    for number in range(3):
        channel.content(f"m{number}", "alice", at=number, lamport=number)
    assert channel.totals.remembered_evicted == 0
    assert channel.totals.in_flight == 3


def test_oldest_numbers_and_hashes_are_evicted_and_counted() -> None:
    """Each memory has its own limit."""
    channel = Channel(ObserverSettings(remembered=2))
    for seq in (1, 2, 3):
        frame = channel.frames.sync("alice")
        channel.take(frame, at=seq, observer="tap", seq=seq, waku_hash=str(seq))
    # One number, one hash and one frame.
    assert channel.totals.remembered_evicted == 3
    channel.take(channel.frames.sync("bob"), at=5, observer="tap", seq=3)
    assert channel.totals.frames["sync.spec"] == 3
    channel.take(channel.frames.sync("bob"), at=6, observer="tap", seq=1)
    assert channel.totals.frames["sync.spec"] == 4


def test_record_of_before_the_horizon_counts_as_a_frame_only() -> None:
    """Earlier frames may be forgotten; at the horizon the record still counts."""
    channel = Channel()
    channel.content("new", "alice", at=4_000_000, lamport=2)
    channel.content("at it", "alice", at=400_000, lamport=1, history=["x"])
    assert (channel.totals.messages, channel.totals.frames_content) == (2, 2)
    channel.content("older", "bob", at=399_999, lamport=1, requests=["y"])
    assert (channel.totals.messages, channel.totals.frames_content) == (2, 3)
    assert (channel.totals.participants, channel.totals.repair_requests) == (1, 0)
    assert channel.totals.bytes_repair > 0
