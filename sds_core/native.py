"""A decorator and types that tell the build how to compile the core modules.

CONTRIBUTING, "The compiled core", explains how the build uses them. In interpreted
modules, the decorator has no effect, and an array of integers is a `memoryview`.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np

_Marked = TypeVar("_Marked")

IS_COMPILED = False
"""Whether the module is compiled.

In compiled modules, the build replaces this name by True.
"""


def native(one: _Marked) -> _Marked:
    """Mark a class or a function, which the build compiles to C."""
    return one


Uint64: TypeAlias = int
"""An integer in [0, 2**64). The build treats a plain `int` as a signed integer of 64
bits."""

Bytes: TypeAlias = bytes | bytearray | memoryview
"""Bytes that a function reads but does not change."""

MutableBytes: TypeAlias = bytearray | memoryview

Int32s: TypeAlias = memoryview
Int64s: TypeAlias = memoryview
"""Integers of the width that the name states, shape (n,)."""

Uint64s: TypeAlias = memoryview
ReadUint32s: TypeAlias = memoryview
ReadUint64s: TypeAlias = memoryview

Int64Rows: TypeAlias = memoryview
"""A table of integers, shape (rows, n)."""

_BITS = 64


def view(array: np.ndarray[Any, Any]) -> memoryview:
    """Return a view of an array; a change of the view changes the array."""
    view_: memoryview = array.data
    return view_


def row_of(rows: Int64Rows, number: int) -> Int64s:
    """Return a view of one row of a table; a change of the view changes the table."""
    return view(np.asarray(rows)[number])


def uint64(value: int) -> int:
    """Interpret the low 64 bits of a value as an unsigned integer."""
    return value & ((1 << _BITS) - 1)


def int64(value: int) -> int:
    """Interpret the low 64 bits of a value as a signed integer."""
    value = uint64(value)
    return value - (1 << _BITS) if value >> (_BITS - 1) else value
