"""Acknowledgements in the truth (docs/figures.md, 4)."""

from __future__ import annotations

import pytest

from sds_core.message_channel.profile import Profile
from sds_core.wire import Dialect
from tests.support.simulation.simulated import Simulated


def test_first_history_of_another_that_names_a_message_acknowledges_it() -> None:
    """The sender's own does not."""
    it = Simulated()
    it.content("m", "ana", at=1_000)
    it.content("n", "ana", at=2_000, history=["m"])
    it.sync("ben", at=4_500, history=["m"])
    it.sync("cem", at=5_000, history=["m", "n"])
    assert it.figures("ack_latencies") == [["m", 3_500], ["n", 3_000]]
    assert it.figures("acknowledged") == {"definite": 2, "probable": 0}
    assert it.fates() == {"acknowledged_in_time": 2}


def test_mention_before_the_first_copy_acknowledges_with_latency_0() -> None:
    """The tap saw the message late; others had it before."""
    it = Simulated()
    it.sync("ben", at=1_000, history=["m"])
    it.content("m", "ana", at=9_000)
    it.sync("cem", at=10_000, history=["m"])
    assert it.figures("ack_latencies") == [["m", 0]]


def test_latencies_are_in_order_of_first_copies() -> None:
    """Whatever the order of the acknowledgements."""
    it = Simulated()
    it.content("z", "ana", at=0)
    it.content("a", "ana", at=1_000)
    it.sync("ben", at=2_000, history=["a"])
    it.sync("ben", at=3_000, history=["z"])
    assert it.figures("ack_latencies") == [["z", 3_000], ["a", 1_000]]


def test_two_filters_make_a_probable_acknowledgement() -> None:
    """At the second, since two others are active."""
    it = Simulated()
    it.sync("ben", at=0)
    it.sync("cem", at=0)
    it.content("m", "ana", at=1_000)
    it.receive("ben", "m")
    it.receive("cem", "m")
    it.sync("ben", at=2_000)
    it.sync("ben", at=3_000)
    it.sync("cem", at=4_000)
    assert it.figures("acknowledged") == {"definite": 0, "probable": 1}
    assert it.figures("ack_latency_ms") == {"probable": {"count": 1, "sum": 3_000}}
    assert it.fates() == {"acknowledged_in_time": 1}


def test_one_filter_suffices_where_one_other_is_active() -> None:
    """Others who spoke only at the time of the message or later do not count."""
    it = Simulated()
    it.sync("ben", at=0)
    it.sync("cem", at=1_000)
    it.content("m", "ana", at=1_000)
    it.receive("ben", "m")
    it.sync("ben", at=2_000)
    assert it.figures("ack_latency_ms")["probable"] == {"count": 1, "sum": 1_000}


def test_participant_silent_for_the_horizon_is_not_active() -> None:
    """Cem sent an hour ago, so ben's filter is enough."""
    it = Simulated()
    it.sync("cem", at=0)
    it.sync("ben", at=3_000_000)
    it.content("m", "ana", at=3_600_001)
    it.receive("ben", "m")
    it.sync("ben", at=3_601_001)
    assert it.figures("acknowledged")["probable"] == 1


def test_filter_holds_what_was_received_when_the_frame_was_composed() -> None:
    """A retry carries the old filter; what comes in later is not in it."""
    it = Simulated()
    it.content("m", "ana", at=0)
    old = it.content("n", "ben", at=1_000)
    it.receive("ben", "m")
    it.again(old, at=2_000)
    assert it.figures("acknowledged")["probable"] == 0
    it.sync("ben", at=3_000)
    assert it.figures("ack_latency_ms")["probable"] == {"count": 1, "sum": 3_000}


def test_frame_without_a_filter_shows_nothing() -> None:
    """Whatever its sender has received."""
    it = Simulated()
    it.content("m", "ana", at=0)
    it.receive("ben", "m")
    it.sync("ben", at=1_000, has_filter=False)
    assert it.figures("acknowledged")["probable"] == 0


def test_filter_that_rolled_over_no_longer_holds_the_oldest() -> None:
    """A full filter is rebuilt from the newest ids."""
    profile = Profile(bloom_rollover_ids=3, bloom_kept_ids=1)
    it = Simulated()
    it.content("m", "ana", at=0)
    it.receive("ben", "m", "b", "c", "d")
    it.sync("ben", at=1_000)
    assert it.figures("acknowledged")["probable"] == 1
    it.begin_as("ben", profile)
    assert it.figures("acknowledged")["probable"] == 0


def test_full_filter_does_not_suffice_alone() -> None:
    """5,000 ids give a rate of 3e-6, above 1e-6; two such filters suffice."""
    it = Simulated()
    it.content("m", "ana", at=0)
    filling = [f"id-{number}" for number in range(5_000)]
    for participant in ("ben", "cem"):
        it.receive(participant, "m", *filling)
    it.sync("ben", at=1_000)
    assert it.figures("acknowledged")["probable"] == 0
    it.sync("cem", at=2_000)
    assert it.figures("ack_latency_ms")["probable"] == {"count": 1, "sum": 2_000}


def test_history_comes_before_the_filter_of_one_frame() -> None:
    """A definite acknowledgement does not become probable."""
    it = Simulated()
    it.content("m", "ana", at=0)
    it.receive("ben", "m")
    it.sync("ben", at=1_000, history=["m"])
    assert it.figures("acknowledged") == {"definite": 1, "probable": 0}


def test_probable_that_becomes_definite_counts_in_both() -> None:
    """The first of them decides whether it is in time."""
    it = Simulated()
    it.content("m", "ana", at=0)
    it.receive("ben", "m")
    it.sync("ben", at=120_000)
    it.sync("cem", at=130_000, history=["m"])
    assert it.figures("acknowledged") == {"definite": 1, "probable": 1}
    assert it.figures("ack_latencies") == [["m", 130_000]]
    assert it.fates() == {"acknowledged_in_time": 1}


def test_acknowledgement_after_the_deadline_leaves_the_message_unacknowledged() -> None:
    """It counts with its latency."""
    it = Simulated()
    it.content("m", "ana", at=0, lamport=10)
    it.sync("ben", at=120_000, lamport=11)
    it.sync("ben", at=120_001, lamport=12, history=["m"])
    assert it.fates() == {"unacknowledged": 1}
    assert it.figures("ack_latencies") == [["m", 120_001]]


def test_acknowledgement_at_the_deadline_is_in_time() -> None:
    """A deadline fires once the clock is past it."""
    it = Simulated()
    it.content("m", "ana", at=0)
    it.sync("ben", at=120_000, history=["m"])
    it.heartbeat(at=500_000)
    assert it.fates() == {"acknowledged_in_time": 1}


@pytest.mark.parametrize(
    ("end", "fates"), [(120_000, {"in_flight": 1}), (120_001, {"unwitnessed": 1})]
)
def test_message_is_in_flight_until_the_clock_passes_its_deadline(
    end: int, fates: dict[str, int]
) -> None:
    """A heartbeat moves the clock."""
    it = Simulated()
    it.content("m", "ana", at=0)
    it.heartbeat(at=end)
    assert it.fates() == fates


@pytest.mark.parametrize(
    "of_frame",
    [
        {"by": "ana", "at": 1_000, "lamport": 11},
        {"by": "ben", "at": 0, "lamport": 11},
        {"by": "ben", "at": 120_001, "lamport": 11},
        {"by": "ben", "at": 1_000, "lamport": 10},
        {"by": "ben", "at": 1_000, "lamport": 11, "dialect": Dialect.NIM},
        {"by": "", "at": 1_000, "lamport": 11},
    ],
    ids=["own", "same time", "too late", "no later lamport", "dialect", "unknown"],
)
def test_frame_that_is_no_opportunity_leaves_the_message_unwitnessed(
    of_frame: dict[str, object],
) -> None:
    """An opportunity is by another, later, greater in Lamport, same dialect."""
    it = Simulated()
    it.content("m", "ana", at=0, lamport=10)
    it.sync(**of_frame)  # type: ignore[arg-type]
    it.heartbeat(at=200_000)
    assert it.fates() == {"unwitnessed": 1}


def test_rebroadcast_is_no_opportunity() -> None:
    """It was composed earlier."""
    it = Simulated()
    old = it.content("old", "ben", at=0, lamport=20)
    it.content("m", "ana", at=1_000, lamport=10)
    it.again(old, at=2_000)
    it.heartbeat(at=200_000)
    assert it.fates() == {"unwitnessed": 2}


def test_message_of_an_unknown_sender_is_never_acknowledged() -> None:
    """No participant can be distinguished from the sender."""
    it = Simulated()
    it.content("m", "", at=0)
    it.sync("ben", at=1_000, lamport=2_000, history=["m"])
    it.heartbeat(at=200_000)
    assert it.fates() == {"unwitnessed": 1}
    assert it.figures("acknowledged")["definite"] == 0


def test_evidence_after_the_horizon_does_not_count() -> None:
    """Neither histories nor filters."""
    it = Simulated()
    it.content("m", "ana", at=0)
    it.receive("ben", "m")
    it.sync("ben", at=3_600_001, history=["m"])
    it.sync("ben", at=3_600_002)
    assert it.figures("acknowledged") == {"definite": 0, "probable": 0}
