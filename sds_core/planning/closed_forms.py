"""Computes figures of a planned channel by formulas, without a simulation.

`tests/sds_core/planning/test_closed_forms.py` compares each figure with simulations.
Other figures, such as latencies and the sync messages of a busy channel, have no
formula.
"""

from __future__ import annotations

import math

import numpy as np

from sds_core.planning.channel import DAY_S, ChannelPlan
from sds_core.planning.filters import designed_ids
from sds_core.planning.hours import Floats
from sds_core.wire import (
    BloomFilter,
    BloomParameters,
    Frame,
    HistoryEntry,
    PartSizes,
    encode,
    part_sizes,
)

_ID = "0" * 64
"""A message id of the usual length: a SHA-256 or Keccak-256 hash in hexadecimal."""
_PARTICIPANT = "participant-001"
_HINT = bytes(32)
"""A retrieval hint of the usual length: a Waku message hash."""
_LAMPORT_MS = 1_786_000_000_000


def frame_parts(plan: ChannelPlan, content_bytes: int) -> PartSizes:
    """Return how many bytes each part of a frame has.

    The frame has a full causal history and no repair requests. Message ids have 64
    characters, participant ids have 15 characters, and retrieval hints have 32 bytes.
    For a sync message, `content_bytes` is 0.
    """
    profile = plan.participant()
    entry = HistoryEntry(_ID, _HINT, _PARTICIPANT)
    frame = Frame.build(
        profile.dialect,
        message_id=_ID,
        channel_id="channel",
        sender_id=_PARTICIPANT,
        lamport=_LAMPORT_MS // profile.lamport_unit_ms,
        causal_history=[entry] * profile.causal_history_size,
        bloom_filter=BloomFilter(profile.dialect, profile.bloom).to_wire(),
        content=bytes(content_bytes),
    )
    return part_sizes(profile.dialect, encode(frame))


def first_pass(plan: ChannelPlan) -> float | None:
    """Return the share of deliveries that succeed when a message is first sent.

    Each link loses each transmission independently, so the share is 1 - loss for a
    payload without segments. A payload with d data segments and p parity segments is
    complete if any d segments arrive (Reed-Solomon). For such a payload, the share is
    the binomial probability that at most p segments are lost. If participants are
    offline, the result is None.
    """
    if plan.offline_share:
        return None
    data, parity = plan.segments()
    kept = 1 - plan.loss
    return math.fsum(
        math.comb(data + parity, lost)
        * plan.loss**lost
        * kept ** (data + parity - lost)
        for lost in range(parity + 1)
    )


def missed_messages(plan: ChannelPlan) -> float | None:
    """Return the share of frames with content that at least one participant misses.

    The share is 1 - (1 - loss)^(n - 1) for n participants. These frames must be
    repaired or sent again. If participants are offline, the result is None.
    """
    if plan.offline_share:
        return None
    return 1 - (1 - plan.loss) ** (plan.participants - 1)


def first_peer_in_time(plan: ChannelPlan, target_s: float) -> float | None:
    """Return the share of messages that another participant receives in `target_s`.

    For n participants and S = `target_s`, the share is
    1 - (1 - (1 - loss) F(S))^(n - 1). F is the log-normal distribution function of the
    delay. The result is None if participants are offline, payloads have segments, or a
    retransmission can arrive within `target_s`.
    """
    resent_s = plan.setting("retransmission_interval_s")
    if plan.offline_share or plan.segments() != (1, 0) or resent_s <= target_s:
        return None
    deviations = math.log(target_s * 1_000 / plan.delay_ms)
    if plan.delay_sigma:
        deviations /= plan.delay_sigma
    else:
        # A constant delay is in time, or it is not; a delay of `target_s` is in time.
        deviations = math.copysign(math.inf, deviations)
    in_time = 0.5 * math.erfc(-deviations / math.sqrt(2))
    return 1 - (1 - (1 - plan.loss) * in_time) ** (plan.participants - 1)


def fixed_syncs_per_day(plan: ChannelPlan) -> float | None:
    """Return how many sync messages all participants send per day at fixed intervals.

    In nim-sds, the interval is fixed, because other traffic does not delay sync
    messages. For n participants, the result is then n * 86,400 s / interval. For other
    libraries, or if participants are offline, the result is None.
    """
    if plan.participant().sync_least_share is not None or plan.offline_share:
        return None
    return float(plan.participants * DAY_S / plan.setting("sync_interval_s"))


def days_to_full_filter(plan: ChannelPlan) -> float:
    """Return the days until an empty filter holds as many ids as it is designed for.

    A filter is designed for m ln 2 / k ids (`designed_ids`), and each segment of a
    message adds one id. Sync messages add no ids.
    """
    bloom = plan.bloom()
    a_day = plan.messages_per_day * sum(plan.segments())
    return designed_ids(bloom.m_bits, bloom.k) / a_day


def false_positive_rates(ids: Floats, bloom: BloomParameters) -> Floats:
    """Return the false-positive rate of a filter for each number of ids.

    For n ids, m bits and k hash functions, the rate is (1 - e^(-k n / m))^k. Each of
    the k n hashes leaves a given bit unset with probability 1 - 1/m (Bloom, 1970;
    Mitzenmacher and Upfal, "Probability and Computing", 5.5.3).
    """
    rates: Floats = (-np.expm1(-bloom.k * ids / bloom.m_bits)) ** bloom.k
    return rates


def steady_ids(plan: ChannelPlan) -> Floats:
    """Return how many ids a filter of an old channel can hold, shape (n,).

    The result has n numbers, which are equally likely. If filters roll over, the
    numbers range from `bloom_kept_ids` to `bloom_rollover_ids`. If filters never roll
    over, they fill without limit, so the result has only one number: the filter's
    capacity. If `ChannelPlan.filter_ids` is set, the result has only this number.
    """
    profile = plan.participant()
    if plan.filter_ids is not None:
        return np.array([plan.filter_ids], np.float64)
    if profile.bloom_rollover_ids is None:
        return np.array([profile.bloom.capacity], np.float64)
    return np.linspace(profile.bloom_kept_ids, profile.bloom_rollover_ids, 101)


def false_acknowledgement_rate(plan: ChannelPlan) -> float:
    """Return the probability that filters acknowledge a message that no one received.

    A channel's filters hold nearly the same ids and have the same size, so an id is a
    false positive in all filters or in none. The probability is therefore the mean
    false-positive rate of one filter over the numbers of ids in `steady_ids`. A rate
    above `possible_acks_max_false_positive_rate` counts as 0, because participants
    ignore a filter with such a rate.
    """
    profile = plan.participant()
    if profile.possible_acks_threshold is None:
        return 0.0
    most = profile.possible_acks_max_false_positive_rate
    most = profile.bloom.error_rate if most is None else most
    ids, bloom = steady_ids(plan), profile.bloom_rolled or profile.bloom
    if ids.max() < profile.bloom_kept_ids:
        # A filter that has rolled over has more ids, so this is the first filter.
        bloom = profile.bloom
    rates = false_positive_rates(ids, bloom)
    return float(np.where(rates <= most, rates, 0.0).mean())
