"""When messages are sent in a channel."""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random

from sds_core.simulation.scenario import Traffic


def occasions(
    traffic: Traffic, participants: int, duration_ms: int, random: Random
) -> Iterator[int]:
    """Yield times of occasions, in ms since the start, below `duration_ms`, in order.

    A Poisson process whose rate the spells change, by thinning (Lewis and Shedler,
    1979): times are drawn at the highest rate, then accepted with the share of the rate
    at that time.

    Args:
        traffic: rate of the occasions.
        participants: number of participants in the channel.
        duration_ms: end of the process.
        random: random source.
    """
    mean_ms = traffic.mean_interval_s * 1_000
    if traffic.per == "participant":
        mean_ms /= participants
    # A rate changes only where a spell begins or ends.
    begins = [0.0, *(at for s in traffic.spells for at in (s.from_s, s.until_s))]
    peak = max(_rate(traffic, math.ceil(at_s * 1_000)) for at_s in begins)
    if peak == 0:
        return
    at_ms = 0.0
    while True:
        at_ms += random.expovariate(peak / mean_ms)
        if at_ms >= duration_ms:
            return
        if random.random() * peak < _rate(traffic, int(at_ms)):
            yield int(at_ms)


def _rate(traffic: Traffic, elapsed_ms: int) -> float:
    return math.prod(spell.rate for spell in traffic.spells if spell.holds(elapsed_ms))
