"""Whole simulations: participants, network, traffic and taps together."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import sds_core
from sds_core.message_channel.events import (
    Acknowledged,
    Cause,
    Delivered,
    EphemeralReceived,
    Ignored,
    IgnoredReason,
    Missing,
    RepairAnswered,
    Sent,
)
from sds_core.simulation.log import (
    META,
    PUBSUB_TOPIC,
    Arrival,
    Entry,
    Heartbeat,
    Presence,
    Sighting,
    Transmission,
    content_topic,
)
from sds_core.simulation.scenario import Scenario
from sds_core.simulation.simulator import simulate
from sds_core.waku.message import message_hash
from sds_core.wire import Dialect, FrameKind, decode
from tests.support.simulation.running import START_MS, of, run, told


def participants_only(log: Iterable[Entry]) -> list[Entry]:
    """Leave the taps out."""
    return [entry for entry in log if not isinstance(entry, Sighting | Heartbeat)]


def test_same_scenario_and_seed_give_the_same_log(mapping: dict[str, Any]) -> None:
    """Entry by entry."""
    mapping["network"]["loss"] = 0.1
    assert run(mapping, seed=1) == run(mapping, seed=1)
    assert run(mapping, seed=1) != run(mapping, seed=2)


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_another_process_gives_the_same_log(
    mapping: dict[str, Any], hash_seed: str
) -> None:
    """Nothing depends on the order of a set."""
    mapping["network"]["loss"] = 0.1
    mapping["settle_s"] = 300
    program = (
        "import json, sys\n"
        "from sds_core.simulation.scenario import Scenario\n"
        "from sds_core.simulation.simulator import simulate\n"
        "scenario = Scenario.from_mapping(json.loads(sys.argv[1]))\n"
        f"for entry in simulate(scenario, 1, {START_MS}): print(entry)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(mapping)],
        capture_output=True,
        check=True,
        text=True,
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        cwd=Path(sds_core.__file__).parent.parent,
    )
    assert done.stdout.splitlines() == [str(entry) for entry in run(mapping)]


def test_log_is_lazy_and_in_order_of_time(mapping: dict[str, Any]) -> None:
    """A scenario of thirty days yields at once."""
    mapping["duration_s"] = 2_592_000
    scenario = Scenario.from_mapping(mapping)
    log = list(islice(simulate(scenario, 1, START_MS), 2_000))
    times = [entry.at_ms for entry in log]
    assert len(log) == 2_000
    assert times == sorted(times)


def test_yielded_transmissions_are_not_kept_in_memory(mapping: dict[str, Any]) -> None:
    """Only those still in transit are."""
    mapping["duration_s"] = 2_000
    mapping["channels"][0]["traffic"] |= {"mean_interval_s": 0.5, "ephemeral_share": 1}
    log = simulate(Scenario.from_mapping(mapping), 1, START_MS)
    yielded = sum(isinstance(entry, Transmission) for entry in islice(log, 40_000))
    assert yielded > 4_000
    gc.collect()
    alive = sum(
        isinstance(one, Transmission)
        and one.channel_id == "ch"
        and one.cause is Cause.EPHEMERAL
        for one in gc.get_objects()
    )
    assert alive < 20


def test_everybody_gets_everything_on_a_perfect_network(
    mapping: dict[str, Any],
) -> None:
    """Each message is delivered by the three others, and acknowledged."""
    mapping["settle_s"] = 120
    log = run(mapping)
    sent = {event.message_id for _, event in told(Sent, log)}
    delivered = Counter(event.message_id for _, event in told(Delivered, log))
    assert len(sent) > 10
    assert delivered == dict.fromkeys(sent, 3)
    assert {event.message_id for _, event in told(Acknowledged, log)} == sent
    assert len(of(Arrival, log)) == 3 * len(of(Transmission, log))
    assert Counter(e.cause for e in of(Transmission, log))[Cause.REPAIR] == 0


def test_participant_does_not_receive_its_own_frames(mapping: dict[str, Any]) -> None:
    """The network does not return them."""
    for arrival in of(Arrival, run(mapping)):
        assert arrival.participant != arrival.transmission.by
        assert arrival.at_ms - arrival.transmission.at_ms == 50


def test_transmission_says_what_is_on_the_wire(mapping: dict[str, Any]) -> None:
    """Bytes, frame, Waku hash and time belong together; no two hashes are equal."""
    sent = of(Transmission, run(mapping))
    assert [one.number for one in sent] == list(range(len(sent)))
    for one in sent:
        assert decode(one.value) == one.frame
        hashed = message_hash(
            PUBSUB_TOPIC,
            one.value,
            content_topic(one.channel_id),
            META,
            one.waku_timestamp_ns,
        )
        assert one.waku_hash == f"0x{hashed.hex()}"
        assert one.waku_timestamp_ns // 1_000_000 == one.at_ms
    assert len({one.waku_hash for one in sent}) == len(sent)


def test_histories_carry_the_waku_hash_as_retrieval_hint(
    mapping: dict[str, Any],
) -> None:
    """Of the first sending, whoever names the message."""
    sent = of(Transmission, run(mapping))
    hashes = {
        one.frame.message_id: one.waku_hash
        for one in sent
        if one.cause is Cause.CONTENT
    }
    hints = [
        (entry.message_id, f"0x{entry.retrieval_hint.hex()}")
        for one in sent
        for entry in one.frame.causal_history
    ]
    assert len(hints) > 20
    assert all(hashes[message_id] == hint for message_id, hint in hints)


def test_links_lose_nothing_until_the_time_of_the_scenario(
    mapping: dict[str, Any],
) -> None:
    """Each frame of that time reaches all three others, and later ones not."""
    mapping["network"] |= {"loss": 0.5, "lossless_until_s": 30}
    log = run(mapping, seed=1)
    reached = Counter(one.transmission.number for one in of(Arrival, log))
    sent = of(Transmission, log)
    early = [one.number for one in sent if one.at_ms < START_MS + 30_000]
    assert len(early) > 5
    assert {reached[number] for number in early} == {3}
    assert sum(reached[one.number] < 3 for one in sent[len(early) :]) > 5


def test_losses_are_repaired_by_the_participants(mapping: dict[str, Any]) -> None:
    """What is missing is asked for, answered under another hash, and delivered."""
    mapping |= {"duration_s": 300, "settle_s": 480}
    mapping["network"]["loss"] = 0.15
    mapping["channels"][0]["traffic"]["mean_interval_s"] = 5
    # With two entries, a message that others have acknowledged may be named to
    # nobody who lost it.
    mapping["profiles"] = [{"base": "spec", "overrides": {"causal_history_size": 50}}]
    log = run(mapping, seed=7)
    sent = {event.message_id for _, event in told(Sent, log)}
    missing = {event.message_id for _, event in told(Missing, log)}
    answered = {event.message_id for _, event in told(RepairAnswered, log)}
    assert answered
    assert answered <= missing
    repairs = [one for one in of(Transmission, log) if one.cause is Cause.REPAIR]
    assert {one.frame.message_id for one in repairs} == answered
    first = {
        one.frame.message_id: one
        for one in of(Transmission, log)
        if one.cause is Cause.CONTENT
    }
    for repair in repairs:
        original = first[repair.frame.message_id]
        assert repair.value == original.value
        assert repair.waku_hash != original.waku_hash
    delivered = Counter(event.message_id for _, event in told(Delivered, log))
    assert delivered == dict.fromkeys(sent, 3)


def test_another_tap_changes_nothing_for_the_others(mapping: dict[str, Any]) -> None:
    """Participants and the first tap have the same log."""
    alone = run(mapping)
    mapping["taps"].append({"name": "second", "loss": 0.5})
    both = run(mapping)
    assert participants_only(both) == participants_only(alone)
    first = [entry for entry in of(Sighting, both) if entry.tap == "tap"]
    assert first == of(Sighting, alone)
    assert any(entry.tap == "second" for entry in of(Sighting, both))


def test_another_channel_does_not_change_the_traffic(mapping: dict[str, Any]) -> None:
    """Times and senders of a channel depend on that channel only."""

    def said(log: Iterable[Entry]) -> list[tuple[int, str, bytes]]:
        return [
            (one.at_ms, one.by, one.frame.content)
            for one in of(Transmission, log)
            if one.channel_id == "ch" and one.cause is Cause.CONTENT
        ]

    alone = said(run(mapping))
    mapping["channels"].append({"name": "b", "traffic": {"mean_interval_s": 1}})
    assert said(run(mapping)) == alone


def test_channels_draw_their_participants_from_the_population(
    mapping: dict[str, Any],
) -> None:
    """In the given numbers, and frames stay in their channel."""
    mapping["participants"] = 9
    mapping["channels"][0] |= {"count": 5, "participants": 3}
    log = run(mapping)
    members: dict[str, set[str]] = defaultdict(set)
    for presence in of(Presence, log):
        members[presence.channel_id].add(presence.participant)
    assert sorted(members) == ["ch-1", "ch-2", "ch-3", "ch-4", "ch-5"]
    assert {len(names) for names in members.values()} == {3}
    assert len(set().union(*members.values())) > 3
    for arrival in of(Arrival, log):
        channel_id = arrival.transmission.channel_id
        assert {arrival.participant, arrival.transmission.by} <= members[channel_id]


def test_ephemeral_share_of_the_messages_is_ephemeral(mapping: dict[str, Any]) -> None:
    """They arrive, and nothing more."""
    mapping["channels"][0]["traffic"] |= {"mean_interval_s": 0.5, "ephemeral_share": 1}
    log = run(mapping)
    sent = of(Transmission, log)
    assert {one.frame.kind for one in sent} == {FrameKind.EPHEMERAL}
    assert {one.cause for one in sent} == {Cause.EPHEMERAL}
    assert len(told(EphemeralReceived, log)) == len(of(Arrival, log)) > 100


def test_burst_is_sent_by_one_participant(mapping: dict[str, Any]) -> None:
    """With the given number and interval."""
    mapping["channels"][0]["traffic"] = {
        "mean_interval_s": 1_000,
        "burst": 4,
        "burst_spacing_ms": 300,
    }
    mapping["duration_s"] = 8_000
    content = [
        one for one in of(Transmission, run(mapping)) if one.cause is Cause.CONTENT
    ]
    assert len(content) > 4
    for start in range(0, len(content), 4):
        burst = content[start : start + 4]
        assert len({one.by for one in burst}) == 1
        times = [one.at_ms - burst[0].at_ms for one in burst]
        assert times == [0, 300, 600, 900][: len(burst)]


def test_payloads_have_the_lengths_of_the_scenario(mapping: dict[str, Any]) -> None:
    """Between minimum and maximum."""
    mapping["channels"][0]["traffic"] |= {
        "mean_interval_s": 0.5,
        "payload_least_bytes": 5,
        "payload_most_bytes": 7,
    }
    lengths = {
        len(one.frame.content)
        for one in of(Transmission, run(mapping))
        if one.cause is Cause.CONTENT
    }
    assert lengths == {5, 6, 7}


def test_settling_brings_no_new_messages(mapping: dict[str, Any]) -> None:
    """Sync messages, retries, repairs and taps continue."""
    mapping["settle_s"] = 120
    mapping["network"]["loss"] = 0.3
    log = run(mapping)
    end_ms = START_MS + 60_000
    late = {one.cause for one in of(Transmission, log) if one.at_ms >= end_ms}
    assert late == {Cause.SYNC, Cause.RETRY, Cause.REPAIR}
    assert max(one.at_ms for one in of(Heartbeat, log)) == START_MS + 175_000


def test_profiles_share_a_channel(mapping: dict[str, Any]) -> None:
    """In the given shares, rounded; the two dialects ignore each other."""
    mapping["participants"] = 8
    mapping["profiles"] = [{"base": "nim_sds", "share": 3}, {"base": "js_sds"}]
    mapping["channels"][0]["traffic"] = {"mean_interval_s": 5, "per": "participant"}
    log = run(mapping)
    speakers: dict[Dialect, set[str]] = defaultdict(set)
    for one in of(Transmission, log):
        speakers[one.frame.dialect].add(one.by)
    assert len(speakers[Dialect.NIM]) == 6
    assert len(speakers[Dialect.SPEC]) == 2
    foreign = [
        event
        for _, event in told(Ignored, log)
        if event.reason is IgnoredReason.FOREIGN_DIALECT
    ]
    assert foreign
