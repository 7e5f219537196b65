"""Computes how many ids a bloom filter holds, and for how many ids it is designed."""

from __future__ import annotations

import math

import numpy as np

from sds_core.planning.hours import Floats

_ROLLED_OVER = 0.2
"""If a filter loses more than this share of its ids in an hour, it has rolled over.

If a filter has more ids than before a roll-over, by more than this share, the roll-over
does not limit the filter.
"""


def filter_ids(bits_set: Floats, m_bits: Floats, k: Floats) -> Floats:
    """Return the estimated number of ids in each filter; 0 if a filter is absent.

    If X of the filter's m bits are set, and k hash functions are used, the number is
    -(m/k) ln(1 - X/m), as in `sds_core.wire.estimated_ids`. If all bits are set, one
    bit counts as unset.
    """
    exists = (m_bits > 1) & (k > 0)
    m, hashes = np.where(exists, m_bits, 2), np.where(exists, k, 1)
    share = np.minimum(bits_set, m - 1) / m
    return np.where(exists, -m / hashes * np.log1p(-share), 0.0)


def designed_ids(m_bits: float, k: float) -> float:
    """Return the number of ids at which a filter has its designed false-positive rate.

    For m bits, k hash functions are optimal if half of the bits are set. Then, the rate
    is 0.5^k, and the filter holds m ln 2 / k ids.
    """
    return float(m_bits * math.log(2) / k)


def added_ids(ids: Floats) -> Floats:
    """Return how many ids were added to a filter in each hour.

    `ids` has the number of ids in the filter for each hour, and the result has the same
    shape. If the number of ids decreases in an hour, the result for the hour is 0.
    """
    return np.maximum(np.diff(ids, prepend=ids[:1]), 0.0)


def rolled_over_at(ids: Floats, messages: Floats) -> float | None:
    """Return the largest number of ids that a filter had before a roll-over.

    The result is None if no roll-over occurred, or if the filter now has so many more
    ids that it was emptied for another reason, such as a restart of all participants.

    `ids` has the maximum number of ids in each hour. `messages` has the number of new
    messages in each hour, shape (n,). Each message adds an id, so a filter in a busy
    channel may be nearly full again in the hour after a roll-over.
    """
    before, after = ids[:-1], ids[1:]
    expected = before + messages[1:]
    fell = (after < before) & (after < (1 - _ROLLED_OVER) * expected)
    most = float(before[fell].max(initial=0))
    is_limited = fell.any() and ids[-1] <= (1 + _ROLLED_OVER) * most
    return most if is_limited else None
