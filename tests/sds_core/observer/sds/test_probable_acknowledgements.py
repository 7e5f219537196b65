"""Probable acknowledgement of a message by filters (docs/figures.md, 4)."""

from __future__ import annotations

import pytest

from sds_core.wire import Dialect
from tests.support.channel import Channel
from tests.support.frames import Record, bloom

# A filter with so many of its 150,000 bits set has a rate just below 1e-6 (k is
# 10); with one more it has not: (37678 / 150000) ** 10 = 0.99990e-6.
MOST_BITS_BELOW_THE_RATE = 37_678

RATE_OF_90_PERCENT = 148_428
"""Number of set bits: (148428 / 150000) ** 10 = 0.9."""

# With so many bits set, 64 filters are enough together: (146796 / 150000) ** 640 =
# 0.997e-6. With one more they are not.
MOST_BITS_OF_A_LATE_WITNESS = 146_796

DEADLINE = 60_000 + 120_000
"""Of a message first seen at 60 s."""


def test_filter_of_the_only_other_participant_is_probable(channel: Channel) -> None:
    """In a channel of two, one filter with a low rate is enough."""
    channel.content("m", "alice", at=60_000)
    channel.sync("bob", at=62_000, holds=["m"])
    totals = channel.totals
    assert totals.acknowledged_probable == 1
    assert totals.acknowledged_in_time == 1
    assert totals.acknowledged_definite == 0
    assert totals.probable_latency.sum_ms == 2_000


def test_filter_without_the_id_is_no_evidence(channel: Channel) -> None:
    """It does not hold the id."""
    channel.content("m", "alice", at=60_000)
    channel.sync("bob", at=62_000, holds=["other"])
    assert channel.totals.acknowledged_probable == 0


@pytest.mark.parametrize("dialect", Dialect)
def test_each_dialect_has_filters_of_its_own(dialect: Dialect) -> None:
    """Hash function and bit order follow the dialect of the frame."""
    channel = Channel.after_warm_up(dialect=dialect)
    channel.content("m", "alice", at=60_000)
    channel.sync("bob", at=62_000, holds=["m"])
    assert channel.totals.acknowledged_probable == 1


@pytest.mark.parametrize(("bits_set", "probable"), [(0, 1), (1, 0)])
def test_rate_must_lie_below_one_in_a_million(
    channel: Channel, bits_set: int, probable: int
) -> None:
    """With one more bit in the filter the rate is 1e-6 or more."""
    channel.content("m", "alice", at=60_000)
    filter_ = bloom(["m"], bits_set=MOST_BITS_BELOW_THE_RATE + bits_set)
    channel.sync("bob", at=62_000, filter_=filter_)
    assert channel.totals.acknowledged_probable == probable


def test_rates_of_distinct_participants_are_multiplied(channel: Channel) -> None:
    """Two filters at about 1e-4 are enough together; one is not."""
    half = bloom(["m"], bits_set=60_000)
    channel.content("m", "alice", at=60_000)
    channel.sync("bob", at=61_000, filter_=half)
    assert channel.totals.acknowledged_probable == 0
    channel.sync("carol", at=62_000, filter_=half)
    assert channel.totals.acknowledged_probable == 1
    assert channel.totals.probable_latency.sum_ms == 2_000


def test_one_participant_counts_once(channel: Channel) -> None:
    """Its second filter adds nothing (js-waku counts it twice)."""
    half = bloom(["m"], bits_set=60_000)
    channel.content("m", "alice", at=60_000)
    for at in (61_000, 62_000, 63_000):
        channel.sync("bob", at=at, filter_=half)
    assert channel.totals.acknowledged_probable == 0


def test_first_filter_of_each_participant_gives_the_rate(channel: Channel) -> None:
    """A later filter with a lower rate does not replace it."""
    channel.content("m", "alice", at=60_000)
    channel.sync("bob", at=61_000, filter_=bloom(["m"], bits_set=60_000))
    channel.sync("bob", at=62_000, holds=["m"])
    assert channel.totals.acknowledged_probable == 0


@pytest.mark.parametrize(
    ("others", "needed"), [([], 1), (["bob"], 1), (["bob", "carol"], 2)]
)
def test_needed_witnesses_are_the_active_others_up_to_two(
    channel: Channel, others: list[str], needed: int
) -> None:
    """Two, but no more than active others, and at least one."""
    channel.sync("alice", at=58_000)
    for other in others:
        channel.sync(other, at=59_000)
    channel.content("m", "alice", at=60_000)
    for count, witness in enumerate(["xeno", "yves"], start=1):
        channel.sync(witness, at=61_000, holds=["m"])
        assert channel.totals.acknowledged_probable == int(count >= needed)


def test_never_more_than_two_witnesses_are_needed(channel: Channel) -> None:
    """Whatever the number of others."""
    for other in ("bob", "carol", "dave", "erin"):
        channel.sync(other, at=59_000)
    channel.content("m", "alice", at=60_000)
    channel.sync("bob", at=61_000, holds=["m"])
    channel.sync("carol", at=61_000, holds=["m"])
    assert channel.totals.acknowledged_probable == 1


@pytest.mark.parametrize(
    ("at", "active"), [(59_999, True), (60_000, False)], ids=["before", "at t0"]
)
def test_participant_that_spoke_before_t0_is_active(
    channel: Channel, at: int, active: bool
) -> None:
    """A first copy at t0 itself does not make its sender active."""
    channel.sync("bob", at=59_000)
    channel.sync("carol", at=at)
    channel.content("m", "alice", at=60_000)
    channel.sync("bob", at=61_000, holds=["m"])
    assert channel.totals.acknowledged_probable == int(not active)


@pytest.mark.parametrize(
    ("silent_ms", "active"), [(3_600_000, True), (3_600_001, False)]
)
def test_participant_that_spoke_within_the_horizon_is_active(
    channel: Channel, silent_ms: int, active: bool
) -> None:
    """A participant silent for longer than 3600 s is not active."""
    channel.sync("carol", at=61_000)
    channel.sync("bob", at=61_000 + silent_ms - 1)
    channel.content("m", "alice", at=61_000 + silent_ms)
    channel.sync("bob", at=61_000 + silent_ms + 1_000, holds=["m"])
    assert channel.totals.acknowledged_probable == int(not active)


def test_participant_that_is_only_named_is_not_active(channel: Channel) -> None:
    """A sender that only a history names has not spoken."""
    channel.sync("bob", at=59_000, history=[("x", "carol"), ("y", "dave")])
    channel.content("m", "alice", at=60_000)
    channel.sync("bob", at=61_000, holds=["m"])
    assert channel.totals.acknowledged_probable == 1


def test_filter_before_the_message_is_no_evidence(channel: Channel) -> None:
    """Only frames after the message count."""
    channel.sync("bob", at=60_000, holds=["m"])
    channel.content("m", "alice", at=61_000)
    assert channel.totals.acknowledged_probable == 0


def test_filter_in_a_rebroadcast_is_evidence(channel: Channel) -> None:
    """Every frame after the message counts that is no replica."""
    channel.content("b", "bob", at=59_000, waku_hash="1")
    channel.content("m", "alice", at=60_000)
    channel.content("b", "bob", at=61_000, holds=["m"], waku_hash="2")
    assert channel.totals.acknowledged_probable == 1


@pytest.mark.parametrize("strangers", [63, 64, 200])
@pytest.mark.parametrize("is_divided", [False, True])
def test_strangers_with_nearly_full_filters_keep_out_no_witness(
    channel: Channel, strangers: int, is_divided: bool
) -> None:
    """Whoever invents senders fills the places of weak witnesses only."""
    frames, weak = channel.frames, bloom(["m"], bits_set=RATE_OF_90_PERCENT)
    channel.content("m", "alice", at=60_000)
    records = [
        *(
            Record(61_000, frames.sync(f"stranger{number}", filter_=weak))
            for number in range(strangers)
        ),
        Record(62_000, frames.sync("bob", holds=["m"])),
    ]
    for batch in [[record] for record in records] if is_divided else [records]:
        assert channel.totals.acknowledged_probable == 0
        channel.take_records(batch)
    assert channel.totals.acknowledged_probable == 1


def test_many_weak_witnesses_are_not_enough(channel: Channel) -> None:
    """The first 64 count, and their rates together are too high."""
    weak = bloom(["m"], bits_set=RATE_OF_90_PERCENT)
    channel.content("m", "alice", at=60_000)
    for number in range(140):
        channel.sync(f"stranger{number}", at=61_000, filter_=weak)
    assert 0.9**64 > 1e-6 > 0.9**140
    assert channel.totals.acknowledged_probable == 0


@pytest.mark.parametrize(("bits_set", "probable"), [(0, 1), (1, 0)])
def test_late_witnesses_count_if_64_of_them_are_enough(
    channel: Channel, bits_set: int, probable: int
) -> None:
    """Only such witnesses count after 64 others."""
    channel.content("m", "alice", at=60_000)
    full = b"\xff" * len(bloom())
    for number in range(64):
        channel.sync(f"stranger{number}", at=61_000, filter_=full)
    late = bloom(["m"], bits_set=MOST_BITS_OF_A_LATE_WITNESS + bits_set)
    for number in range(64):
        assert channel.totals.acknowledged_probable == 0
        channel.sync(f"late{number}", at=62_000, filter_=late)
    assert channel.totals.acknowledged_probable == probable


def test_history_is_tested_before_the_filter_of_one_frame(channel: Channel) -> None:
    """A message that is definite does not become probable."""
    channel.content("m", "alice", at=60_000)
    channel.sync("bob", at=61_000, history=["m"], holds=["m"])
    channel.sync("carol", at=62_000, holds=["m"])
    assert channel.totals.acknowledged_definite == 1
    assert channel.totals.acknowledged_probable == 0


def test_probable_message_that_becomes_definite_counts_in_both(
    channel: Channel,
) -> None:
    """Each kind is counted, and in_time once."""
    channel.content("m", "alice", at=60_000)
    channel.sync("bob", at=61_000, holds=["m"])
    channel.sync("bob", at=64_000, history=["m"])
    totals = channel.totals
    assert (totals.acknowledged_definite, totals.acknowledged_probable) == (1, 1)
    assert totals.acknowledged_in_time == 1
    assert totals.definite_latency.sum_ms == 4_000
    assert totals.probable_latency.sum_ms == 1_000


@pytest.mark.parametrize(("late_ms", "in_time"), [(0, 1), (1, 0)])
def test_probable_acknowledgement_has_the_same_deadline(
    channel: Channel, late_ms: int, in_time: int
) -> None:
    """At the deadline it is in time; later it still counts as acknowledged."""
    channel.content("m", "alice", at=60_000)
    channel.sync("bob", at=DEADLINE + late_ms, holds=["m"])
    channel.clock(DEADLINE + 1_000)
    assert channel.totals.acknowledged_in_time == in_time
    assert channel.totals.acknowledged_probable == 1


@pytest.mark.parametrize(
    "wrong", [bloom(["m"])[:-1], bloom(["m"]) + b"\0", b"\x01"], ids=["-1", "+1", "1"]
)
def test_filter_of_wrong_length_gives_no_evidence(
    channel: Channel, wrong: bytes
) -> None:
    """Its size is unknown; the frame and its history still count."""
    channel.content("m", "alice", at=60_000)
    channel.content("n", "alice", at=60_000, lamport=1_001)
    channel.sync("bob", at=61_000, filter_=wrong, history=["n"], requests=["m"])
    totals = channel.totals
    assert totals.acknowledged_probable == 0
    assert totals.acknowledged_definite == 1
    assert totals.frames["sync.spec"] == 2  # One of the warm-up.
    assert (totals.repair_requests, totals.repair_requests_for_received) == (1, 0)


def test_unusable_header_of_a_nim_filter_gives_no_evidence() -> None:
    """The frame still counts."""
    channel = Channel.after_warm_up(dialect=Dialect.NIM)
    channel.content("m", "alice", at=60_000)
    channel.sync("bob", at=61_000, filter_=b"\x0a\xff\xff")
    assert channel.totals.acknowledged_probable == 0
    assert channel.totals.frames["sync.nim"] == 2
