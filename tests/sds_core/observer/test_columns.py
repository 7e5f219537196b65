"""Packed form of integers and sets in the state."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.observer.columns import (
    integers,
    pack_ints,
    pack_set,
    pack_steps,
    unpack_ints,
    unpack_set,
    unpack_steps,
)
from tests.support.properties import CAREFUL

INT64 = st.integers(-(2**63), 2**63 - 1)
UINT64 = st.integers(0, 2**64 - 1)
HEAD_BYTES = 9
"""Of a column that is not empty: the width and the least."""


@CAREFUL
@given(st.lists(INT64))
def test_signed_integers_round_trip(values: list[int]) -> None:
    """In order, with any differences."""
    assert integers(unpack_ints(pack_ints(values, signed=True), signed=True)) == values


@CAREFUL
@given(st.lists(UINT64))
def test_unsigned_integers_round_trip(values: list[int]) -> None:
    """Lamport timestamps need all 64 bits."""
    assert integers(unpack_ints(pack_ints(values))) == values


@pytest.mark.parametrize(
    "values", [[-(2**63), 2**63 - 1], [2**63 - 1, -(2**63), 0], [-1, 0, 1]]
)
def test_span_of_signed_integers_may_exceed_their_type(values: list[int]) -> None:
    """The difference of the extremes exceeds a signed 64-bit integer."""
    assert integers(unpack_ints(pack_ints(values, signed=True), signed=True)) == values


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(
    ("span", "width"),
    [
        (0, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 4), (2**32 - 1, 4),
        (2**32, 8), (2**63 - 1, 8),
    ],
)  # fmt: skip
def test_distances_take_the_fewest_bytes(span: int, width: int, signed: bool) -> None:
    """One, two, four or eight each; the greatest decides."""
    least = -5 if signed else 5
    values = [least, least + span, least]
    packed = pack_ints(values, signed=signed)
    assert len(packed) == HEAD_BYTES + 3 * width
    assert integers(unpack_ints(packed, signed=signed)) == values


def test_nothing_takes_no_bytes() -> None:
    """So the state of a new channel is small."""
    assert pack_ints([]) == pack_steps([]) == b""
    assert integers(unpack_ints(b"")) == integers(unpack_steps(b"")) == []


@CAREFUL
@given(st.lists(st.integers(-(2**62), 2**62 - 1)))
def test_steps_round_trip(values: list[int]) -> None:
    """Also for integers that fall."""
    assert integers(unpack_steps(pack_steps(values))) == values


def test_steps_of_rising_integers_take_a_byte_each() -> None:
    """Times of a busy channel are large but rise slowly."""
    times = [1_750_000_000_000 + 100 * number for number in range(1_000)]
    assert len(pack_steps(times)) == 8 + HEAD_BYTES + 999
    assert integers(unpack_steps(pack_steps(times))) == times


@CAREFUL
@given(st.sets(st.integers(0, 5_000)), st.integers(0, 2**40))
def test_sets_round_trip(values: set[int], start: int) -> None:
    """For any values."""
    moved = {start + value for value in values}
    assert unpack_set(*pack_set(moved)) == moved


def test_set_takes_a_bit_for_each_place_it_spans() -> None:
    """From the least to the greatest, rounded up to a byte."""
    assert pack_set({7}) == (7, b"\x80")
    assert pack_set([1_000, 1_008]) == (1_000, b"\x80\x80")
    assert pack_set(range(8)) == (0, b"\xff")
    assert pack_set(()) == (0, b"")
