"""The fullest filter of a channel, and when it passes 1 % (docs/figures.md, 9).

Filters of default size have 150,000 bits and 10 hash functions: at a fill of
0.01^(1/10), or 63.1 %, they hold 14,953 ids and one id in a hundred seems to be in.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from sds_core.observer.sds.totals import BloomGauge
from sds_core.observer.settings import DEFAULTS
from sds_core.wire import BloomFilter, BloomParameters, Dialect
from tests.support.channel import Channel
from tests.support.frames import START_MS, bloom

AT = 60_000
LATELY = 600_000
HORIZON = 3_600_000

HALF = 58_876
"""Bits set by half of the ids that make 1 %: (1 - fill) is the root of 36.9 %."""

TWICE = 129_571
"""By twice as many."""

NEARLY_MS = 50
"""A bit is a tenth of an id: forecasts are no more exact than that."""


@pytest.fixture
def channel() -> Channel:
    """A channel that has warmed up, at 60 s."""
    return Channel.after_warm_up()


def worst(channel: Channel) -> BloomGauge:
    """The fullest filter."""
    gauge = channel.totals.bloom_worst
    assert gauge is not None
    return gauge


def fill(
    channel: Channel, at: int, bits_set: int, by: str = "bob", lamport: int = 0
) -> None:
    """A participant's sync whose filter has this many bits set."""
    channel.sync(by, at, lamport or at, filter_=bloom(bits_set=bits_set))


def forecast(channel: Channel) -> int | None:
    """When the fullest filter passes 1 %, in the time of the records."""
    passes_ms = worst(channel).one_percent_ms
    return None if passes_ms is None else passes_ms - START_MS


# The fullest.


def test_channel_without_filters_has_no_fullest(channel: Channel) -> None:
    """The same holds if its filters are unusable."""
    channel.sync("bob", AT)
    channel.sync("bob", AT, filter_=b"\x01")
    assert channel.totals.bloom_worst is None


def test_filter_is_gauged_by_its_bits(channel: Channel) -> None:
    """The gauge has bits set, size in bits and number of hash functions."""
    fill(channel, AT, 1_234)
    assert worst(channel) == BloomGauge(1_234, 150_000, 10)


def test_content_has_a_filter_as_sync_has(channel: Channel) -> None:
    """Only in its first copy, not in a rebroadcast."""
    frame = channel.content("m", "bob", AT, filter_=bloom(bits_set=50))
    channel.take(frame._replace(bloom_filter=bloom(bits_set=70)), AT + 5_000)
    ephemeral = channel.frames.ephemeral("bob")
    channel.take(ephemeral._replace(bloom_filter=bloom(bits_set=90)), AT + 5_000)
    assert worst(channel).bits_set == 50


def test_filter_of_an_ephemeral_frame_is_ignored(channel: Channel) -> None:
    """Also if it is the sender's only one: its age is unknown."""
    frame = channel.frames.ephemeral("bob")
    channel.take(frame._replace(bloom_filter=bloom(bits_set=90)), AT)
    assert channel.totals.bloom_worst is None


def test_fullest_is_the_filter_with_the_highest_rate() -> None:
    """It need not be the one with the most bits set."""
    smaller = BloomFilter(Dialect.NIM, BloomParameters(capacity=10, error_rate=0.001))
    smaller.add_all(["a", "b", "c", "d", "e"])
    channel = Channel.after_warm_up(dialect=Dialect.NIM)
    for name, filter_ in (
        ("bob", bloom(dialect=Dialect.NIM, bits_set=1_000)),
        ("carol", smaller.to_wire()),
        ("dave", bloom(dialect=Dialect.NIM, bits_set=2_000)),
    ):
        channel.sync(name, AT, filter_=filter_)
    assert worst(channel).m_bits == smaller.m_bits
    assert worst(channel).bits_set == smaller.bits_set()


def test_newest_filter_of_each_sender_counts(channel: Channel) -> None:
    """By Lamport timestamp; after a roll-over it may no longer be the fullest."""
    fill(channel, AT, 1_000, lamport=5)
    fill(channel, AT + 1, 500, lamport=6)
    assert worst(channel).bits_set == 500
    fill(channel, AT + 2, 900, lamport=5)
    fill(channel, AT + 3, 900, lamport=6)
    assert worst(channel).bits_set == 500


def test_senders_without_a_name_count_as_one(channel: Channel) -> None:
    """The newest of all their filters counts."""
    fill(channel, AT, 1_000, by="", lamport=5)
    fill(channel, AT + 1, 500, by="", lamport=6)
    assert worst(channel).bits_set == 500


def test_filter_counts_for_ten_minutes(channel: Channel) -> None:
    """By the event time of its frame; the view has a deadline at the end."""
    fill(channel, AT, 1_000, by="bob")
    fill(channel, AT + 20_000, 500, by="carol")
    channel.clock(AT + LATELY)
    assert worst(channel).bits_set == 1_000
    assert channel.wake() == AT + LATELY
    assert worst(channel).bits_set == 500
    channel.clock(AT + 20_000 + LATELY)
    assert worst(channel).bits_set == 500
    assert channel.wake() == AT + 20_000 + LATELY
    assert channel.totals.bloom_worst is None


def test_filter_counts_for_longer_than_messages_are_tracked() -> None:
    """The setting may be longer than two retention windows."""
    lately = 6 * HORIZON
    channel = Channel.after_warm_up(replace(DEFAULTS, lately_ms=lately))
    fill(channel, AT, 1_000)
    for at in range(HORIZON, lately, HORIZON):
        channel.clock(AT + at)
        assert worst(channel).bits_set == 1_000
    channel.clock(AT + lately)
    assert worst(channel).bits_set == 1_000
    channel.clock(AT + lately + 1)
    assert channel.totals.bloom_worst is None


def test_late_record_counts_by_its_own_time(channel: Channel) -> None:
    """Ten minutes run from its event time, not from when it was read."""
    channel.clock(AT + LATELY + 1)
    fill(channel, AT, 1_000)
    assert channel.totals.bloom_worst is None
    fill(channel, AT + 1, 1_000, by="carol")
    assert worst(channel).bits_set == 1_000


# When it passes 1 %.


def test_filter_that_grows_passes_one_percent(channel: Channel) -> None:
    """If half of the ids took a minute, the rest takes another."""
    fill(channel, AT, 0)
    fill(channel, AT + 60_000, HALF)
    assert forecast(channel) == pytest.approx(AT + 120_000, abs=NEARLY_MS)


def test_forecast_of_one_percent_does_not_depend_on_the_verdict() -> None:
    """A channel may be degraded only at a higher rate."""
    channel = Channel.after_warm_up(replace(DEFAULTS, saturated_rate=0.2))
    fill(channel, AT, 0)
    fill(channel, AT + 60_000, HALF)
    assert forecast(channel) == pytest.approx(AT + 120_000, abs=NEARLY_MS)


@pytest.mark.parametrize(("lasted_ms", "known"), [(59_999, False), (60_000, True)])
def test_growth_takes_a_minute_to_show(
    channel: Channel, lasted_ms: int, known: bool
) -> None:
    """Ids arrive in bursts."""
    fill(channel, AT, 0)
    fill(channel, AT + lasted_ms, HALF)
    assert (forecast(channel) is not None) is known


def test_filter_that_does_not_grow_never_passes(channel: Channel) -> None:
    """The same holds for a filter that was seen once."""
    fill(channel, AT, HALF)
    assert forecast(channel) is None
    fill(channel, AT + 60_000, HALF)
    assert forecast(channel) is None


@pytest.mark.parametrize(("bits_set", "known"), [(10, False), (200, True)])
def test_far_future_is_not_forecast(
    channel: Channel, bits_set: int, known: bool
) -> None:
    """At an id per hour it would take 17 years; a year is the limit."""
    fill(channel, AT, 0)
    fill(channel, AT + HORIZON - 1, bits_set)
    assert (forecast(channel) is not None) is known


def test_filter_that_has_passed_says_since_when(channel: Channel) -> None:
    """The time is computed from the same growth."""
    fill(channel, AT, 0)
    fill(channel, AT + 120_000, TWICE)
    assert worst(channel).false_positive_ratio > 0.2
    assert forecast(channel) == pytest.approx(AT + 60_000, abs=NEARLY_MS)


@pytest.mark.parametrize("was_full", [False, True])
def test_filter_with_every_bit_set_has_passed(channel: Channel, was_full: bool) -> None:
    """Its ids cannot be estimated, so the time is that of the frame."""
    full = BloomFilter(Dialect.SPEC)
    full.bits[:] = b"\xff" * len(full.bits)
    channel.sync("bob", AT, 1, filter_=full.to_wire() if was_full else bloom())
    channel.sync("bob", AT + 60_000, 2, filter_=full.to_wire())
    assert worst(channel).false_positive_ratio == 1
    assert forecast(channel) == AT + 60_000


def test_roll_over_begins_the_growth_anew(channel: Channel) -> None:
    """Growth before it does not predict growth after it."""
    fill(channel, AT, HALF)
    fill(channel, AT + 60_000, 0)
    assert forecast(channel) is None
    fill(channel, AT + 119_999, HALF)
    assert forecast(channel) is None
    fill(channel, AT + 120_000, HALF)
    assert forecast(channel) == pytest.approx(AT + 180_000, abs=NEARLY_MS)


def test_growth_is_that_of_the_last_hour_or_two(channel: Channel) -> None:
    """From the frame an hour back if there is one, and never from further back."""
    fill(channel, AT, 0)
    fill(channel, AT + HORIZON, HALF)
    # Not yet an hour after that: the growth of nearly two.
    fill(channel, AT + 2 * HORIZON - 1, HALF)
    expected = AT + 4 * HORIZON
    assert forecast(channel) == pytest.approx(expected, abs=100 * NEARLY_MS)
    # Now nothing has grown for an hour.
    fill(channel, AT + 2 * HORIZON, HALF)
    assert forecast(channel) is None


def test_participant_that_changes_its_dialect_begins_anew(channel: Channel) -> None:
    """Filters of two dialects cannot be compared."""
    fill(channel, AT, 0, lamport=9_000)
    nim = bloom(dialect=Dialect.NIM, bits_set=HALF)
    channel.sync("bob", AT + 60_000, 1, filter_=nim, dialect=Dialect.NIM)
    assert worst(channel).bits_set == HALF
    assert forecast(channel) is None
