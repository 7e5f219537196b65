"""Computing the content of a filter without reading it."""

from __future__ import annotations

import pytest

from sds_core.message_channel.profile import Profile
from sds_core.simulation.truth.composition import ReceivedIds
from sds_core.wire import BloomFilter, Dialect


@pytest.mark.parametrize("count", [1, 100, 5_000])
def test_false_positive_rate_is_that_of_a_real_filter_on_average(count: int) -> None:
    """Within a tenth, which is precise enough for every decision."""
    received, real = ReceivedIds(Profile.spec()), BloomFilter(Dialect.SPEC)
    for number in range(count):
        received.add(f"id-{number}")
        real.add(f"id-{number}")
    rate = received.filter().false_positive_rate()
    assert rate == pytest.approx(real.false_positive_rate(), rel=0.1)


def test_filter_of_a_frame_does_not_change() -> None:
    """Later receptions and roll-overs change only later filters."""
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


def test_repeated_id_is_in_a_filter_once() -> None:
    """Otherwise it would displace others."""
    received = ReceivedIds(Profile(bloom_rollover_ids=2, bloom_kept_ids=1))
    for one in "aab":
        received.add(one)
    assert received.filter().holds("a")
