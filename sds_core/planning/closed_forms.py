"""Figures of a planned channel that have a closed form.

The grid of `tests/sds_core/planning/test_closed_forms.py` compares each with the
simulator.
"""

from __future__ import annotations

import numpy as np

from sds_core.planning.channel import ChannelPlan
from sds_core.planning.hours import Floats
from sds_core.wire import BloomParameters


def false_positive_rates(ids: Floats, bloom: BloomParameters) -> Floats:
    """Return the false-positive rates of filters by their ids, shape as `ids`.

    (1 - e^(-k n / m))^k: each of k n hashes leaves a bit unset with 1 - 1/m (Bloom,
    1970; Mitzenmacher and Upfal, "Probability and Computing", 5.5.3).
    """
    rates: Floats = (-np.expm1(-bloom.k * ids / bloom.m_bits)) ** bloom.k
    return rates


def steady_ids(plan: ChannelPlan) -> Floats:
    """Return the ids of filters of a channel that has existed for long, shape (n,).

    A filter that rolls over holds from the kept ids to the most ids, each equally
    often. One that never rolls over grows without end: it counts as being at its
    capacity. `ChannelPlan.filter_ids` replaces both.
    """
    profile = plan.participant()
    if plan.filter_ids is not None:
        return np.array([plan.filter_ids], np.float64)
    if profile.bloom_rollover_ids is None:
        return np.array([profile.bloom.capacity], np.float64)
    return np.linspace(profile.bloom_kept_ids, profile.bloom_rollover_ids, 101)


def false_acknowledgement_rate(plan: ChannelPlan) -> float:
    """Return the probability that filters acknowledge an id that nobody received.

    Filters of a channel hold nearly the same ids and have the same size, so an id is a
    false positive in all of them or in none: enough filters of others acknowledge it
    with the rate of one filter. Filters above the rate that participants accept do not
    count (`possible_acks_max_false_positive_rate`).
    """
    profile = plan.participant()
    if profile.possible_acks_threshold is None:
        return 0.0
    most = profile.possible_acks_max_false_positive_rate
    most = profile.bloom.error_rate if most is None else most
    rates = false_positive_rates(
        steady_ids(plan), profile.bloom_rolled or profile.bloom
    )
    return float(np.where(rates <= most, rates, 0.0).mean())
