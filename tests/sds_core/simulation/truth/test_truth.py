"""The truth document as a whole."""

from __future__ import annotations

import json
from typing import Any

from sds_core.message_channel.events import (
    Acknowledged,
    Cause,
    Delivered,
    Evidence,
    IrretrievablyLost,
    Missing,
    RepairAnswered,
    RepairRequested,
)
from sds_core.simulation.comparison import compare
from sds_core.simulation.truth import Truth
from tests.support.simulation.simulated import (
    START_LAMPORT,
    START_MS,
    Simulated,
    hash_of,
)


def two_channels() -> Simulated:
    """A little of everything, in two channels."""
    it = Simulated("one")
    sent = it.content("m", "ana", at=1_000)
    it.receive("ben", "m")
    it.sync("ben", at=2_000, requests=["lost"])
    it.again(sent, at=3_000)
    it.content("m", "cem", at=4_000, channel_id="two")
    it.sync("ben", at=5_000, history=["m"], requests=["m"], channel_id="two")
    it.heartbeat(at=6_000)
    return it


def test_document_survives_json() -> None:
    """Its keys are sorted, so files can be compared."""
    document = two_channels().document()
    assert json.loads(json.dumps(document)) == document
    assert json.dumps(document) == json.dumps(document, sort_keys=True)


def test_document_has_scenario_seed_and_window() -> None:
    """The window covers all records, heartbeats too."""
    document = two_channels().document()
    assert document["schema"] == 1
    assert document["scenario"] == "by hand"
    assert document["seed"] == 7
    assert document["window"] == {
        "first_event": START_MS + 1_000,
        "last_event": START_MS + 6_000,
    }
    assert list(document["channels"]) == ["one", "two"]


def test_totals_are_sums_over_channels() -> None:
    """Of every number; single latencies are per channel only."""
    document = two_channels().document()
    one, two = document["channels"].values()
    assert document["totals"] == added(one, two)
    assert document["totals"]["participants"] == 4
    assert document["totals"]["repair"]["requests"] == 2


def test_equal_report_agrees() -> None:
    """Each figure of the truth has the same name in a report."""
    document = two_channels().document()
    report = json.loads(json.dumps(document))
    for figures in (report["totals"], *report["channels"].values()):
        latencies = figures.pop("ack_latencies", [["m", 1_000]])
        del figures["sender_side"]
        figures["ack_latency_ms"]["definite"] = {
            "count": len(latencies),
            "sum": sum(latency for _, latency in latencies),
        }
    comparisons = list(compare(document, report))
    assert [one for one in comparisons if not one.same] == []
    assert {one.channel for one in comparisons} == {"", "one", "two"}
    report["channels"]["two"]["frames"]["sync"] += 1
    differing = [one for one in compare(document, report) if not one.same]
    assert [(one.channel, one.figure) for one in differing] == [("two", "frames.sync")]


def test_empty_simulation_has_a_document() -> None:
    """All totals are 0."""
    document = Truth("empty", 1).document()
    assert document["window"] == {"first_event": None, "last_event": None}
    assert document["channels"] == {}
    assert document["messages"] == {}
    assert document["totals"]["messages"] == 0
    assert document["totals"]["gaps"]["opened"] == 0


def test_document_can_be_made_at_any_time() -> None:
    """It changes nothing, and the log continues."""
    it = two_channels()
    truth = Truth("by hand", 7)
    for entry in it.entries:
        truth.document()
        truth.add(entry)
    assert truth.document() == it.document()


def test_message_has_its_complete_history() -> None:
    """All sends, sightings, receptions, misses, requests and repairs."""
    it = Simulated()
    it.present("ana", "ben", "cem", "dov")
    it.present("dov", at=500, present=False)
    sent = it.content("m", "ana", at=1_000, lamport=1, seen=False)
    it.arrive("ben", sent, at=1_100)
    it.happen("ben", Delivered("m", "ana", 1, b"text"), at=1_100)
    it.happen("eva", Missing("m", b"", "ana", "n"), at=2_000)
    it.happen("eva", RepairRequested(("m", "x"), "n"), at=3_000)
    it.happen("ana", Acknowledged("m", "ben", Evidence.CAUSAL_HISTORY), at=3_500)
    repaired = it.again(sent, at=4_000, by="ben", cause=Cause.REPAIR)
    it.sight(repaired, at=4_010, tap="another")
    it.sight(repaired, at=4_020, tap="another")
    it.happen("ben", RepairAnswered("m"), at=4_000)
    it.happen("eva", IrretrievablyLost("m", b"", "ana"), at=5_000)
    it.arrive("eva", repaired, at=6_000)
    it.happen("eva", Delivered("m", "ana", 1, b"text"), at=6_100)
    assert it.message("m") == {
        "kind": "content",
        "sender": "ana",
        "sent_ms": START_MS + 1_000,
        "transmissions": [
            {
                "at_ms": START_MS + 1_000,
                "by": "ana",
                "cause": "content",
                "waku_hash": hash_of(0),
                "seen_by": [],
            },
            {
                "at_ms": START_MS + 4_000,
                "by": "ben",
                "cause": "repair",
                "waku_hash": hash_of(1),
                "seen_by": ["another", "tap"],
            },
        ],
        "received": {"ben": START_MS + 1_100, "eva": START_MS + 6_000},
        "received_in": {"ben": 0, "eva": 1},
        "delivered": {"ben": START_MS + 1_100, "eva": START_MS + 6_100},
        "missing": {"eva": START_MS + 2_000},
        "lost": {"eva": START_MS + 5_000},
        "acknowledged": {
            "at_ms": START_MS + 3_500,
            "by": "ben",
            "evidence": "causal history",
        },
        "requested": [{"at_ms": START_MS + 3_000, "by": "eva"}],
        "repaired": [{"at_ms": START_MS + 4_000, "by": "ben"}],
        "never_received": ["cem"],
        "gap": None,
        "deliveries": {},
    }


def test_message_is_received_in_the_transmission_that_brought_it_first() -> None:
    """Not in a further copy or another message."""
    it = Simulated()
    sent = it.content("m", "ana", at=0)
    other = it.content("n", "ana", at=1_000)
    again = it.again(sent, at=30_000)
    it.arrive("ben", sent, at=100)
    it.arrive("ben", again, at=30_100)
    it.arrive("cem", again, at=30_300)
    it.arrive("dov", other, at=30_400)
    it.receive("dov", "m", at=30_500)
    assert it.message("m")["received_in"] == {"ben": 0, "cem": 1}


def test_history_has_claims_of_frames_and_real_events() -> None:
    """Here one claim is right, and one is wrong."""
    it = Simulated.after_warm_up()
    it.sync("ben", at=50_000, lamport=START_LAMPORT + 1)
    it.content("anchor", "ana", at=51_000, lamport=START_LAMPORT + 2)
    it.content("m", "ana", at=52_000, lamport=START_LAMPORT + 3, seen=False)
    unseen = it.content("x", "ana", at=53_000, lamport=START_LAMPORT + 4, seen=False)
    it.receive("ben", "x", at=53_100)
    naming = it.content(
        "n",
        "ana",
        at=60_000,
        lamport=START_LAMPORT + 5,
        history=["anchor", ("m", "ana"), ("x", "ana")],
        seen=False,
    )
    it.sight(naming, at=60_500)
    lacking = it.sync("ben", at=360_000, lamport=START_LAMPORT + 6, seen=False)
    it.sight(lacking, at=361_000)
    it.again(unseen, at=400_000)
    it.sync("ben", at=520_000, lamport=START_LAMPORT + 7)
    it.sync("ben", at=661_001, lamport=START_LAMPORT + 8)
    messages = it.document()["messages"]["channel"]
    told = {key: (one["gap"], one["deliveries"]) for key, one in messages.items()}
    gap = {"named_ms": START_MS + 60_500, "deadline_ms": START_MS + 360_500}
    missing = {"composed_ms": START_MS + 360_000, "seen_ms": START_MS + 361_000}
    assert told == {
        "anchor": (None, {"ben": {"outcome": "lost", "lacking": missing}}),
        "m": (gap | {"outcome": "lost"}, {}),
        "x": (
            gap | {"outcome": "lost"},
            {"ben": {"outcome": "first_pass", "lacking": None}},
        ),
        "n": (None, {"ben": {"outcome": "lost", "lacking": missing}}),
    }
    assert messages["x"]["received"] == {"ben": START_MS + 53_100}


def test_message_that_no_tap_saw_has_a_history() -> None:
    """It is only in the truth, not in the topic."""
    it = Simulated()
    it.present("ana", "ben")
    it.content("m", "ana", at=0, seen=False)
    document = it.document()
    assert document["channels"] == {}
    story = document["messages"]["channel"]["m"]
    assert story["never_received"] == ["ben"]
    assert story["acknowledged"] is None


def test_sync_and_ephemeral_messages_have_no_history() -> None:
    """They are not sent reliably."""
    it = Simulated()
    it.sync("ana", at=0)
    it.ephemeral("ana", at=0)
    assert it.document()["messages"] == {}


def added(one: dict[str, Any], two: dict[str, Any]) -> dict[str, Any]:
    """The sums of two trees of numbers, without their lists."""
    return {
        name: added(value, two[name]) if isinstance(value, dict) else value + two[name]
        for name, value in one.items()
        if not isinstance(value, list)
    }


def test_gaps_of_taps_are_listed_by_tap() -> None:
    """A tap without one has an empty list."""
    it = Simulated()
    it.heartbeat(at=0, tap="near")
    it.heartbeat(at=0, tap="far")
    it.tap_gap(at=1_000, until=61_000, tap="far")
    assert it.document()["taps"] == {
        "near": {"gaps": []},
        "far": {
            "gaps": [
                {
                    "from_ms": START_MS + 1_000,
                    "until_ms": START_MS + 61_000,
                    "cause": "down",
                }
            ]
        },
    }


def test_sync_frame_that_its_library_repairs_has_a_story() -> None:
    """But it is no message of the figures, and an ordinary sync frame has none."""
    it = Simulated()
    sent = it.library_sync("s", "ana", at=0)
    it.arrive("ben", sent, at=100)
    it.sync("ben", at=1_000)
    story = it.message("s")
    assert (story["kind"], story["sender"]) == ("sync", "ana")
    assert story["received"] == {"ben": START_MS + 100}
    assert it.figures("messages") == 0
    assert list(it.document()["messages"]["channel"]) == ["s"]
