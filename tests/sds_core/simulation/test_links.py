"""Loss and delay on links."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sds_core.simulation.delays import Delay, Exponential, Lognormal, Uniform
from sds_core.simulation.links import Links, delay_draws
from sds_core.simulation.scenario import Bursts, Link
from sds_core.simulation.streams import Draws, Streams

EVERYBODY = np.arange(50)


def within(count: int, of: int, share: float) -> bool:
    """Tell whether a count is within five standard deviations of a binomial's mean."""
    return abs(count - of * share) <= 5 * math.sqrt(of * share * (1 - share))


def links(link: Link, name: str = "links", seed: int = 7) -> Links:
    """Make links among fifty."""
    return Links(link, 50, 50, Streams(seed), name)


@pytest.mark.parametrize("loss", [0.0, 0.02, 0.3, 1.0])
def test_share_lost_is_that_of_the_scenario(loss: float) -> None:
    """With 0 and 1, exactly none and all."""
    carried = links(Link(loss=loss))
    lost = sum(
        int((~carried.carry(sender % 50, EVERYBODY, sender)[0]).sum())
        for sender in range(400)
    )
    assert within(lost, 400 * 50, loss)


def test_losses_of_two_links_are_independent() -> None:
    """Both lose together as often as the product of their shares."""
    carried = links(Link(loss=0.5))
    pairs = [carried.carry(0, EVERYBODY[:2], at)[0] for at in range(4_000)]
    both = sum(not first and not second for first, second in pairs)
    assert within(both, 4_000, 0.25)


BURSTS = Bursts(mean_good_s=9, mean_bad_s=1, loss=1.0)


def test_bursty_links_are_bad_for_their_share_of_the_time() -> None:
    """Sampled long after another, the states are those of the long run."""
    carried = links(Link(bursts=BURSTS))
    lost = sum(
        int((~carried.carry(0, EVERYBODY, step * 60_000)[0]).sum())
        for step in range(400)
    )
    assert within(lost, 400 * 50, 0.1)


def test_bursty_loss_lasts() -> None:
    """Right after a loss nearly all is lost, and after a bad state's length 1/e of it.

    Exactly: the chance to be bad again after t is 0.1 + 0.9 exp(-t / 0.9 s).
    """
    carried = links(Link(bursts=BURSTS))
    again = {100: [0, 0], 900: [0, 0]}
    for step in range(1_000):
        at_ms = step * 60_000
        for since_ms, counts in again.items():
            lost = ~carried.carry(0, EVERYBODY, at_ms)[0]
            still = ~carried.carry(0, EVERYBODY, at_ms + since_ms)[0]
            counts[0] += int(lost.sum())
            counts[1] += int((lost & still).sum())
            at_ms += 30_000
    for since_ms, (before, after) in again.items():
        assert within(after, before, 0.1 + 0.9 * math.exp(-since_ms / 900))


def test_good_state_loses_what_the_link_loses_anyway() -> None:
    """Bursts are added to independent loss."""
    carried = links(Link(loss=0.2, bursts=Bursts(mean_good_s=1, mean_bad_s=1, loss=0)))
    lost = sum(
        int((~carried.carry(0, EVERYBODY, step * 60_000)[0]).sum())
        for step in range(400)
    )
    assert within(lost, 400 * 50, 0.1)


@pytest.mark.parametrize(
    ("delay", "median_ms", "least_ms"),
    [
        (Uniform(low_ms=100, high_ms=300), 200, 100),
        (Exponential(mean_ms=150, least_ms=50), 50 + 100 * math.log(2), 50),
        (Lognormal(median_ms=120, sigma=0.5), 120, 1),
    ],
)
def test_half_of_the_delays_are_below_the_median(
    delay: Delay, median_ms: float, least_ms: float
) -> None:
    """Each distribution has the parameters that its keys say."""
    drawn = delay_draws(delay, Streams(7).vector("delay")).take(20_000)
    assert within(int((drawn < median_ms).sum()), 20_000, 0.5)
    assert drawn.min() >= least_ms


def test_nothing_arrives_before_the_next_ms() -> None:
    """An effect is later than its cause."""
    drawn = delay_draws(Uniform(low_ms=0, high_ms=0), Streams(7).vector("delay"))
    assert drawn.take(10).tolist() == [1] * 10


def test_loss_does_not_change_delays() -> None:
    """Each purpose has its own random stream."""
    few = [links(Link(loss=0.1)).carry(3, EVERYBODY, 0)[1].tolist()]
    many = [links(Link(loss=0.9)).carry(3, EVERYBODY, 0)[1].tolist()]
    assert few == many


def test_streams_differ_by_seed_and_by_purpose() -> None:
    """Only by these."""
    first = Streams(1).vector("a", "b").random(3).tolist()
    assert first == Streams(1).vector("a", "b").random(3).tolist()
    assert first != Streams(2).vector("a", "b").random(3).tolist()
    assert first != Streams(1).vector("ab").random(3).tolist()
    assert Streams(1).scalar("a").random() != Streams(1).scalar("b").random()


def test_values_do_not_depend_on_how_they_are_taken() -> None:
    """Reading in blocks is only faster."""
    one_by_one = Draws(Streams(1).vector("x").random)
    at_once = Draws(Streams(1).vector("x").random)
    expected = at_once.take(20_000).tolist()
    sizes = [1, 7, 300, 8_000, 9_000]
    taken = [value for size in sizes for value in one_by_one.take(size).tolist()]
    assert taken == expected[: sum(sizes)]
