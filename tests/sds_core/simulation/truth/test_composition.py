"""What is known of a filter without reading it."""

from __future__ import annotations

import pytest

from sds_core.message_channel.profile import Profile
from sds_core.simulation.truth.composition import ReceivedIds
from sds_core.wire import BloomFilter, Dialect


@pytest.mark.parametrize("count", [1, 100, 5_000])
def test_false_positive_rate_is_that_of_a_real_filter_on_average(count: int) -> None:
    """Within a tenth, far less than what a decision turns on."""
    received, real = ReceivedIds(Profile.spec()), BloomFilter(Dialect.SPEC)
    for number in range(count):
        received.add(f"id-{number}")
        real.add(f"id-{number}")
    rate = received.filter().false_positive_rate()
    assert rate == pytest.approx(real.false_positive_rate(), rel=0.1)


def test_filter_stays_as_it_was() -> None:
    """What is received later, and what rolls over, changes only later filters."""
    received = ReceivedIds(Profile(bloom_rollover_ids=2, bloom_kept_ids=1))
    received.add("a")
    received.add("b")
    full = received.filter()
    received.add("c")
    rolled = received.filter()
    received.add("d")
    assert [full.holds(one) for one in "abcd"] == [True, True, False, False]
    assert [rolled.holds(one) for one in "abcd"] == [False, False, True, False]
    assert [received.filter().holds(one) for one in "abcd"] == [
        False,
        False,
        True,
        True,
    ]


def test_id_that_comes_again_is_in_once() -> None:
    """Else it would push others out."""
    received = ReceivedIds(Profile(bloom_rollover_ids=2, bloom_kept_ids=1))
    for one in "aab":
        received.add(one)
    assert received.filter().holds("a")
