"""A decorator and types for the build that compiles the core modules.

CONTRIBUTING, "The compiled core", explains what the build does with the decorator and
the types. If the modules are interpreted, the decorator changes nothing, and an array
of integers is a `memoryview`.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np

_Marked = TypeVar("_Marked")

IS_COMPILED = False
"""The build replaces this name by True in the modules that it compiles."""


def native(one: _Marked) -> _Marked:
    """Mark a class whose objects become C structures, or a function with C types."""
    return one


Uint64: TypeAlias = int
"""An integer in [0, 2**64); the build treats `int` as signed, with 64 bits."""

Bytes: TypeAlias = bytes | bytearray | memoryview
"""Bytes that a function only reads."""

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
    """Return an array's integers as a view: a change of the view changes the array."""
    view_: memoryview = array.data
    return view_


def row_of(rows: Int64Rows, number: int) -> Int64s:
    """Return a row as a view, shape (n,): a change of the view changes the array."""
    return view(np.asarray(rows)[number])


def uint64(value: int) -> int:
    """Interpret 64 bits as an unsigned integer."""
    return value & ((1 << _BITS) - 1)


def int64(value: int) -> int:
    """Interpret 64 bits as a signed integer."""
    value = uint64(value)
    return value - (1 << _BITS) if value >> (_BITS - 1) else value
