"""Several participants repair what some of them miss (SDS-R guide, "Testing")."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sds_core.message_channel import (
    Buffer,
    Cause,
    Evicted,
    Eviction,
    IrretrievablyLost,
    Profile,
    RepairExpired,
    RepairRequested,
)
from sds_core.message_channel.repair import (
    in_response_group,
    request_offset_ms,
    response_offset_ms,
)
from sds_core.message_channel.sync import AFTER_SYNC_SENT
from tests.support.frames import MINUTE, SECOND, START_MS
from tests.support.message_channel.repair_bus import (
    LASTING,
    SPEC,
    Bus,
    without_retries,
)

JS = without_retries(Profile.js_sds())
NIM = without_retries(Profile.nim_sds())

T_MAX_MS = SPEC.t_max_ms


def longest_sync_ms(profile: Profile) -> int:
    """The longest pause between two sync messages of one participant."""
    if profile.sync_least_share is None:
        return profile.sync_interval_ms
    share = profile.sync_least_share + 1
    return int(share * profile.sync_interval_ms * AFTER_SYNC_SENT)


LONGEST_SYNC_MS = longest_sync_ms(SPEC)


def requests(bus: Bus) -> list[tuple[int, str, str]]:
    """When and by whom each message was requested."""
    return [
        (at_ms, by, message_id)
        for at_ms, by, event in bus.events(RepairRequested)
        for message_id in event.message_ids
    ]


def by_distance(names: list[str], message_id: str) -> list[str]:
    """Who answers for a message of alice, the closest first."""
    return sorted(
        names, key=lambda one: response_offset_ms(one, "alice", message_id, SPEC)
    )


@pytest.mark.rule("sds-r-scenario-1", "sds-r-concept-4", "sds-r-sweep-4")
@pytest.mark.parametrize("profile", [SPEC, JS, NIM], ids=["spec", "js", "nim"])
def test_single_missing_message_costs_one_request_and_one_response(
    profile: Profile,
) -> None:
    """The request comes after T_req, the answer in the sender's next sweep."""
    bus = Bus("alice", "bob", "carol", "dave", profile=profile)
    bus.send("alice", "m1", lost_for={"bob"})
    bus.send("carol", "m2")
    assert [one.message_id for one in bus.participants["bob"].missing] == ["m1"]
    bus.run(20 * MINUTE)
    ((asked_ms, by, message_id),) = requests(bus)
    assert (by, message_id) == ("bob", "m1")
    t_req_ms = START_MS + request_offset_ms("bob", "m1", profile)
    assert t_req_ms <= asked_ms <= t_req_ms + longest_sync_ms(profile)
    assert bus.answers() == [("alice", "m1")]
    (answered_ms,) = (
        at_ms for at_ms, _, broadcast in bus.aired if broadcast.cause is Cause.REPAIR
    )
    assert asked_ms <= answered_ms < asked_ms + profile.repair_sweep_ms
    assert bus.logs() == {("m1", "m2")}


@pytest.mark.rule("sds-r-sweep-4", "sds-r-state-9", "sds-r-security-4")
def test_rebroadcast_is_byte_identical_whoever_sends_it() -> None:
    """Receivers handle it as the original sender's frame."""
    bus = Bus("alice", "bob", "carol")
    bus.send("alice", "m1", lost_for={"bob"})
    bus.send("carol", "m2")
    bus.offline = {"alice"}
    bus.run(6 * MINUTE)
    sendings = [
        (by, broadcast.cause, broadcast.value)
        for _, by, broadcast in bus.aired
        if broadcast.message_id == "m1"
    ]
    original = sendings[0][2]
    assert sendings == [
        ("alice", Cause.CONTENT, original),
        ("carol", Cause.REPAIR, original),
    ]
    assert bus.participants["bob"].log == ("m1", "m2")


@pytest.mark.rule("sds-r-scenario-2")
@pytest.mark.parametrize("profile", [LASTING, JS, NIM], ids=["lasting", "js", "nim"])
def test_missing_message_that_depends_on_a_missing_message_is_recovered(
    profile: Profile,
) -> None:
    """Each answer names the next one, and all are delivered in order."""
    bus = Bus("alice", "bob", "carol", profile=replace(profile, causal_history_size=1))
    for message_id in ("m1", "m2", "m3"):
        bus.send("alice", message_id, lost_for={"bob"})
    bus.send("carol", "m4")
    bob = bus.participants["bob"]
    assert [one.message_id for one in bob.missing] == ["m3"]
    bus.run(30 * MINUTE)
    assert [message_id for _, _, message_id in requests(bus)] == ["m3", "m2", "m1"]
    assert bus.answers() == [("alice", "m3"), ("alice", "m2"), ("alice", "m1")]
    assert bus.logs() == {("m1", "m2", "m3", "m4")}
    assert (bob.missing, bob.waiting) == ((), ())


@pytest.mark.rule("sds-r-scenario-3", "sds-r-concept-4", "sds-r-tresp-1")
@pytest.mark.parametrize("away", [1, 2, 3])
def test_next_closest_participant_answers_when_those_before_it_are_away(
    away: int,
) -> None:
    """The original sender first, then by distance, and only one answers."""
    holders = ["carol", "dave", "erin", "frank"]
    order = ["alice", *by_distance(holders, "m1")]
    bus = Bus("alice", "bob", *holders)
    bus.send("alice", "m1", lost_for={"bob"})
    bus.send("carol", "m2")
    bus.offline = set(order[:away])
    bus.run(3 * MINUTE + T_MAX_MS)
    assert bus.answers() == [(order[away], "m1")]
    assert bus.participants["bob"].log == ("m1", "m2")


@pytest.mark.rule("sds-r-receive-2", "sds-r-concept-4")
def test_first_answer_cancels_all_others() -> None:
    """All holders have an answer due, but only one sends it."""
    names = [f"p{number}" for number in range(20)]
    bus = Bus("alice", "bob", *names)
    bus.send("alice", "m1", lost_for={"bob"})
    bus.send("p0", "m2")
    bus.offline = {"alice"}
    bus.run(10 * MINUTE)
    assert len(requests(bus)) == 1
    assert bus.answers() == [(by_distance(names, "m1")[0], "m1")]


@pytest.mark.rule("sds-r-scenario-4", "sds-r-group-2", "sds-r-receive-8")
def test_only_participants_in_the_response_group_answer() -> None:
    """Each message of an absent sender is answered by one of its own group."""
    profile = replace(LASTING, response_groups=3)
    holders = [f"p{number}" for number in range(8)]
    ids = [f"m{number}" for number in range(6)]
    groups = {
        message_id: {
            one
            for one in holders
            if in_response_group(one, "alice", message_id, 3, profile.repair_hash)
        }
        for message_id in ids
    }
    assert all(0 < len(group) < len(holders) for group in groups.values())
    bus = Bus("alice", "bob", *holders, profile=replace(profile, causal_history_size=9))
    for message_id in ids:
        bus.send("alice", message_id, lost_for={"bob"})
    bus.send("p0", "last")
    bus.offline = {"alice"}
    bus.run(10 * MINUTE)
    answers = {message_id: by for by, message_id in bus.answers()}
    assert sorted(answers) == ids
    assert all(by in groups[message_id] for message_id, by in answers.items())
    assert bus.participants["bob"].missing == ()


@pytest.mark.rule("sds-r-scenario-4", "sds-r-group-3")
def test_message_with_nobody_else_in_its_group_waits_for_its_sender() -> None:
    """Holders outside the group do not answer; bob requests again."""
    profile = replace(LASTING, response_groups=1_000)
    bus = Bus("alice", "bob", "carol", "dave", profile=profile)
    bus.send("alice", "m1", lost_for={"bob"})
    bus.send("carol", "m2")
    bus.offline = {"alice"}
    bus.run(T_MAX_MS + LONGEST_SYNC_MS)
    assert {by for _, by, _ in requests(bus)} == {"bob"}
    assert bus.answers() == []
    bus.offline = set()
    bus.run(5 * MINUTE)
    assert bus.answers() == [("alice", "m1")]
    assert bus.logs() == {("m1", "m2")}


@pytest.mark.rule("sds-r-scenario-5", "sds-r-memory-2")
@pytest.mark.parametrize("eviction", list(Eviction))
def test_overflow_evicts_requests_by_its_rule(eviction: Eviction) -> None:
    """The others are carried and answered."""
    profile = replace(
        SPEC,
        repair_buffer_limit=4,
        repair_eviction=eviction,
        causal_history_size=9,
        sync_interval_ms=60 * MINUTE,
    )
    ids = [f"m{number}" for number in range(6)]
    bus = Bus("alice", "bob", "carol", profile=profile)
    for message_id in ids:
        bus.send("alice", message_id, lost_for={"bob"})
    bus.send("carol", "last")
    given_up = [event.message_id for _, _, event in bus.events(Evicted)]
    assert bus.events(Evicted) == [
        (START_MS, "bob", Evicted(Buffer.REPAIR_REQUESTS, one)) for one in given_up
    ]
    # In the order of naming, each time the buffer is over its limit.
    kept: list[str] = []
    expected: list[str] = []
    for message_id in ids:
        kept.append(message_id)
        kept.sort(key=lambda one: request_offset_ms("bob", one, profile))
        if len(kept) > 4:
            expected.append(kept.pop(0 if eviction is Eviction.EARLIEST else -1))
    assert given_up == expected
    bus.run(T_MAX_MS)
    for message_id in ("b1", "b2", "b3"):
        bus.send("bob", message_id)
    assert [message_id for _, _, message_id in requests(bus)] == kept
    bus.run(profile.repair_sweep_ms)
    assert sorted(bus.answers()) == [("alice", one) for one in sorted(kept)]
    left = [one.message_id for one in bus.participants["bob"].missing]
    assert left == sorted(given_up)


@pytest.mark.rule("sds-r-scenario-5")
@pytest.mark.parametrize("eviction", list(Eviction))
def test_overflow_does_not_prevent_repairs(eviction: Eviction) -> None:
    """Later histories queue the evicted requests again."""
    profile = replace(
        LASTING, repair_buffer_limit=4, repair_eviction=eviction, causal_history_size=9
    )
    ids = tuple(f"m{number}" for number in range(6))
    bus = Bus("alice", "bob", "carol", profile=profile)
    for message_id in ids:
        bus.send("alice", message_id, lost_for={"bob"})
    bus.send("carol", "last")
    bus.run(20 * MINUTE)
    assert bus.events(IrretrievablyLost) == []
    assert bus.logs() == {(*ids, "last")}


@pytest.mark.rule("sds-r-scenario-6", "sds-r-edge-2")
def test_partition_longer_than_the_window_heals_after_it() -> None:
    """Requests that reach nobody expire and are repeated."""
    bus = Bus("alice", "bob", "carol", profile=LASTING)
    bus.send("alice", "m1", lost_for={"bob"})
    bus.send("carol", "m2")
    bus.offline = {"bob"}
    bus.run(T_MAX_MS + T_MAX_MS + SECOND)
    asked = requests(bus)
    assert {(by, message_id) for _, by, message_id in asked} == {("bob", "m1")}
    expired = [(by, event) for _, by, event in bus.events(RepairExpired)]
    assert expired == [("bob", RepairExpired("m1"))]
    assert bus.answers() == []
    bus.offline = set()
    bus.run(T_MAX_MS + LONGEST_SYNC_MS + SPEC.repair_sweep_ms)
    assert len(requests(bus)) == len(asked) + 1
    assert bus.answers() == [("alice", "m1")]
    assert bus.logs() == {("m1", "m2")}


@pytest.mark.rule("sds-r-scenario-6")
def test_partition_longer_than_all_timeouts_loses_messages() -> None:
    """Waiting messages are delivered without them; later repairs work."""
    bus = Bus("alice", "bob", "carol")
    bus.send("alice", "m1", lost_for={"bob"})
    bus.send("carol", "m2")
    bus.offline = {"bob"}
    bus.run(20 * MINUTE)
    lost = [(by, event.message_id) for _, by, event in bus.events(IrretrievablyLost)]
    assert lost == [("bob", "m1")]
    bob = bus.participants["bob"]
    assert bob.log == ("m2",)
    asked = len(requests(bus))
    bus.offline = set()
    bus.run(10 * MINUTE)
    assert len(requests(bus)) == asked
    bus.send("alice", "m3", lost_for={"bob"})
    bus.send("carol", "m4")
    bus.run(10 * MINUTE)
    assert bus.answers() == [("alice", "m3")]
    assert bob.log == ("m2", "m3", "m4")
    assert bob.waiting == ()


@pytest.mark.rule("sds-r-receive-6", "sds-r-concept-4")
def test_one_request_serves_all_who_miss_the_message() -> None:
    """Others who receive it do not request, but use the answer."""
    without = ["bob", "dave", "erin", "frank"]
    bus = Bus("alice", "carol", *without)
    bus.send("alice", "m1", lost_for=without)
    bus.send("carol", "m2")
    bus.run(10 * MINUTE)
    ((asked_ms, by, _),) = requests(bus)
    assert by in without
    assert asked_ms >= START_MS + min(
        request_offset_ms(one, "m1", SPEC) for one in without
    )
    assert bus.answers() == [("alice", "m1")]
    assert bus.logs() == {("m1", "m2")}


@pytest.mark.rule("sds-r-receive-6", "sds-r-concept-4")
def test_one_request_is_enough_however_long_the_answer_takes() -> None:
    """Of several who miss the message, none asks again while the answer may come."""
    without = ["bob", "dave", "erin", "frank"]
    slowest = max(
        (f"m{number}" for number in range(40)),
        key=lambda one: response_offset_ms("carol", "alice", one, SPEC),
    )
    wait_ms = response_offset_ms("carol", "alice", slowest, SPEC)
    assert wait_ms > T_MAX_MS * 0.9
    bus = Bus("alice", "carol", *without, profile=LASTING)
    bus.send("alice", slowest, lost_for=without)
    bus.send("carol", "last")
    bus.offline = {"alice"}
    bus.run(10 * MINUTE)
    ((asked_ms, by, _),) = requests(bus)
    t_req_ms = {one: request_offset_ms(one, slowest, SPEC) for one in without}
    others = [at_ms for one, at_ms in t_req_ms.items() if one != by]
    assert START_MS + min(others) < asked_ms + wait_ms
    assert bus.answers() == [("carol", slowest)]


@pytest.mark.rule("sds-r-receive-6", "sds-r-edge-2")
def test_unanswered_request_of_another_is_followed_by_our_own() -> None:
    """After T_max; until then all who received it wait."""
    profile = replace(LASTING, repair_retention_ms=None)
    bus = Bus("alice", "bob", "carol", "dave", profile=profile)
    bus.send("alice", "m1", lost_for={"bob", "dave"})
    bus.send("carol", "m2")
    first, second = sorted(
        ("bob", "dave"), key=lambda one: request_offset_ms(one, "m1", SPEC)
    )
    bus.offline = {"alice", "carol"}
    bus.run(T_MAX_MS)
    ((first_ms, asked_by, _),) = requests(bus)
    assert asked_by == first
    # From here on the second is on its own with somebody who can answer.
    bus.offline = {"alice", first}
    bus.run(6 * MINUTE)
    again_ms = first_ms + T_MAX_MS + request_offset_ms(second, "m1", SPEC)
    (second_ms,) = (at_ms for at_ms, by, _ in requests(bus) if by == second)
    assert again_ms <= second_ms <= again_ms + LONGEST_SYNC_MS
    assert bus.answers() == [("carol", "m1")]
    assert bus.participants[second].log == ("m1", "m2")


@pytest.mark.rule("sds-r-send-2", "sds-r-performance-3")
def test_five_gaps_are_requested_in_two_messages_and_repaired() -> None:
    """Three, then two, the most overdue first."""
    ids = [f"m{number}" for number in range(1, 6)]
    profile = replace(SPEC, causal_history_size=9, sync_interval_ms=60 * MINUTE)
    bus = Bus("alice", "bob", "carol", profile=profile)
    for message_id in ids:
        bus.send("alice", message_id, lost_for={"bob"})
    bus.send("carol", "last")
    bus.run(T_MAX_MS)
    assert requests(bus) == []
    bus.send("bob", "b1")
    bus.send("bob", "b2")
    order = tuple(sorted(ids, key=lambda one: request_offset_ms("bob", one, profile)))
    carried = [event for _, _, event in bus.events(RepairRequested)]
    assert carried == [
        RepairRequested(order[:3], "b1"),
        RepairRequested(order[3:], "b2"),
    ]
    bus.run(profile.repair_sweep_ms)
    assert sorted(bus.answers()) == [("alice", one) for one in ids]
    assert bus.participants["bob"].missing == ()


@pytest.mark.rule("sds-r-sync-1", "sds-r-sync-2", "sds-r-sync-3")
def test_listener_in_a_busy_channel_sends_requests() -> None:
    """Traffic postpones sync messages, but not those with requests."""
    bus = Bus("alice", "bob", "carol")
    bus.send("alice", "m1", lost_for={"bob"})
    for number in range(100):
        bus.send("carol", f"c{number:02}")
        bus.run(2 * SECOND)
    ((asked_ms, by, _),) = requests(bus)
    assert by == "bob"
    assert asked_ms <= START_MS + request_offset_ms("bob", "m1", SPEC) + LONGEST_SYNC_MS
    assert bus.answers() == [("alice", "m1")]
    assert bus.participants["bob"].waiting == ()
    assert len(bus.logs()) == 1


def test_empty_sync_messages_are_not_sent() -> None:
    """A channel without messages is silent."""
    bus = Bus("alice", "bob")
    bus.run(10 * MINUTE)
    assert bus.aired == []


@pytest.mark.rule("sds-r-concept-1")
def test_without_repair_a_missing_message_stays_missing() -> None:
    """So the other scenarios do test SDS-R."""
    bus = Bus("alice", "bob", "carol", profile=replace(SPEC, repair=False))
    bus.send("alice", "m1", lost_for={"bob"})
    bus.send("carol", "m2")
    bus.run(5 * MINUTE)
    assert (requests(bus), bus.answers()) == ([], [])
    assert bus.participants["bob"].waiting == ("m2",)
