"""Looks up message ids in the bloom filter of a frame."""

from __future__ import annotations

from functools import lru_cache, partial

from sds_core.native import Bytes, native
from sds_core.observer.sds.messages import Message
from sds_core.wire import (
    BloomError,
    Dialect,
    Frame,
    false_positive_rate,
    filter_bits,
    id_hashes,
    probes,
)

_probes = lru_cache(maxsize=8_192)(probes)
"""`probes` with a cache, because the same ids are looked up in many frames' filters."""


_spec_hashes = lru_cache(maxsize=16_384)(partial(id_hashes, dialect=Dialect.SPEC))
_nim_hashes = lru_cache(maxsize=16_384)(partial(id_hashes, dialect=Dialect.NIM))
"""Caches of the hashes of ids. The hashes do not depend on the size of a filter, so
filters of many sizes cannot fill the caches."""

_SPEC = Dialect.SPEC
_MOST = (1 << 63) - 1


@native
class Filter:
    """The bloom filter of one frame.

    Attributes:
        dialect: Determines the hash function and the bit order.
        bits: Encoded bits. `frames_of` overwrites the bits of a filter when it yields
            the next frame, so do not keep the filter of a frame from `frames_of`.
    """

    dialect: Dialect
    m_bits: int
    k: int
    bits: bytes | bytearray | memoryview
    bits_set: int
    octets: Bytes

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
        self.bits = self.octets = bits
        self.bits_set = bits_set

    def with_fill(self, dialect: Dialect, bits_set: int) -> Filter:
        """A filter with the same `bits`, but with this dialect and this `bits_set`."""
        one: Filter = Filter.__new__(Filter)
        one.dialect, one.m_bits, one.k = dialect, self.m_bits, self.k
        one.bits, one.octets, one.bits_set = self.bits, self.octets, bits_set
        return one

    def contains(self, message_id: str) -> bool:
        """Whether the filter holds the id; True may be a false positive."""
        hash_a, hash_b = self._hashes(message_id)
        return self._holds(hash_a, hash_b, message_id)

    def holds(self, message: Message) -> bool:
        """Whether the filter holds a message's id; True may be a false positive."""
        if message.hashed_for is not self.dialect:
            message.hash_a, message.hash_b = self._hashes(message.message_id)
            message.hashed_for = self.dialect
        return self._holds(message.hash_a, message.hash_b, message.message_id)

    def _hashes(self, message_id: str) -> tuple[int, int]:
        if self.dialect is _SPEC:
            return _spec_hashes(message_id)
        return _nim_hashes(message_id)

    def _holds(self, hash_a: int, hash_b: int, message_id: str) -> bool:
        if hash_a < -_MOST or hash_b < -_MOST:
            # A hash is the minimum 64-bit integer. Its absolute value exceeds 64 bits,
            # so the libraries compute a negative remainder, as `probes` does.
            return self._holds_least(message_id)
        m_bits: int = self.m_bits
        index: int = (hash_a if hash_a >= 0 else -hash_a) % m_bits
        step: int = (hash_b if hash_b >= 0 else -hash_b) % m_bits
        flip: int = 7 if self.dialect is _SPEC else 0
        for _ in range(self.k):
            if not self.octets[(index >> 3) ^ flip] >> (index & 7) & 1:
                return False
            index += step
            if index >= m_bits:
                index -= m_bits
        return True

    def _holds_least(self, message_id: str) -> bool:
        bits = self.bits
        for index, mask in _probes(message_id, self.dialect, self.m_bits, self.k):
            if not bits[index] & mask:
                return False
        return True

    def false_positive_rate(self) -> float:
        """Probability of a false positive, in [0, 1], computed from the set bits."""
        return false_positive_rate(self.bits_set, self.m_bits, self.k)


def usable_filter(frame: Frame) -> Filter | None:
    """The frame's filter; None if the frame has no valid filter.

    `bits_set` is 0, because this function does not count the set bits.
    """
    if not frame.bloom_filter:
        return None
    try:
        bits, m_bits, k = filter_bits(frame.dialect, frame.bloom_filter)
    except BloomError:
        return None
    # js-waku and nim-sds send this number of 64-bit words. A hostile sender may append
    # many further words, which are cut off.
    words = m_bits // 64 + 1
    return Filter(frame.dialect, m_bits, k, bits[: 8 * words], 0)
