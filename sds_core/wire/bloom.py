"""Bloom filters of both dialects, bit for bit as the dialects' libraries write them.

A participant adds the ids of received messages to a filter, and sends the filter with
every message. Both dialects use the same size and derive k indices from two hashes in
the same way. The hash function, the byte order and the wire form differ, so a filter of
one dialect is unusable in the other.

Sources: packages/sds/src/bloom_filter and nim_hashn of js-waku; sds/bloom.nim and
sds/protobuf.nim of nim-sds; and the hash function for strings in Nim 2.2.4 and later.
tests/vectors has results of the js-waku code.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import farmhash
import mmh3
import numpy as np
from google.protobuf.message import DecodeError

from sds_core.wire.errors import BloomBadHeader, BloomWrongLength
from sds_core.wire.frame import Dialect
from sds_core.wire.proto import sds_nim_pb2

_WORD_BITS = 64
_WORD_BYTES = 8

# nim-sds sds/protobuf.nim, serializeBloomFilter.
_BITS_TAG = 0x0A
_ERROR_RATE_UNIT = 1_000_000

MAX_K = 32
"""Maximum number of hash functions that the header of a filter may state.

Each hash function makes every look-up slower. Even for an error rate of 2**-32, a
filter needs only 32 hash functions.
"""

MAX_M_BITS = 1 << 23
"""Maximum accepted number of bits of a filter.

These bits occupy 1 MiB, more than six times the maximum length of a Waku message.
"""

_FEW = 32
"""For fewer ids than this number, a Python loop is faster than numpy arrays."""

_SPEC = Dialect.SPEC

# nim-sds compiles its `hashN` (sds/bloom.nim) without overflow checks, so the absolute
# value of the minimum 64-bit integer stays negative.
_INT64_MIN = -(1 << 63)

# For the second hash of an id, `hashN` of both libraries appends this suffix to the id.
_SECOND_HASH_SUFFIX = b" b"


@dataclass(frozen=True, slots=True)
class BloomParameters:
    """Capacity and error rate of a filter, and the size derived from them.

    Attributes:
        capacity: Number of ids for which the filter is designed, at least 1.
        error_rate: Share of false positives, in (0, 1), that the filter is designed to
            have when it holds `capacity` ids.
        length_bytes: Length of the filter's bits on the wire: 8 bytes for each full
            64-bit word of the `m_bits` bits, plus 8 bytes.
    """

    capacity: int
    error_rate: float
    bits_per_element: int = field(init=False)
    k: int = field(init=False)
    m_bits: int = field(init=False)
    length_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        """Compute the filter's size with the formula that both libraries use."""
        if self.capacity < 1:
            message = f"capacity is {self.capacity}, but must be at least 1"
            raise ValueError(message)
        if not 0 < self.error_rate < 1:
            message = (
                f"error_rate is {self.error_rate}, but must be above 0 and below 1"
            )
            raise ValueError(message)
        bits_per_element = math.ceil(-math.log(self.error_rate) / math.log(2) ** 2)
        m_bits = self.capacity * bits_per_element
        length_bytes = _WORD_BYTES * (1 + m_bits // _WORD_BITS)
        object.__setattr__(self, "bits_per_element", bits_per_element)
        object.__setattr__(self, "k", round(math.log(2) * bits_per_element))
        object.__setattr__(self, "m_bits", m_bits)
        object.__setattr__(self, "length_bytes", length_bytes)


DEFAULT_PARAMETERS = BloomParameters(capacity=10_000, error_rate=0.001)
"""Default of both libraries (SDS, "Default Configuration Values").

A filter with these parameters has 150,000 bits, and k is 10.
"""


def probes(
    message_id: str, dialect: Dialect, m_bits: int, k: int
) -> tuple[tuple[int, int], ...]:
    """Return the positions of an id's k bits in a filter, as (byte index, bit mask).

    The id is probably in a filter if
    `all(bits[index] & mask for index, mask in probes)` is true. Here, `bits` is the
    first result of `filter_bits`, and `probes` is the result of this function. The
    positions are the same in all filters with equal dialect, m_bits and k.

    This function hashes the UTF-8 bytes of an id, but js-waku hashes the UTF-16 code
    units. For an ASCII id, the positions are the same, and all ids in use are ASCII.
    """
    hash_a, hash_b = id_hashes(message_id, dialect)
    indices = double_hash(hash_a, hash_b, m_bits, k)
    if dialect is _SPEC:
        # 64-bit words, most significant byte first.
        return tuple([((index >> 3) ^ 7, 1 << (index & 7)) for index in indices])
    # 64-bit words, least significant byte first.
    return tuple([(index >> 3, 1 << (index & 7)) for index in indices])


# If several participants run in one process, they add the same ids to their filters at
# about the same time, so this cache saves CPU time. An entry needs about a kilobyte.
_recent_probes = functools.lru_cache(maxsize=16_384)(probes)


def double_hash(hash_a: int, hash_b: int, m_bits: int, k: int) -> list[int]:
    """Return k indices in [0, m_bits) from two signed hashes.

    The indices are |A + n * B| mod m with A = |hash_a| mod m, B = |hash_b| mod m, n = 0
    .. k - 1 (Kirsch and Mitzenmacher, "Less Hashing, Same Performance").
    """
    a = _residue(hash_a, m_bits)
    b = _residue(hash_b, m_bits)
    return [abs(a + n * b) % m_bits for n in range(k)]


def filter_bits(
    dialect: Dialect, raw: bytes, parameters: BloomParameters = DEFAULT_PARAMETERS
) -> tuple[bytes | memoryview, int, int]:
    """Return (bits, m_bits, k) of a filter in its wire form.

    The bits are copied only if a NIM filter has them after another field. A filter of
    NIM contains its parameters. A filter of SPEC does not contain them, so the caller
    passes `parameters`.

    Raises:
        BloomWrongLength: The length of a SPEC filter does not fit `parameters`.
        BloomBadHeader: The header of a NIM filter is invalid.
    """
    if dialect is _SPEC:
        if len(raw) != parameters.length_bytes:
            raise BloomWrongLength(parameters.length_bytes, len(raw))
        return raw, parameters.m_bits, parameters.k
    bits, _, m_bits, k = _split_nim(raw)
    return bits, m_bits, k


def count_set_bits(
    dialect: Dialect, bits: bytes | bytearray | memoryview, m_bits: int
) -> int:
    """Return how many of the first `m_bits` bits are set.

    `bits` consists of 64-bit words in the byte order of the dialect.
    """
    full_words, rest = divmod(m_bits, _WORD_BITS)
    end = full_words * _WORD_BYTES
    words = np.frombuffer(bits, np.uint64, full_words)
    last_word = int.from_bytes(
        bits[end : end + _WORD_BYTES], "big" if dialect is _SPEC else "little"
    )
    in_use = last_word & ((1 << rest) - 1)
    return int(np.bitwise_count(words).sum(dtype=np.int64)) + in_use.bit_count()


class BloomFilter:
    """A bloom filter to which message ids can be added.

    Attributes:
        error_rate_millionths: Share of false positives for which the filter is
            designed, in millionths.
    """

    __slots__ = ("bits", "capacity", "dialect", "error_rate_millionths", "k", "m_bits")

    def __init__(
        self,
        dialect: Dialect,
        parameters: BloomParameters = DEFAULT_PARAMETERS,
    ) -> None:
        """Make an empty filter."""
        self.dialect = dialect
        self.m_bits = parameters.m_bits
        self.k = parameters.k
        self.bits = bytearray(parameters.length_bytes)
        self.capacity = parameters.capacity
        # Like nim-sds, this code truncates the rate and does not round it.
        self.error_rate_millionths = int(parameters.error_rate * _ERROR_RATE_UNIT)

    @classmethod
    def from_wire(
        cls,
        dialect: Dialect,
        raw: bytes,
        parameters: BloomParameters = DEFAULT_PARAMETERS,
    ) -> BloomFilter:
        """Decode a filter. The arguments are those of `filter_bits`.

        Raises:
            BloomError: The bytes are not a filter of the dialect.
        """
        self = cls.__new__(cls)
        self.dialect = dialect
        if dialect is _SPEC:
            bits, self.m_bits, self.k = filter_bits(dialect, raw, parameters)
            self.capacity = parameters.capacity
            self.error_rate_millionths = int(parameters.error_rate * _ERROR_RATE_UNIT)
        else:
            bits, header, self.m_bits, self.k = _split_nim(raw)
            self.capacity = header.capacity
            self.error_rate_millionths = header.error_rate_millionths
        self.bits = bytearray(bits)
        return self

    def to_wire(self) -> bytes:
        """Return the filter in the wire form of its dialect."""
        if self.dialect is _SPEC:
            return bytes(self.bits)
        return sds_nim_pb2.BloomFilter(
            bits=bytes(self.bits),
            capacity=self.capacity,
            error_rate_millionths=self.error_rate_millionths,
            k=self.k,
            m_bits=self.m_bits,
        ).SerializeToString()

    def add(self, message_id: str) -> None:
        """Add an id."""
        bits = self.bits
        for index, mask in _recent_probes(
            message_id, self.dialect, self.m_bits, self.k
        ):
            bits[index] |= mask

    def add_all(self, message_ids: Sequence[str]) -> None:
        """Add ids. For many ids, this is about four times as fast as calls of `add`."""
        if len(message_ids) < _FEW:
            for message_id in message_ids:
                self.add(message_id)
            return
        residues = np.array(
            [
                _residues(message_id, self.dialect, self.m_bits)
                for message_id in message_ids
            ],
            np.int64,
        )
        steps = np.arange(self.k, dtype=np.int64)
        indices = np.abs(residues[:, :1] + residues[:, 1:] * steps) % self.m_bits
        places = indices >> 3
        if self.dialect is _SPEC:
            places ^= 7
        masks = np.left_shift(1, indices & 7).astype(np.uint8)
        np.bitwise_or.at(np.frombuffer(self.bits, np.uint8), places, masks)

    def contains(self, message_id: str) -> bool:
        """Return whether the filter probably holds an id; only False is certain."""
        bits = self.bits
        return all(
            bits[index] & mask
            for index, mask in probes(message_id, self.dialect, self.m_bits, self.k)
        )

    def bits_set(self) -> int:
        """Return how many of the filter's `m_bits` bits are set."""
        return count_set_bits(self.dialect, self.bits, self.m_bits)

    def false_positive_rate(self) -> float:
        """Return the probability that `contains` returns True for an absent id."""
        return false_positive_rate(self.bits_set(), self.m_bits, self.k)

    def estimated_ids(self) -> float:
        """Return the estimated number of ids added; infinity if all bits are set."""
        return estimated_ids(self.bits_set(), self.m_bits, self.k)


def false_positive_rate(set_bits: int, m_bits: int, k: int) -> float:
    """Return the probability that a filter seems to hold an absent id."""
    return float((set_bits / m_bits) ** k)


def estimated_ids(set_bits: int, m_bits: int, k: int) -> float:
    """Return the estimated number of ids in a filter; infinity if all bits are set.

    With X set bits, the estimate is -(m / k) * ln(1 - X / m) (Swamidass and Baldi,
    2007).
    """
    if set_bits == m_bits:
        return math.inf
    # For a nearly empty filter, log1p is exact. For an empty filter, the product is
    # -0.0, and the addition of 0.0 makes it 0.0.
    return -(m_bits / k) * math.log1p(-set_bits / m_bits) + 0.0


def _split_nim(
    raw: bytes,
) -> tuple[bytes | memoryview, sds_nim_pb2.BloomFilter, int, int]:
    """Check a nim-sds filter, and return its bits, header, m_bits and k.

    nim-sds writes the bits before the other fields, so only the other fields are
    parsed. Protobuf also allows the bits after other fields; a filter in this form is
    parsed as a whole, and its bits are copied. The size in the header never decides how
    much memory is allocated. nim-sds requires all fields of a filter; this function
    requires only the fields that it uses.
    """
    bits: bytes | memoryview
    span = _leading_bits(raw)
    try:
        if span is None:
            header = sds_nim_pb2.BloomFilter.FromString(raw)
            bits = header.bits
        else:
            header = sds_nim_pb2.BloomFilter.FromString(raw[span.stop :])
            # If the field of the bits occurs twice, the last one counts, as protobuf
            # specifies. No library writes the field twice.
            bits = header.bits or memoryview(raw)[span]
    except DecodeError as error:
        raise BloomBadHeader(str(error), len(raw)) from None
    k = header.k
    if not 1 <= k <= MAX_K:
        detail = f"k is {k}, but must be in [1, {MAX_K}]"
        raise BloomBadHeader(detail, len(raw))
    m_bits = header.m_bits
    # Bytes after the last complete 64-bit word cannot hold bits of the filter.
    addressable_bits = len(bits) // _WORD_BYTES * _WORD_BITS
    most = min(addressable_bits, MAX_M_BITS)
    if not 1 <= m_bits <= most:
        detail = f"m_bits is {m_bits}, but must be in [1, {most}]"
        raise BloomBadHeader(detail, len(raw))
    return bits, header, m_bits, k


def _leading_bits(raw: bytes) -> slice | None:
    """Return the position of the filter's bits in `raw`.

    Return None if field 1, which has the bits, is incomplete or is not the first field.
    """
    if not raw or raw[0] != _BITS_TAG:
        return None
    length = 0
    # Three bytes can encode a length of up to 2 MiB, a hundred times the length of the
    # filters in use.
    for position, byte in enumerate(raw[1:4]):
        length |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            start = 2 + position
            return slice(start, start + length) if start + length <= len(raw) else None
    return None


def id_hashes(message_id: str, dialect: Dialect) -> tuple[int, int]:
    """Return the two signed hashes of an id, the input of `double_hash`."""
    first = message_id.encode()
    second = first + _SECOND_HASH_SUFFIX
    if dialect is _SPEC:
        # MurmurHash3 x86_32, seed 0.
        return mmh3.hash(first), mmh3.hash(second)
    return (
        _signed64(farmhash.Fingerprint64(first)),
        _signed64(farmhash.Fingerprint64(second)),
    )


def _residues(message_id: str, dialect: Dialect, m_bits: int) -> tuple[int, int]:
    hash_a, hash_b = id_hashes(message_id, dialect)
    return _residue(hash_a, m_bits), _residue(hash_b, m_bits)


def _signed64(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _residue(hashed: int, m_bits: int) -> int:
    """Return |hashed| mod m_bits as both libraries compute it with 64-bit integers."""
    if hashed == _INT64_MIN:
        # The minimum 64-bit integer has no positive counterpart: its absolute value
        # stays negative, and so does the remainder.
        return -(-hashed % m_bits)
    return abs(hashed) % m_bits
