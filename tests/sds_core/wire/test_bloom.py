"""Bloom filters of both dialects, bit for bit."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.wire import (
    DEFAULT_PARAMETERS,
    BloomBadHeader,
    BloomError,
    BloomFilter,
    BloomParameters,
    BloomWrongLength,
    Dialect,
    count_set_bits,
    estimated_ids,
    false_positive_rate,
    filter_bits,
    probes,
)
from sds_core.wire.bloom import double_hash
from tests.support.wire.raw import field

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "bloom_js.json").read_text("utf-8")
)
ID_1 = "0" * 63 + "1"
SPEC = Dialect.SPEC
NIM = Dialect.NIM


def indices(message_id: str, dialect: Dialect, m_bits: int, k: int) -> list[int]:
    """Return the bits of an id by number, as the tables of both libraries give them."""
    flip = 7 if dialect is SPEC else 0
    return [
        8 * (byte ^ flip) + mask.bit_length() - 1
        for byte, mask in probes(message_id, dialect, m_bits, k)
    ]


def nim_wire(
    bits: bytes, k: int = 10, m_bits: int = 64, capacity: int = 1, rate: int = 1000
) -> bytes:
    """Return a nim-sds filter written by hand."""
    header = field(2, capacity) + field(3, rate) + field(4, k) + field(5, m_bits)
    return field(1, bits) + header


class TestParameters:
    @pytest.mark.parametrize(
        ("capacity", "error_rate", "bits_per_element", "k", "m_bits", "length_bytes"),
        [
            (10_000, 0.001, 15, 10, 150_000, 18_752),
            (12_000, 0.001, 15, 10, 180_000, 22_504),
            (1_000, 0.01, 10, 7, 10_000, 1_256),
            (100, 0.01, 10, 7, 1_000, 128),
            # A multiple of 64 still gets a word more.
            (64, 0.01, 10, 7, 640, 88),
            (1, 0.99, 1, 1, 1, 8),
        ],
    )
    def test_give_the_size_that_both_libraries_use(
        self,
        capacity: int,
        error_rate: float,
        bits_per_element: int,
        k: int,
        m_bits: int,
        length_bytes: int,
    ) -> None:
        """The formula, at the sizes in use and at the edges of words."""
        parameters = BloomParameters(capacity, error_rate)
        assert parameters.bits_per_element == bits_per_element
        assert parameters.k == k
        assert parameters.m_bits == m_bits
        assert parameters.length_bytes == length_bytes

    def test_default_is_that_of_both_libraries(self) -> None:
        """10,000 ids at one false positive in a thousand."""
        assert BloomParameters(10_000, 0.001) == DEFAULT_PARAMETERS

    @pytest.mark.parametrize(
        ("capacity", "error_rate"),
        [(0, 0.1), (-1, 0.1), (1, 0.0), (1, 1.0), (1, -0.1), (1, math.nan)],
    )
    def test_out_of_range_are_refused(self, capacity: int, error_rate: float) -> None:
        """There is no filter for no ids, nor for an error rate outside (0, 1)."""
        with pytest.raises(ValueError, match="must be"):
            BloomParameters(capacity, error_rate)


class TestIndices:
    @pytest.mark.parametrize(
        "vector", VECTORS["indices"], ids=lambda v: f"{v['id'][:16]}/{v['m_bits']}"
    )
    def test_of_spec_are_those_of_js_waku(self, vector: dict[str, Any]) -> None:
        """Vectors made by running js-waku, the least 32-bit hash among them."""
        expected = vector["indices"]
        assert indices(vector["id"], SPEC, vector["m_bits"], len(expected)) == expected

    def test_of_spec_add_the_second_hash_n_times(self) -> None:
        """The worked examples: A 3351 and B 874 for hello, 0 and 6008 for nothing."""
        assert indices("hello", SPEC, 10_000, 6) == [
            3351,
            3351 + 874,
            3351 + 2 * 874,
            3351 + 3 * 874,
            3351 + 4 * 874,
            7721,
        ]
        assert indices("", SPEC, 10_000, 2) == [0, 6008]

    def test_of_spec_in_the_default_filter(self) -> None:
        """The ids of the protocol notes, in the filter that is in every message."""
        assert indices("hello", SPEC, 150_000, 10) == [
            103351, 14225, 75099, 135973, 46847, 107721, 18595, 79469, 140343, 51217,
        ]  # fmt: skip
        assert indices(ID_1, SPEC, 150_000, 10) == [
            3430, 41605, 79780, 117955, 6130, 44305, 82480, 120655, 8830, 47005,
        ]  # fmt: skip

    def test_of_nim_are_those_of_farm_hash(self) -> None:
        """The ids of the protocol notes, by the hash of nim-sds."""
        assert indices("hello", NIM, 150_000, 10) == [
            1320 + 4407 * n for n in range(10)
        ]
        assert indices(ID_1, NIM, 150_000, 4) == [105586, 35402, 115218, 45034]

    def test_use_both_hashes_as_signed_integers(self) -> None:
        """A negative hash counts by its absolute value."""
        assert double_hash(-103, -7, 100, 3) == [3, 10, 17]
        assert double_hash(103, 7, 100, 3) == [3, 10, 17]

    def test_stay_in_range_for_the_least_64_bit_hash(self) -> None:
        """It has no positive: the remainder is negative, and only the sum is not."""
        least = -(2**63)
        residue = 2**63 % 1000
        assert double_hash(least, 7, 1000, 3) == [
            residue,
            abs(-residue + 7),
            abs(-residue + 14),
        ]

    def test_count_the_least_32_bit_hash_by_its_size(self) -> None:
        """JavaScript's numbers do not overflow there."""
        assert double_hash(-(2**31), 0, 1000, 1) == [2**31 % 1000]

    @given(st.text(), st.sampled_from(Dialect), st.integers(1, 200_000))
    def test_stay_within_the_filter(
        self, message_id: str, dialect: Dialect, m_bits: int
    ) -> None:
        """No id, however odd, points outside the bits in use."""
        for index in indices(message_id, dialect, m_bits, 10):
            assert 0 <= index < m_bits


class TestFilter:
    @pytest.mark.parametrize(
        "vector",
        VECTORS["filters"],
        ids=lambda v: f"{v['capacity']}/{v['error_rate']}/{len(v['ids'])}",
    )
    def test_of_spec_is_byte_for_byte_that_of_js_waku(
        self, vector: dict[str, Any]
    ) -> None:
        """Same ids, same bytes on the wire."""
        parameters = BloomParameters(vector["capacity"], vector["error_rate"])
        bloom = BloomFilter(SPEC, parameters)
        for message_id in vector["ids"]:
            bloom.add(message_id)
        raw = bloom.to_wire()
        assert (bloom.m_bits, bloom.k) == (vector["m_bits"], vector["k"])
        assert len(raw) == vector["length_bytes"]
        assert hashlib.sha256(raw).hexdigest() == vector["sha256"]

    def test_of_spec_with_hello_has_the_noted_digest(self) -> None:
        """The digest of the protocol notes."""
        bloom = BloomFilter(SPEC)
        bloom.add("hello")
        assert hashlib.sha256(bloom.to_wire()).hexdigest() == (
            "309d67efa96a837e41c49dc49b629f394e5eee906b0d3c3d5da6ed65fe5e3a4d"
        )

    def test_of_spec_writes_words_big_endian(self) -> None:
        """Bit h is bit h & 7 of byte 8 * (h >> 6) + 7 - ((h & 63) >> 3)."""
        bloom = BloomFilter(SPEC)
        bloom.add("hello")
        expected = bytearray(18_752)
        for h in indices("hello", SPEC, 150_000, 10):
            expected[8 * (h >> 6) + 7 - ((h & 63) >> 3)] |= 1 << (h & 7)
        assert bloom.to_wire() == expected

    def test_of_nim_writes_words_little_endian_and_a_header(self) -> None:
        """Bit h is bit h & 7 of byte h >> 3, and the size is written behind."""
        bloom = BloomFilter(NIM)
        bloom.add("hello")
        expected = bytearray(18_752)
        for n in range(10):
            h = 1320 + 4407 * n
            expected[h >> 3] |= 1 << (h & 7)
        raw = bloom.to_wire()
        assert raw == nim_wire(bytes(expected), 10, 150_000, 10_000, 1000)
        # The length that nim-sds's own filters have.
        assert len(raw) == 18_768

    @pytest.mark.parametrize("dialect", Dialect)
    def test_has_every_id_that_was_put_in(self, dialect: Dialect) -> None:
        """There are no false negatives, also after a way over the wire."""
        ids = [hashlib.sha256(bytes([n])).hexdigest() for n in range(200)]
        parameters = BloomParameters(200, 0.01)
        bloom = BloomFilter(dialect, parameters)
        assert not any(bloom.contains(message_id) for message_id in ids)
        for message_id in ids:
            bloom.add(message_id)
        copy = BloomFilter.from_wire(dialect, bloom.to_wire(), parameters)
        assert all(bloom.contains(message_id) for message_id in ids)
        assert all(copy.contains(message_id) for message_id in ids)

    @pytest.mark.parametrize("dialect", Dialect)
    def test_keeps_its_false_positive_rate_at_capacity(self, dialect: Dialect) -> None:
        """Full to capacity it errs at most 1.5 times as often as it was made for."""
        bloom = BloomFilter(dialect, BloomParameters(1000, 0.01))
        for n in range(1000):
            bloom.add(f"in-{n}")
        found = sum(bloom.contains(f"out-{n}") for n in range(10_000))
        assert 0 < found < 1.5 * 0.01 * 10_000
        assert found / 10_000 == pytest.approx(bloom.false_positive_rate(), rel=0.3)
        assert bloom.estimated_ids() == pytest.approx(1000, rel=0.03)

    def test_of_one_dialect_is_noise_to_the_other(self) -> None:
        """The same id has other bits in the other dialect."""
        assert set(indices("hello", SPEC, 150_000, 10)).isdisjoint(
            indices("hello", NIM, 150_000, 10)
        )

    @pytest.mark.parametrize("dialect", Dialect)
    @given(
        ids=st.lists(st.text(), max_size=5),
        capacity=st.integers(1, 300),
        error_rate=st.floats(1e-9, 0.9),
    )
    def test_survives_the_wire(
        self, dialect: Dialect, ids: list[str], capacity: int, error_rate: float
    ) -> None:
        """Reading what was written gives the same filter, header and all."""
        parameters = BloomParameters(capacity, error_rate)
        bloom = BloomFilter(dialect, parameters)
        for message_id in ids:
            bloom.add(message_id)
        copy = BloomFilter.from_wire(dialect, bloom.to_wire(), parameters)
        for name in BloomFilter.__slots__:
            assert getattr(copy, name) == getattr(bloom, name)
        assert copy.to_wire() == bloom.to_wire()

    def test_read_from_the_wire_is_a_copy(self) -> None:
        """Adding to it leaves the frame that it came from alone."""
        raw = bytes(18_752)
        BloomFilter.from_wire(SPEC, raw).add("hello")
        assert raw == bytes(18_752)


class TestFill:
    @pytest.mark.parametrize("dialect", Dialect)
    @pytest.mark.parametrize("capacity", [1, 6, 7, 13, 64, 100])
    def test_counts_the_bits_in_use_and_no_others(
        self, dialect: Dialect, capacity: int
    ) -> None:
        """The last word is in use in part; what stands in its rest does not count."""
        parameters = BloomParameters(capacity, 0.01)
        bits = b"\xff" * parameters.length_bytes
        m_bits = parameters.m_bits
        assert count_set_bits(dialect, bits, m_bits) == m_bits
        assert count_set_bits(dialect, bytes(len(bits)), m_bits) == 0

    @pytest.mark.parametrize("dialect", Dialect)
    def test_counts_each_bit_of_the_last_word_in_its_own_order(
        self, dialect: Dialect
    ) -> None:
        """Bit by bit over the edge of use, in either order of bytes."""
        m_bits = 100
        for h in range(128):
            bits = bytearray(16)
            byte = h >> 3
            bits[byte ^ 7 if dialect is SPEC else byte] = 1 << (h & 7)
            assert count_set_bits(dialect, bits, m_bits) == (1 if h < m_bits else 0)

    def test_ignores_whole_words_out_of_use(self) -> None:
        """A header may use less than it sends."""
        bits, m_bits, _ = filter_bits(NIM, nim_wire(b"\xff" * 800, m_bits=70))
        assert count_set_bits(NIM, bits, m_bits) == 70

    @pytest.mark.parametrize("dialect", Dialect)
    def test_of_an_empty_filter(self, dialect: Dialect) -> None:
        """Nothing in it, and nothing seems to be."""
        bloom = BloomFilter(dialect)
        assert bloom.bits_set() == 0
        assert bloom.false_positive_rate() == 0.0
        assert bloom.estimated_ids() == 0.0
        assert math.copysign(1, bloom.estimated_ids()) == 1

    @pytest.mark.parametrize("dialect", Dialect)
    def test_of_one_id(self, dialect: Dialect) -> None:
        """Ten bits, and an estimate of one."""
        bloom = BloomFilter(dialect)
        bloom.add("hello")
        assert bloom.bits_set() == 10
        assert bloom.estimated_ids() == pytest.approx(1, rel=1e-4)

    def test_of_a_full_filter(self) -> None:
        """All ones hold any number of ids, and acknowledge everything."""
        bloom = BloomFilter.from_wire(SPEC, b"\xff" * 18_752)
        assert bloom.contains("anything")
        assert bloom.bits_set() == 150_000
        assert bloom.false_positive_rate() == 1.0
        assert bloom.estimated_ids() == math.inf

    def test_follows_the_formulas(self) -> None:
        """Half full at m 1000, k 7: 2**-7, and 1000 / 7 * ln 2 ids."""
        assert false_positive_rate(500, 1000, 7) == 2**-7
        assert estimated_ids(500, 1000, 7) == pytest.approx(1000 / 7 * math.log(2))


class TestWire:
    def test_of_spec_is_read_in_place(self) -> None:
        """The bytes of the frame are the bits."""
        raw = bytes(18_752)
        bits, m_bits, k = filter_bits(SPEC, raw)
        assert bits is raw
        assert (m_bits, k) == (150_000, 10)

    @pytest.mark.parametrize("length", [0, 1, 18_751, 18_753, 18_768, 22_504])
    def test_of_spec_must_have_the_configured_length(self, length: int) -> None:
        """It has no header: another length means other parameters, or other bytes."""
        with pytest.raises(BloomWrongLength) as caught:
            filter_bits(SPEC, bytes(length))
        assert caught.value.expected_bytes == 18_752
        assert caught.value.actual_bytes == length

    def test_of_spec_is_read_with_other_parameters(self) -> None:
        """A deployment may be configured otherwise."""
        parameters = BloomParameters(1000, 0.01)
        bits, m_bits, k = filter_bits(SPEC, bytes(1256), parameters)
        assert (len(bits), m_bits, k) == (1256, 10_000, 7)

    def test_of_nim_is_read_by_its_own_header(self) -> None:
        """After a roll-over it is larger than what we are configured with."""
        grown = BloomFilter(NIM, BloomParameters(12_000, 0.001))
        grown.add("hello")
        bits, m_bits, k = filter_bits(NIM, grown.to_wire())
        assert isinstance(bits, memoryview)
        assert bits == bytes(grown.bits)
        assert (m_bits, k) == (180_000, 10)
        assert all(bits[i] & mask for i, mask in probes("hello", NIM, m_bits, k))

    def test_of_nim_is_read_in_any_order_of_fields(self) -> None:
        """Protobuf allows the header before the bits."""
        bits = bytes(range(8))
        raw = field(4, 10) + field(5, 64) + field(1, bits) + field(2, 1) + field(3, 1)
        read, m_bits, k = filter_bits(NIM, raw)
        assert (bytes(read), m_bits, k) == (bits, 64, 10)

    @pytest.mark.parametrize("words", [1, 15, 16, 300, 2500, 40_000])
    def test_of_nim_is_read_at_any_length(self, words: int) -> None:
        """The length of the bits takes one byte or more."""
        bits = bytes(range(8)) * words
        read, _, _ = filter_bits(NIM, nim_wire(bits))
        assert read == bits

    def test_of_nim_given_twice_counts_by_the_last(self) -> None:
        """Nobody writes it; protobuf says what it means."""
        raw = nim_wire(bytes(8)) + field(1, b"\xff" * 16)
        read, _, _ = filter_bits(NIM, raw)
        assert read == b"\xff" * 16

    @pytest.mark.parametrize(
        "raw",
        [
            pytest.param(b"", id="nothing"),
            pytest.param(b"\xff" * 40, id="noise"),
            pytest.param(bytes(18_752), id="a filter of js-waku, empty"),
            pytest.param(b"\x0a", id="a tag alone"),
            pytest.param(field(1, bytes(8))[:-1], id="bits cut off"),
            pytest.param(nim_wire(bytes(8))[:-1], id="header cut off"),
            pytest.param(field(1, bytes(8)), id="no header"),
            pytest.param(field(1, bytes(8)) + field(5, 64), id="no k"),
            pytest.param(field(1, bytes(8)) + field(4, 10), id="no m"),
            pytest.param(nim_wire(bytes(8))[10:], id="no bits"),
            pytest.param(nim_wire(bytes(8), k=0), id="k 0"),
            pytest.param(nim_wire(bytes(8), k=65), id="k too large"),
            pytest.param(nim_wire(bytes(8), k=2**64 - 1), id="k beyond reason"),
            pytest.param(nim_wire(bytes(8), m_bits=0), id="m 0"),
            pytest.param(nim_wire(bytes(8), m_bits=65), id="m beyond the bits"),
            pytest.param(nim_wire(bytes(8), m_bits=2**63), id="m beyond reason"),
            pytest.param(nim_wire(bytes(7), m_bits=56), id="not one whole word"),
            pytest.param(nim_wire(bytes(15), m_bits=120), id="m in a partial word"),
        ],
    )
    def test_of_nim_with_an_impossible_header_is_refused(self, raw: bytes) -> None:
        """What a header claims must fit what was sent."""
        with pytest.raises(BloomBadHeader) as caught:
            BloomFilter.from_wire(NIM, raw)
        assert caught.value.actual_bytes == len(raw)
        with pytest.raises(BloomBadHeader):
            filter_bits(NIM, raw)

    def test_of_nim_may_claim_any_capacity(self) -> None:
        """Nothing is computed from it, so it is carried and not judged."""
        raw = nim_wire(bytes(8), capacity=2**64 - 1, rate=2**64 - 1)
        bloom = BloomFilter.from_wire(NIM, raw)
        assert bloom.capacity == 2**64 - 1
        assert bloom.to_wire() == raw

    def test_of_nim_at_the_limits_of_its_header_works(self) -> None:
        """The most hashes and the fewest bits that pass are usable."""
        bloom = BloomFilter.from_wire(NIM, nim_wire(bytes(8), k=32, m_bits=1))
        assert not bloom.contains("hello")
        bloom.add("hello")
        assert bloom.contains("hello")
        assert bloom.bits_set() == 1

    @given(st.binary(max_size=64), st.sampled_from(Dialect))
    def test_any_bytes_are_a_filter_or_a_bloom_error(
        self, raw: bytes, dialect: Dialect
    ) -> None:
        """Noise never raises anything but our own error, nor later."""
        parameters = BloomParameters(10, 0.1)
        try:
            bloom = BloomFilter.from_wire(dialect, raw, parameters)
        except BloomError:
            return
        bloom.add("hello")
        assert bloom.contains("hello")
        assert 0 < bloom.bits_set() <= bloom.m_bits
