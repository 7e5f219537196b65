"""Whole simulations with absences, clocks that are off, and lost tails."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

from sds_core.message_channel.events import Cause, Delivered, Missing, Sent
from sds_core.message_channel.profile import Profile
from sds_core.simulation.log import (
    Arrival,
    Entry,
    Happening,
    Presence,
    Sighting,
    Transmission,
)
from sds_core.wire import FrameKind
from tests.support.simulation.running import START_MS, of, run, told

# -- churn


def away(
    log: Iterable[Entry],
) -> dict[str, list[tuple[int, float]]]:
    """Return the spans in which each participant of the only channel is away."""
    spans: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for one in of(Presence, log):
        name = one.participant
        if one.present:
            if name in spans:
                spans[name][-1] = (spans[name][-1][0], one.at_ms)
            elif one.at_ms > START_MS:
                spans[name].append((START_MS, one.at_ms))
        else:
            spans[name].append((one.at_ms, float("inf")))
    return spans


CHURN = {
    "joining_share": 0.25,
    "leaving_share": 0.25,
    "absences": {"share": 1, "mean_present_s": 60, "mean_away_s": 20},
}


@pytest.mark.parametrize("state", ["restored", "kept", "lost"])
def test_absent_participant_neither_sends_nor_receives(
    mapping: dict[str, Any], state: str
) -> None:
    """It delivers nothing to its application either."""
    mapping |= {"duration_s": 300, "settle_s": 60, "churn": CHURN}
    mapping["churn"]["absences"] |= {"state": state}
    log = run(mapping)
    spans = away(log)
    assert sum(map(len, spans.values())) > 4
    acts = (
        [(one.participant, one.at_ms) for one in of(Arrival, log)]
        + [(one.participant, one.at_ms) for one in of(Happening, log)]
        + [(one.by, one.at_ms) for one in of(Transmission, log)]
    )
    for name, at_ms in acts:
        assert not any(since < at_ms < until for since, until in spans[name])


@pytest.mark.parametrize(
    ("present_s", "away_s", "after_s"), [(60, 20, 7), (30, 10, 25)]
)
def test_participant_fetches_what_it_missed_after_its_return(
    mapping: dict[str, Any], present_s: float, away_s: float, after_s: int
) -> None:
    """Every message that was sent while it was away, and once back for so long."""
    mapping |= {"duration_s": 300, "settle_s": 60, "churn": CHURN}
    mapping["network"]["loss"] = 0.0
    absences = {"share": 1, "mean_present_s": present_s, "mean_away_s": away_s}
    mapping["churn"] = {
        "absences": absences | {"fetch_after_s": after_s, "state": "kept"}
    }
    log = run(mapping)
    missed = 0
    for name, spans in away(log).items():
        arrived = {
            one.transmission.number: one.at_ms
            for one in of(Arrival, log)
            if one.participant == name
        }
        for since_ms, until_ms in spans:
            for sent in of(Transmission, log):
                is_content = sent.frame.kind is FrameKind.CONTENT
                if not is_content or not since_ms < sent.at_ms < until_ms - 5_000:
                    continue
                if sent.number in arrived:
                    missed += 1
                    assert arrived[sent.number] >= until_ms + after_s * 1_000
    assert missed > 4


def test_restart_from_a_snapshot_changes_nothing(mapping: dict[str, Any]) -> None:
    """The log is the same with and without it."""
    mapping |= {"duration_s": 300, "settle_s": 60, "churn": CHURN}
    mapping["network"]["loss"] = 0.1
    mapping["churn"]["absences"] |= {"state": "kept"}
    kept = run(mapping)
    mapping["churn"]["absences"] |= {"state": "restored"}
    assert run(mapping) == kept


def test_participant_that_lost_its_state_asks_for_what_histories_name(
    mapping: dict[str, Any],
) -> None:
    """Its own messages as well; with its state it asks for less."""
    mapping |= {"duration_s": 300, "settle_s": 300}
    mapping["network"]["loss"] = 0.0
    absences = {"share": 0.25, "mean_present_s": 60, "mean_away_s": 1}
    missing: dict[str, list[str]] = {}
    for state in ("kept", "lost"):
        mapping["churn"] = {"absences": absences | {"state": state}}
        log = run(mapping)
        missing[state] = [event.message_id for _, event in told(Missing, log)]
        assert {one.is_new for one in of(Presence, log)} == {True, False}
    assert len(missing["lost"]) > len(missing["kept"]) + 10
    returned = [
        one for one in of(Presence, log) if one.at_ms > START_MS and one.present
    ]
    (name,) = {one.participant for one in returned}
    assert all(one.is_new for one in returned)
    own = {
        one.frame.message_id
        for one in of(Transmission, log)
        if one.frame.sender_id == name
    }
    assert own.intersection(missing["lost"])


def test_sync_frames_of_an_application_are_named_and_repaired(
    mapping: dict[str, Any],
) -> None:
    """Their library takes them for messages: each sending has the same bytes."""
    mapping |= {"duration_s": 300, "settle_s": 600}
    mapping["network"]["loss"] = 0.2
    mapping["profiles"] = [
        {
            "base": "nim_sds",
            "library_syncs_every_s": 20,
            "overrides": {"sync_interval_ms": 2_592_000_000},
        }
    ]
    log = run(mapping)
    syncs: dict[str, list[Transmission]] = defaultdict(list)
    named = set()
    for one in of(Transmission, log):
        named.update(entry.message_id for entry in one.frame.causal_history)
        if one.frame.kind is FrameKind.SYNC:
            assert one.is_of_message
            syncs[one.frame.message_id].append(one)
    assert len(syncs) > 40
    assert len(named.intersection(syncs)) > 30
    causes = {one.cause for sendings in syncs.values() for one in sendings}
    assert causes == {Cause.CONTENT, Cause.RETRY, Cause.REPAIR}
    for sendings in syncs.values():
        assert len({one.value for one in sendings}) == 1
        assert sendings[0].cause is Cause.CONTENT
    delivered = {event.message_id for _, event in told(Delivered, log)}
    assert len(delivered.intersection(syncs)) > 30


def test_late_participant_misses_earlier_messages(mapping: dict[str, Any]) -> None:
    """Until they are repaired."""
    mapping |= {"duration_s": 120, "churn": {"joining_share": 0.25}}
    log = run(mapping)
    (late,) = away(log)
    assert {name for name, _ in told(Missing, log)} == {late}


# -- clocks


def test_skewed_clocks_change_only_the_frames(mapping: dict[str, Any]) -> None:
    """Waku timestamps are the sender's; times of the log are correct."""
    mapping["clocks"] = {"offset_ms": 3_600_000, "drift_ppm": 1_000}
    mapping["settle_s"] = 60
    log = run(mapping)
    errors: dict[str, set[int]] = defaultdict(set)
    for one in of(Transmission, log):
        errors[one.by].add(one.waku_timestamp_ns // 1_000_000 - one.at_ms)
    assert len(errors) == 4
    for offsets in errors.values():
        # 120 s at 1,000 ppm are 120 ms.
        assert max(offsets) - min(offsets) <= 120
        assert max(map(abs, offsets)) <= 3_600_120
    means = [sum(one) // len(one) for one in errors.values()]
    assert max(means) - min(means) > 60_000
    sent = {event.message_id for _, event in told(Sent, log)}
    delivered = Counter(event.message_id for _, event in told(Delivered, log))
    assert delivered == dict.fromkeys(sent, 3)


# -- lost tails


def tail(
    mapping: dict[str, Any], settle_s: int = 120, **lost_tail: Any
) -> tuple[list[Entry], list[str]]:
    """Simulate a lost tail; return the log and the ids of the lost messages."""
    mapping["settle_s"] = settle_s
    mapping["channels"][0]["lost_tail"] = {"messages": 2, **lost_tail}
    log = run(mapping)
    lost = [
        event.event.message_id
        for event in of(Happening, log)
        if isinstance(event.event, Sent) and event.at_ms == START_MS + 60_000
    ]
    assert len(lost) == 2
    assert not [
        one for one in of(Arrival, log) if one.transmission.frame.message_id in lost
    ]
    return log, lost


def seen_ids(log: Iterable[Entry]) -> set[str]:
    """Return the message ids that taps recorded."""
    return {one.transmission.frame.message_id for one in of(Sighting, log)}


@pytest.mark.parametrize("seen", [True, False])
def test_lost_tail_is_never_named(mapping: dict[str, Any], seen: bool) -> None:
    """Its sender is silent afterwards; the taps have it or not."""
    log, lost = tail(mapping, seen_by_taps=seen)
    assert seen_ids(log).issuperset(lost) is seen
    assert seen or not seen_ids(log).intersection(lost)
    assert [one.present for one in of(Presence, log)].count(False) == 1
    named = {
        entry.message_id
        for one in of(Transmission, log)
        if one.frame.message_id not in lost
        for entry in one.frame.causal_history
    }
    assert not named.intersection(lost)
    assert not told(Missing, log)


def test_lost_tail_of_a_sender_that_stays_is_missed(mapping: dict[str, Any]) -> None:
    """A sync message names what no retry delivers, however many the others send."""
    spec = Profile.spec()
    limit = (spec.sync_put_off_limit or 0) * spec.sync_interval_ms // 1_000
    settle_s = limit * mapping["participants"] + 1
    log, lost = tail(mapping, settle_s, sender_leaves=False)
    assert {event.message_id for _, event in told(Missing, log)} == set(lost)
    causes = {
        one.cause for one in of(Transmission, log) if one.frame.message_id in lost
    }
    assert causes >= {Cause.CONTENT, Cause.RETRY}
