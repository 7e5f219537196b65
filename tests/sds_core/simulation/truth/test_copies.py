"""Frames and their copies in the truth (docs/figures.md, 2)."""

from __future__ import annotations

import pytest

from sds_core.message_channel.events import Cause
from tests.support.simulation.simulated import Simulated


def test_frames_are_counted_by_kind() -> None:
    """Only content makes messages."""
    it = Simulated()
    it.content("m", "ana", at=0)
    it.sync("ben", at=1_000)
    it.sync("ben", at=2_000)
    it.ephemeral("cem", at=3_000)
    figures = it.figures()
    assert figures["frames"] == {"content": 1, "sync": 2, "ephemeral": 1}
    assert figures["messages"] == 1
    assert figures["participants"] == 3


def test_further_sightings_of_one_transmission_are_replicas() -> None:
    """By another tap or the same, at any time."""
    it = Simulated()
    sent = it.content("m", "ana", at=0)
    it.sight(sent, at=10)
    it.sight(sent, at=600_000, tap="other")
    assert it.figures("frames", "replicas", "rebroadcasts") == {
        "frames": {"content": 1, "sync": 0, "ephemeral": 0},
        "replicas": 2,
        "rebroadcasts": {"repair": 0, "retry": 0},
    }


def test_several_taps_see_the_union_in_the_order_of_the_topic() -> None:
    """The first copy is that written first, whatever a tap's clock says."""
    it = Simulated()
    first = it.content("m", "ana", at=0, seen=False)
    again = it.again(first, at=0, seen=False)
    answer = it.sync("ben", at=0, history=["m"], seen=False)
    it.sight(again, at=5_000, tap="far")
    it.sight(answer, at=6_000, tap="far")
    it.sight(first, at=1_000, tap="near")
    assert it.figures("messages", "replicas", "rebroadcasts", "ack_latencies") == {
        "messages": 1,
        "replicas": 0,
        "rebroadcasts": {"repair": 0, "retry": 1},
        "ack_latencies": [["m", 1_000]],
    }


def test_records_of_one_time_keep_the_order_in_which_they_were_written() -> None:
    """The first of two copies at the same time is that written first."""
    it = Simulated()
    first = it.content("m", "ana", at=0, seen=False)
    again = it.again(first, at=0, seen=False)
    it.sight(again, at=1_000)
    it.sight(first, at=1_000)
    assert it.figures("sender_side")["first_copies"]["retry"] == 1


def test_cause_of_a_rebroadcast_follows_from_the_requests_seen() -> None:
    """A repair whose request no tap saw counts as a retry."""
    it = Simulated()
    sent = it.content("m", "ana", at=0)
    it.again(sent, at=10_000, by="ben", cause=Cause.REPAIR)
    it.sync("cem", at=20_000, requests=["m"])
    it.again(sent, at=155_000, by="ben", cause=Cause.REPAIR)
    it.again(sent, at=155_001, by="ana", cause=Cause.RETRY)
    assert it.figures("rebroadcasts") == {"repair": 1, "retry": 2}
    assert it.figures("sender_side") == {
        "first_copies": {"content": 1, "repair": 0, "retry": 0},
        "rebroadcasts": {"content": 0, "repair": 2, "retry": 1},
    }


def test_message_id_of_another_sender_or_lamport_is_a_collision() -> None:
    """It is no message and no rebroadcast, and adds no participant."""
    it = Simulated()
    it.content("m", "ana", at=0, lamport=1)
    it.content("m", "ben", at=1_000, lamport=1)
    it.content("m", "ana", at=2_000, lamport=2)
    figures = it.figures()
    assert figures["message_id_collisions"] == 2
    assert figures["messages"] == 1
    assert figures["participants"] == 1
    assert figures["rebroadcasts"] == {"repair": 0, "retry": 0}
    assert figures["frames"]["content"] == 3


@pytest.mark.parametrize("lag", [3_600_000, 3_600_001, 30_000_000])
def test_rebroadcast_counts_whatever_the_age_of_its_message(lag: int) -> None:
    """With the requests that its frame carries."""
    it = Simulated()
    sent = it.content("m", "ana", at=0, requests=["lost"])
    it.again(sent, at=lag)
    figures = it.figures()
    assert figures["frames"]["content"] == 2
    assert figures["rebroadcasts"] == {"repair": 0, "retry": 1}
    assert figures["repair"]["requests"] == 2


def test_sync_frame_that_its_library_repairs_is_a_rebroadcast() -> None:
    """It is no second first copy; a sync frame of another Lamport timestamp is one."""
    it = Simulated()
    sent = it.library_sync("s", "ana", at=0)
    it.again(sent, at=10_000)
    it.sync("ben", at=20_000, requests=["s"])
    it.again(sent, at=30_000, by="cem", cause=Cause.REPAIR)
    it.library_sync("s", "ana", at=40_000, lamport=2_000)
    figures = it.figures()
    assert figures["rebroadcasts"] == {"repair": 1, "retry": 1}
    assert figures["frames"]["sync"] == 5
    assert figures["messages"] == 0


def test_message_that_no_tap_saw_does_not_count() -> None:
    """A record lost on its way to Kafka was not seen."""
    it = Simulated()
    it.content("seen", "ana", at=0)
    it.content("unseen", "ben", at=1_000, seen=False)
    assert it.figures("messages", "participants") == {"messages": 1, "participants": 1}
