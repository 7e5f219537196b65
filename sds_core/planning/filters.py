"""Estimates how many ids bloom filters hold, and for how many they are designed."""

from __future__ import annotations

import math

import numpy as np

from sds_core.planning.hours import Floats

_ROLLED_OVER = 0.2
"""If a filter loses more than this share of its ids, a roll-over has occurred."""


def filter_ids(bits_set: Floats, m_bits: Floats, k: Floats) -> Floats:
    """Return the estimated number of ids in each filter; 0 if a filter is absent.

    For X of m set bits and k hash functions, the number is -(m/k) ln(1 - X/m), as in
    `sds_core.wire.estimated_ids`. If all bits are set, one bit counts as unset.
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
    """Return how many ids were added in each hour.

    The result has the shape of `ids`. An hour with a decrease has the value 0.
    """
    return np.maximum(np.diff(ids, prepend=ids[:1]), 0.0)


def rolled_over_at(ids: Floats) -> float | None:
    """Return the largest number of ids before a roll-over; None if none occurred."""
    falls = np.flatnonzero(ids[1:] < (1 - _ROLLED_OVER) * ids[:-1])
    return float(ids[falls].max()) if len(falls) else None
