"""Repair requests, episodes and responses (docs/figures.md, 7)."""

from __future__ import annotations

import pytest

from sds_core.observer.histogram import BUCKETS_MS
from sds_core.observer.settings import ObserverSettings
from sds_core.wire import Dialect, Frame
from tests.support.channel import Channel

ASKED = 70_000
"""When the request of most tests is seen."""

WINDOWS = [(Dialect.SPEC, 135_000), (Dialect.NIM, 315_000)]


@pytest.fixture
def channel() -> Channel:
    """A channel that has warmed up, at 60 s."""
    return Channel.after_warm_up()


@pytest.fixture
def known(channel: Channel) -> Frame:
    """The first copy of message `m`, at 60 s."""
    return channel.content("m", "alice", at=60_000, waku_hash="first")


def episodes(channel: Channel) -> dict[str, int]:
    """The figures of repair that are not zero."""
    names = ("requests", "requests_for_received", "answered", "expired", "redundant")
    found = {name: getattr(channel.totals, f"repair_{name}") for name in names}
    return {name: count for name, count in found.items() if count}


# Requests.


def test_requests_count_once_per_frame_and_id(channel: Channel) -> None:
    """Repeats within a frame do not count; each frame does."""
    channel.sync("bob", at=ASKED, requests=["x", "y", "x"])
    channel.sync("bob", at=ASKED, requests=["x"])
    assert episodes(channel) == {"requests": 3}


def test_requests_in_a_rebroadcast_count(channel: Channel) -> None:
    """Requests of every frame count, except of replicas."""
    frame = channel.content("b", "bob", at=ASKED, requests=["x"], waku_hash="1")
    channel.take(frame, at=ASKED, waku_hash="2")
    channel.take(frame, at=ASKED, waku_hash="2")
    assert episodes(channel) == {"requests": 2}


def test_request_for_what_the_own_filter_holds_is_counted_as_well(
    channel: Channel,
) -> None:
    """The request counts, although the requester has the message."""
    channel.sync("bob", at=ASKED, requests=["x", "y"], holds=["x"])
    assert episodes(channel) == {"requests": 2, "requests_for_received": 1}


def test_filter_of_another_frame_says_nothing_about_a_request(
    channel: Channel,
) -> None:
    """Only the filter of the request's own frame counts."""
    channel.sync("carol", at=ASKED, holds=["x"])
    channel.sync("bob", at=ASKED, requests=["x"])
    channel.sync("bob", at=ASKED, requests=["x"], holds=["y"])
    assert episodes(channel) == {"requests": 2}


# Answers.


@pytest.mark.parametrize(("dialect", "window_ms"), WINDOWS)
@pytest.mark.parametrize("first", [True, False], ids=["first copy", "rebroadcast"])
@pytest.mark.parametrize("late_ms", [0, 1])
def test_copy_within_the_window_answers_the_episode(
    dialect: Dialect, window_ms: int, first: bool, late_ms: int
) -> None:
    """At the window's last moment it answers; a millisecond later it expired."""
    channel = Channel.after_warm_up(dialect=dialect)
    frame = channel.frames.content("m", "alice")
    if not first:
        channel.take(frame, at=60_000, waku_hash="1")
    channel.sync("bob", at=ASKED, requests=["m"])
    channel.take(frame, at=ASKED + window_ms + late_ms, waku_hash="2")
    outcome = "expired" if late_ms else "answered"
    assert episodes(channel) == {"requests": 1, outcome: 1}


def test_response_time_runs_from_the_episodes_first_request(
    channel: Channel, known: Frame
) -> None:
    """Later requests restart the window, not the response time."""
    channel.sync("bob", at=ASKED, requests=["m"])
    channel.sync("carol", at=ASKED + 3_000, requests=["m"])
    channel.take(known, at=ASKED + 7_000, waku_hash="2")
    assert episodes(channel) == {"requests": 2, "answered": 1}
    assert channel.totals.repair_response.sum_ms == 7_000
    assert channel.totals.repair_response.counts[BUCKETS_MS.index(10_000)] == 1


def test_late_records_keep_their_own_time_for_the_response(
    channel: Channel, known: Frame
) -> None:
    """The time is in event time and never negative."""
    channel.clock(100_000)
    channel.sync("bob", at=80_000, requests=["m"])
    channel.take(known, at=82_000, waku_hash="2")
    channel.sync("bob", at=90_000, requests=["m"])
    channel.take(known, at=85_000, waku_hash="3")
    assert channel.totals.repair_answered == 2
    assert channel.totals.repair_response.sum_ms == 2_000


def test_second_response_is_redundant(channel: Channel, known: Frame) -> None:
    """The first answered and closed the episode; its window still runs."""
    channel.sync("bob", at=ASKED, requests=["m"])
    channel.take(known, at=ASKED + 1_000, waku_hash="2")
    channel.take(known, at=ASKED + 135_000, waku_hash="3")
    channel.take(known, at=ASKED + 135_001, waku_hash="4")
    assert episodes(channel) == {"requests": 1, "answered": 1, "redundant": 1}
    assert channel.totals.repair_responses == 2
    assert channel.totals.rebroadcasts_repair == 2
    assert channel.totals.rebroadcasts_retry == 1


def test_replica_of_a_response_is_no_response(channel: Channel, known: Frame) -> None:
    """A further copy of a broadcast answers nothing."""
    channel.sync("bob", at=ASKED, requests=["m"])
    channel.take(known, at=ASKED + 1_000, waku_hash="2")
    channel.take(known, at=ASKED + 1_500, waku_hash="2")
    assert episodes(channel) == {"requests": 1, "answered": 1}


def test_request_after_the_answer_opens_a_new_episode(
    channel: Channel, known: Frame
) -> None:
    """It is the first request of that episode."""
    channel.sync("bob", at=ASKED, requests=["m"])
    channel.take(known, at=ASKED + 1_000, waku_hash="2")
    channel.sync("carol", at=ASKED + 10_000, requests=["m"])
    channel.take(known, at=ASKED + 14_000, waku_hash="3")
    assert episodes(channel) == {"requests": 2, "answered": 2}
    assert channel.totals.repair_response.sum_ms == 1_000 + 4_000


def test_request_after_the_expiry_opens_a_new_episode(
    channel: Channel, known: Frame
) -> None:
    """The old episode stays expired."""
    channel.sync("bob", at=ASKED, requests=["m"])
    channel.sync("bob", at=ASKED + 135_001, requests=["m"])
    channel.take(known, at=ASKED + 140_001, waku_hash="3")
    assert episodes(channel) == {"requests": 2, "expired": 1, "answered": 1}
    assert channel.totals.repair_response.sum_ms == 5_000


def test_request_at_the_windows_end_belongs_to_the_episode(channel: Channel) -> None:
    """The episode is extended at the last moment and expires once."""
    channel.sync("bob", at=ASKED, requests=["x"])
    channel.sync("bob", at=ASKED + 135_000, requests=["x"])
    channel.clock(ASKED + 270_000)
    assert episodes(channel) == {"requests": 2}
    channel.clock(ASKED + 270_001)
    assert episodes(channel) == {"requests": 2, "expired": 1}


def test_latest_request_gives_the_window_of_its_dialect(
    channel: Channel, known: Frame
) -> None:
    """After a request in the other dialect, the episode has that window."""
    channel.sync("bob", at=ASKED, requests=["m"])
    channel.sync("nia", at=ASKED + 10_000, requests=["m"], dialect=Dialect.NIM)
    channel.clock(ASKED + 325_000)
    assert episodes(channel) == {"requests": 2}
    channel.take(known, at=ASKED + 325_000, waku_hash="2")
    assert episodes(channel) == {"requests": 2, "answered": 1}
    assert channel.totals.repair_response.sum_ms == 325_000


def test_latest_request_shortens_the_window_too(channel: Channel, known: Frame) -> None:
    """After a request in the dialect with the shorter window, it ends earlier."""
    channel.sync("nia", at=ASKED, requests=["m"], dialect=Dialect.NIM)
    channel.sync("bob", at=ASKED + 10_000, requests=["m"])
    channel.clock(ASKED + 145_000)
    assert episodes(channel) == {"requests": 2}
    channel.clock(ASKED + 145_001)
    assert episodes(channel) == {"requests": 2, "expired": 1}
    channel.take(known, at=ASKED + 145_001, waku_hash="2")
    assert channel.totals.rebroadcasts_retry == 1
    channel.clock(ASKED + 1_000_000)
    assert episodes(channel) == {"requests": 2, "expired": 1}


def test_copy_without_a_request_is_no_response(channel: Channel, known: Frame) -> None:
    """A rebroadcast without a live request is a retry."""
    channel.sync("bob", at=ASKED, requests=["other"])
    channel.take(known, at=ASKED + 1_000, waku_hash="2")
    assert episodes(channel) == {"requests": 1}


def test_each_id_has_episodes_of_its_own(channel: Channel, known: Frame) -> None:
    """An answer for one id leaves the other open."""
    channel.sync("bob", at=ASKED, requests=["m", "x"])
    channel.take(known, at=ASKED + 1_000, waku_hash="2")
    channel.clock(ASKED + 135_001)
    assert episodes(channel) == {"requests": 2, "answered": 1, "expired": 1}


# Expiry.


@pytest.mark.parametrize(("dialect", "window_ms"), WINDOWS)
def test_episode_expires_by_the_clock_alone(dialect: Dialect, window_ms: int) -> None:
    """At the window's end it is open; a millisecond later it is expired."""
    channel = Channel.after_warm_up(dialect=dialect)
    channel.sync("bob", at=ASKED, requests=["x"])
    channel.clock(ASKED + window_ms)
    assert episodes(channel) == {"requests": 1}
    channel.clock(ASKED + window_ms + 1)
    assert episodes(channel) == {"requests": 1, "expired": 1}


def test_answered_episode_does_not_expire(channel: Channel, known: Frame) -> None:
    """It is closed."""
    channel.sync("bob", at=ASKED, requests=["m"])
    channel.take(known, at=ASKED + 1_000, waku_hash="2")
    channel.clock(ASKED + 1_000_000)
    assert episodes(channel) == {"requests": 1, "answered": 1}


def test_stale_deadline_of_an_answered_episode_ends_no_other(
    channel: Channel, known: Frame
) -> None:
    """The first episode's window ends while the second still waits."""
    channel.sync("bob", at=ASKED, requests=["m"])
    channel.take(known, at=ASKED + 1_000, waku_hash="2")
    channel.sync("bob", at=ASKED + 100_000, requests=["m"])
    channel.clock(ASKED + 135_001)
    assert episodes(channel) == {"requests": 2, "answered": 1}
    channel.clock(ASKED + 235_000)
    assert episodes(channel) == {"requests": 2, "answered": 1}
    channel.clock(ASKED + 235_001)
    assert episodes(channel) == {"requests": 2, "answered": 1, "expired": 1}


def test_late_request_has_its_window_from_the_clock(
    channel: Channel, known: Frame
) -> None:
    """For the deadline its effective time is the clock."""
    channel.clock(100_000)
    channel.sync("bob", at=ASKED, requests=["m"])
    channel.clock(235_000)
    assert episodes(channel) == {"requests": 1}
    channel.take(known, at=235_000, waku_hash="2")
    assert episodes(channel) == {"requests": 1, "answered": 1}


def test_oldest_request_beyond_the_limit_expires_and_is_counted() -> None:
    """An episode that is forgotten expires; the latest request gives the age."""
    channel = Channel(ObserverSettings(remembered=2))
    channel.sync("bob", at=0, requests=["x"])
    channel.sync("bob", at=1, requests=["y"])
    channel.sync("bob", at=2, requests=["x", "z"])
    # The three frames themselves evict one of their number.
    assert channel.totals.remembered_evicted == 2
    assert episodes(channel) == {"requests": 4, "expired": 1}
    channel.clock(1_000_000)
    assert episodes(channel) == {"requests": 4, "expired": 3}
