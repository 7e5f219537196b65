"""How full a bloom filter is, and when it has its designed false-positive rate."""

from __future__ import annotations

import math

import numpy as np

from sds_core.planning.hours import Floats

_ROLLED_OVER = 0.2
"""A filter that loses this share of its ids has rolled over."""


def filter_ids(bits_set: Floats, m_bits: Floats, k: Floats) -> Floats:
    """Return the estimated ids in filters; 0 where there is no filter.

    -(m/k) ln(1 - X/m), as `sds_core.wire.estimated_ids`; a full filter counts as one
    bit less.
    """
    exists = (m_bits > 1) & (k > 0)
    m, hashes = np.where(exists, m_bits, 2), np.where(exists, k, 1)
    share = np.minimum(bits_set, m - 1) / m
    return np.where(exists, -m / hashes * np.log1p(-share), 0.0)


def designed_ids(m_bits: float, k: float) -> float:
    """Return the ids with which a filter has its designed false-positive rate.

    k hash functions suit m bits best if half of the bits are set then: the rate is
    0.5^k, and the ids are m ln 2 / k.
    """
    return float(m_bits * math.log(2) / k)


def added_ids(ids: Floats) -> Floats:
    """Return the ids added in each hour, shape as `ids`; none when a filter shrinks."""
    return np.maximum(np.diff(ids, prepend=ids[:1]), 0.0)


def rolled_over_at(ids: Floats) -> float | None:
    """Return the most ids before a roll-over; None if there was none."""
    falls = np.flatnonzero(ids[1:] < (1 - _ROLLED_OVER) * ids[:-1])
    return float(ids[falls].max()) if len(falls) else None
