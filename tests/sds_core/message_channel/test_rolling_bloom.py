"""The filter of received ids and its roll-over (SDS, "Participant state")."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from sds_core.message_channel import MessageChannel, Profile
from sds_core.wire import (
    DEFAULT_PARAMETERS,
    BloomFilter,
    BloomParameters,
    Dialect,
)
from tests.support.frames import START_MS, FrameFactory
from tests.support.participants import CHANNEL, SPEC, frame_of, participant, receive

SMALL = BloomParameters(20, 0.001)
LARGER = BloomParameters(24, 0.001)
ROLLING = replace(
    SPEC, repair=False, bloom=SMALL, bloom_rollover_ids=20, bloom_kept_ids=10
)
NIM = replace(
    Profile.nim_sds(),
    bloom=SMALL,
    bloom_rollover_ids=24,
    bloom_kept_ids=16,
    bloom_rolled=LARGER,
)
JS = replace(Profile.js_sds(), repair=False, bloom=SMALL)


def ids(count: int) -> list[str]:
    """Ids of messages, in the order in which they come."""
    return [f"m{number}" for number in range(count)]


def filled(profile: Profile, count: int) -> MessageChannel:
    """A participant who has received so many messages."""
    bob = participant("bob", profile)
    frames = FrameFactory(CHANNEL, profile.dialect)
    start = START_MS // profile.lamport_unit_ms
    receive(
        bob,
        *(
            frames.content(one, "alice", start + number)
            for number, one in enumerate(ids(count))
        ),
    )
    return bob


def filter_of(channel: MessageChannel) -> bytes:
    """The filter as it goes out."""
    return frame_of(channel.sync(START_MS)).bloom_filter


def one_by_one(
    message_ids: list[str], parameters: BloomParameters, dialect: Dialect = Dialect.SPEC
) -> bytes:
    """A filter of just these ids."""
    filter_ = BloomFilter(dialect, parameters)
    for message_id in message_ids:
        filter_.add(message_id)
    return filter_.to_wire()


@pytest.mark.parametrize("count", [1, 7, 8, 20])
def test_filter_equals_one_with_ids_added_one_by_one(count: int) -> None:
    """For any number of ids that wait until it is read."""
    assert filter_of(filled(ROLLING, count)) == one_by_one(ids(count), SMALL)


@pytest.mark.parametrize("count", [1_024, 1_025, 1_026, 2_500])
def test_pending_ids_are_not_lost(count: int) -> None:
    """Many of them are added at once."""
    profile = replace(SPEC, repair=False)
    expected = one_by_one(ids(count), DEFAULT_PARAMETERS)
    assert filter_of(filled(profile, count)) == expected


def test_filter_has_ids_added_between_two_reads() -> None:
    """Its bytes are not cached for ever."""
    bob = filled(ROLLING, 3)
    assert filter_of(bob) == one_by_one(ids(3), SMALL)
    assert filter_of(bob) == one_by_one(ids(3), SMALL)
    receive(bob, FrameFactory(CHANNEL).content("m3", "alice"))
    assert filter_of(bob) == one_by_one(ids(4), SMALL)


@pytest.mark.rule("sds-state-2")
@pytest.mark.parametrize("used_before", [False, True])
def test_full_filter_is_computed_anew_of_the_newest_ids(used_before: bool) -> None:
    """The first id beyond its capacity triggers it."""
    bob = filled(ROLLING, 20)
    if used_before:
        assert filter_of(bob) == one_by_one(ids(20), SMALL)
    receive(bob, FrameFactory(CHANNEL).content("m20", "alice"))
    assert filter_of(bob) == one_by_one(ids(21)[-10:], SMALL)


@pytest.mark.rule("sds-state-2", "sds-state-3", "sds-default-1", "sds-default-2")
@pytest.mark.parametrize("profile", [SPEC, Profile()], ids=["spec", "default"])
def test_filter_of_a_participant_has_room_for_10_000_ids(profile: Profile) -> None:
    """It holds them all with few false positives; one more, and it is rolled over."""
    bob = filled(replace(profile, repair=False), 10_000)
    full = BloomFilter.from_wire(Dialect.SPEC, filter_of(bob))
    assert all(full.contains(one) for one in ids(10_000))
    others = sum(full.contains(f"other{number}") for number in range(20_000))
    assert others < 20_000 * 0.0015
    assert 0.0005 < full.false_positive_rate() < 0.0015
    receive(bob, FrameFactory(CHANNEL).content("m10000", "alice", START_MS + 10_000))
    assert filter_of(bob) == one_by_one(ids(10_001)[-5_000:], DEFAULT_PARAMETERS)


@pytest.mark.parametrize("count", [22, 31, 32, 45])
def test_filter_rolls_over_repeatedly(count: int) -> None:
    """Here every 11 ids."""
    rolled = 21 + (count - 21) // 11 * 11
    assert filter_of(filled(ROLLING, count)) == one_by_one(
        ids(count)[rolled - 10 :], SMALL
    )


def test_filter_of_nim_sds_grows_at_a_roll_over() -> None:
    """To 1.2 times its capacity, with the newest 0.8 times; SDS's does not."""
    nim = Dialect.NIM
    assert filter_of(filled(NIM, 24)) == one_by_one(ids(24), SMALL, nim)
    assert filter_of(filled(NIM, 25)) == one_by_one(ids(25)[-16:], LARGER, nim)
    assert filter_of(filled(NIM, 26)) == one_by_one(ids(26)[-17:], LARGER, nim)


def test_filter_of_js_sds_never_rolls_over() -> None:
    """It fills up."""
    bob = filled(JS, 1_500)
    assert filter_of(bob) == one_by_one(ids(1_500), SMALL)
    receive(bob, FrameFactory(CHANNEL).content("m1500", "alice"))
    assert filter_of(bob) == one_by_one(ids(1_501), SMALL)


@pytest.mark.parametrize("profile", [ROLLING, NIM, JS], ids=["spec", "nim", "js"])
@pytest.mark.parametrize("count", [0, 5, 24, 25, 30])
def test_filter_is_the_same_after_a_restart(profile: Profile, count: int) -> None:
    """Now and at the next roll-over."""
    bob = filled(profile, count)
    restored = MessageChannel.restore(bob.snapshot(), random=Random(1), profile=profile)
    frames = FrameFactory(CHANNEL, profile.dialect)
    later = START_MS // profile.lamport_unit_ms + 99
    for number in range(30):
        for one in (bob, restored):
            receive(one, frames.content(f"later{number}", "alice", later))
    assert filter_of(restored) == filter_of(bob)


@pytest.mark.rule("sds-state-3", "sds-default-1", "sds-default-2")
@pytest.mark.parametrize(
    "profile", [Profile.spec(), Profile.js_sds(), Profile.nim_sds()]
)
def test_filter_is_made_for_few_false_positives(profile: Profile) -> None:
    """10,000 ids at 0.001 in all profiles, also when full."""
    assert profile.bloom.capacity == 10_000
    assert profile.bloom.error_rate == 0.001
    filter_ = BloomFilter(profile.dialect, profile.bloom)
    filter_.add_all(ids(10_000))
    assert filter_.false_positive_rate() < 0.0015


ANY_IDS = ["", "a", "é", "🎉" * 40, "0" * 64, "\x00", *ids(50)]


@pytest.mark.parametrize("dialect", [Dialect.SPEC, Dialect.NIM])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, len(ANY_IDS)])
@pytest.mark.parametrize("parameters", [SMALL, DEFAULT_PARAMETERS])
def test_ids_added_at_once_set_the_same_bits(
    dialect: Dialect, count: int, parameters: BloomParameters
) -> None:
    """Few or many, in an empty or a used filter."""
    at_once = BloomFilter(dialect, parameters)
    at_once.add("before")
    at_once.add_all(ANY_IDS[:count])
    assert at_once.to_wire() == one_by_one(
        ["before", *ANY_IDS[:count]], parameters, dialect
    )


def test_hashes_of_any_sign_set_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least integer has no positive counterpart in nim-sds."""
    least, greatest = -(1 << 63), (1 << 63) - 1
    pairs = [
        (a, b)
        for a in (least, -1, 0, 7, greatest)
        for b in (least, -9, 0, 12_345, greatest)
    ]
    hashes = {f"id{number}": pair for number, pair in enumerate(pairs)}
    monkeypatch.setattr(
        "sds_core.wire.bloom.id_hashes", lambda message_id, _dialect: hashes[message_id]
    )
    for dialect in Dialect:
        at_once = BloomFilter(dialect, SMALL)
        at_once.add_all(list(hashes))
        assert at_once.to_wire() == one_by_one(list(hashes), SMALL, dialect)
