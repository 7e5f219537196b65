"""Repairs in the truth (docs/figures.md, 7)."""

from __future__ import annotations

import pytest

from sds_core.message_channel.events import Cause
from sds_core.wire import Dialect
from tests.support.simulation.simulated import Simulated


def test_requests_count_once_for_each_frame_and_id() -> None:
    """Also in retries; an id twice in a frame counts once."""
    it = Simulated()
    sent = it.content("n", "ben", at=0, requests=["a", "b", "a"])
    it.again(sent, at=30_000)
    it.sync("cem", at=40_000, requests=["a"])
    assert it.repair() == {"requests": 5}


def test_replica_requests_nothing() -> None:
    """It is the same frame."""
    it = Simulated()
    sent = it.sync("ben", at=0, requests=["a"])
    it.sight(sent, at=100, tap="other")
    assert it.repair() == {"requests": 1}


def test_request_for_a_received_message_is_known_exactly() -> None:
    """Ben has the message that he requests; cem gets it only later."""
    it = Simulated()
    it.receive("ben", "a")
    it.sync("ben", at=0, requests=["a"])
    it.sync("cem", at=1_000, requests=["a"])
    it.receive("cem", "a")
    assert it.repair() == {"requests": 2, "requests_for_received": 1}


def test_first_copy_answers_and_further_ones_are_redundant() -> None:
    """The response time runs from the first request of the episode."""
    it = Simulated()
    sent = it.content("m", "ana", at=0)
    it.sync("ben", at=10_000, requests=["m"])
    it.sync("cem", at=12_000, requests=["m"])
    it.again(sent, at=17_000)
    it.again(sent, at=18_000, by="dov")
    assert it.repair() == {"requests": 2, "answered": 1, "responses": 2, "redundant": 1}
    assert it.figures("repair_response_ms") == {"count": 1, "sum": 7_000}


def test_request_after_the_answer_opens_another_episode() -> None:
    """With its own start."""
    it = Simulated()
    sent = it.content("m", "ana", at=0)
    it.sync("ben", at=10_000, requests=["m"])
    it.again(sent, at=11_000)
    it.sync("ben", at=20_000, requests=["m"])
    it.again(sent, at=25_000)
    assert it.repair() == {"requests": 2, "answered": 2, "responses": 2}
    assert it.figures("repair_response_ms") == {"count": 2, "sum": 6_000}


@pytest.mark.parametrize(
    ("dialect", "window"), [(Dialect.SPEC, 135_000), (Dialect.NIM, 315_000)]
)
def test_episode_expires_after_the_window_of_its_latest_request(
    dialect: Dialect, window: int
) -> None:
    """Not exactly at its end; a later copy is no response."""
    it = Simulated()
    it.sync("ben", at=0, requests=["m"], dialect=dialect)
    it.sync("ben", at=5_000, requests=["m"], dialect=dialect)
    it.heartbeat(at=5_000 + window)
    assert it.repair() == {"requests": 2}
    it.content("m", "ana", at=5_001 + window, dialect=dialect)
    assert it.repair() == {"requests": 2, "expired": 1}


def test_request_after_expiry_opens_another_episode() -> None:
    """The first counts as expired, the second as answered."""
    it = Simulated()
    it.sync("ben", at=0, requests=["m"])
    it.sync("ben", at=135_001, requests=["m"])
    it.content("m", "ana", at=140_001)
    assert it.repair() == {"requests": 2, "answered": 1, "expired": 1, "responses": 1}
    assert it.figures("repair_response_ms") == {"count": 1, "sum": 5_000}


def test_collision_is_no_response() -> None:
    """It is another message."""
    it = Simulated()
    it.content("m", "ana", at=0)
    it.sync("ben", at=1_000, requests=["m"])
    it.content("m", "cem", at=2_000)
    assert it.repair() == {"requests": 1}


@pytest.mark.parametrize("age", [3_600_000, 3_600_001, 30_000_000])
def test_message_of_any_age_is_requested_and_repaired(age: int) -> None:
    """A participant that was away for hours asks for what it missed."""
    it = Simulated()
    sent = it.content("m", "ana", at=0)
    it.sync("ben", at=age - 10_000, requests=["m"])
    it.again(sent, at=age, cause=Cause.REPAIR)
    it.again(sent, at=age + 1_000, cause=Cause.REPAIR)
    assert it.repair() == {"requests": 1, "answered": 1, "responses": 2, "redundant": 1}
    assert it.figures("rebroadcasts") == {"repair": 2, "retry": 0}


def test_sync_frame_that_its_library_repairs_is_a_response() -> None:
    """It stands in causal histories, and others ask for it (nim-sds)."""
    it = Simulated()
    sent = it.library_sync("s", "ana", at=0)
    it.sync("ben", at=10_000, requests=["s"])
    it.again(sent, at=12_000, by="cem", cause=Cause.REPAIR)
    assert it.repair() == {"requests": 1, "answered": 1, "responses": 1}
    assert it.figures("repair_response_ms") == {"count": 1, "sum": 2_000}
