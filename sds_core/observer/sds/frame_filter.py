"""The bloom filter of one frame, as a view searches it."""

from __future__ import annotations

from functools import lru_cache

from sds_core.wire import (
    BloomError,
    Dialect,
    Frame,
    false_positive_rate,
    filter_bits,
    probes,
)

_probes = lru_cache(maxsize=32_768)(probes)
"""Cached, since the same ids are searched in every frame's filter.

The cache is larger than `ObserverSettings.remembered`: a search for all ids of a
channel would otherwise evict each before it is needed again."""


class Filter:
    """The bloom filter of one frame.

    Attributes:
        dialect: Decides hash function and bit order.
        m_bits: Size in bits.
        k: Number of hash functions.
        bits: Packed bits. The next frame of the digest changes them in place, so use
            a filter only until `frames_of` yields the next frame.
        bits_set: Number of bits that are 1.
    """

    __slots__ = ("bits", "bits_set", "dialect", "k", "m_bits")

    def __init__(
        self,
        dialect: Dialect,
        m_bits: int,
        k: int,
        bits: bytes | bytearray | memoryview,
        bits_set: int,
    ) -> None:
        self.dialect = dialect
        self.m_bits = m_bits
        self.k = k
        self.bits = bits
        self.bits_set = bits_set

    def contains(self, message_id: str) -> bool:
        """Whether the filter holds the id; may be a false positive."""
        bits = self.bits
        # `all` with a generator takes twice as long.
        for index, mask in _probes(message_id, self.dialect, self.m_bits, self.k):
            if not bits[index] & mask:
                return False
        return True

    def false_positive_rate(self) -> float:
        """Probability of a false positive, from the fill: a ratio in [0, 1]."""
        return false_positive_rate(self.bits_set, self.m_bits, self.k)


def usable_filter(frame: Frame) -> Filter | None:
    """The frame's filter; None if it has none or its size is invalid.

    `bits_set` is 0: the bits are not counted.
    """
    if not frame.bloom_filter:
        return None
    try:
        bits, m_bits, k = filter_bits(frame.dialect, frame.bloom_filter)
    except BloomError:
        return None
    return Filter(frame.dialect, m_bits, k, bits, 0)
