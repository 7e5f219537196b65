"""A stranger's frames in a row: every shape that a frame can be made costly by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

from sds_core.wire import BloomFilter, BloomParameters, Dialect
from tests.support.hostile.shapes import Writer, filter_of

_EMPTY = BloomFilter(Dialect.SPEC).to_wire()
_ENTRIES = 12_500
"""So many short ids are a frame of 150 kB, the longest that Waku carries."""


def hostile_values() -> Iterator[bytes]:
    """Yield values of frames in channel `shapes.CHANNEL`, without an end.

    In turn: a long history of new ids, many requests for new ids, filters that hold
    nothing from ever new participants, filters of ever other sizes, a long filter of one
    bit, and messages that all of these lack.
    """
    spec, nim = Writer(Dialect.SPEC), Writer(Dialect.NIM)
    one_bit = BloomFilter(Dialect.NIM, BloomParameters(10, 0.1))
    one_bit.m_bits, one_bit.k, one_bit.bits = 1, 1, bytearray(140_000)
    makers: tuple[Callable[[int], bytes], ...] = (
        lambda _: spec.frame(history=spec.new_ids(_ENTRIES, 8)).value,
        lambda _: nim.frame(requests=nim.new_ids(_ENTRIES, 8)).value,
        lambda n: spec.frame(f"name-{n}", bloom=_EMPTY).value,
        lambda n: nim.frame(bloom=filter_of(Dialect.NIM, 150_000 + n, 32)).value,
        lambda _: nim.frame(bloom=one_bit.to_wire()).value,
        lambda n: spec.frame(f"name-{n}", history=spec.new_ids(500)).value,
        lambda _: spec.frame("speaker").value,
    )
    for number in count():
        yield makers[number % len(makers)](number)
