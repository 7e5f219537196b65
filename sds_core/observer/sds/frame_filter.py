"""The bloom filter of one frame, as a view searches it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from sds_core.wire import (
    BloomError,
    Dialect,
    Frame,
    false_positive_rate,
    filter_bits,
    held,
    id_hashes,
    probes,
)

_probes = lru_cache(maxsize=8_192)(probes)
"""Cached, since the same few ids are searched in every frame's filter."""


@lru_cache(maxsize=32_768)
def _hashes(message_id: str, dialect: Dialect) -> bytes:
    """The same for many ids at once: both hashes as int64.

    The key has no size of a filter: a stranger who changes it in each frame does not
    empty the cache. Bytes, since joining them is much faster than an array of tuples.
    """
    return np.array(id_hashes(message_id, dialect), np.int64).tobytes()


_FEW = 32
"""Below this number of ids, arrays cost more than they save."""


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

    def contain(self, message_ids: Sequence[str]) -> list[bool]:
        """Which of the ids the filter holds; each may be a false positive."""
        if len(message_ids) < _FEW:
            return [self.contains(one) for one in message_ids]
        dialect = self.dialect
        packed = b"".join([_hashes(one, dialect) for one in message_ids])
        hashes = np.frombuffer(packed, np.int64).reshape(-1, 2)
        found: list[bool] = held(
            self.bits, dialect, self.m_bits, self.k, hashes
        ).tolist()
        return found

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
    # A stranger may send many words that are not in use. Both libraries send one more
    # than are full.
    words = m_bits // 64 + 1
    return Filter(frame.dialect, m_bits, k, bits[: 8 * words], 0)
