"""Marks and types for the build that compiles the rules.

CONTRIBUTING, "The compiled core", says what the build makes of them. Uncompiled, a mark
changes nothing, and an array of integers is a view of Python's own.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np

_Marked = TypeVar("_Marked")

IS_COMPILED = False
"""The build replaces this name by True in the modules that it compiles."""


def native(one: _Marked) -> _Marked:
    """Mark a class whose objects become C structures, or a function of C types."""
    return one


Uint64: TypeAlias = int
"""An integer in [0, 2**64). Where the build sees `int`, it takes 64 bits with sign."""

Bytes: TypeAlias = bytes | bytearray | memoryview
"""Bytes that are only read."""

MutableBytes: TypeAlias = bytearray | memoryview

Int32s: TypeAlias = memoryview
Int64s: TypeAlias = memoryview
"""Integers of one width, shape (n,)."""

Uint64s: TypeAlias = memoryview
ReadUint32s: TypeAlias = memoryview
ReadUint64s: TypeAlias = memoryview

Int64Rows: TypeAlias = memoryview
"""Rows of integers, shape (rows, n)."""

_BITS = 64


def view(array: np.ndarray[Any, Any]) -> memoryview:
    """The integers of an array; a change of one changes the array."""
    view_: memoryview = array.data
    return view_


def row_of(rows: Int64Rows, number: int) -> Int64s:
    """One of several rows, shape (n,); a change of one changes the other."""
    return view(np.asarray(rows)[number])


def uint64(value: int) -> int:
    """The same 64 bits without sign."""
    return value & ((1 << _BITS) - 1)


def int64(value: int) -> int:
    """The same 64 bits with sign."""
    value = uint64(value)
    return value - (1 << _BITS) if value >> (_BITS - 1) else value
