"""Finds the row of a key in a column of distinct keys."""

from __future__ import annotations

import numpy as np

from sds_core.native import Int32s, Int64s, Uint64, native, uint64, view
from sds_core.observer.columns import Column

_MANY = 4_096
"""From this number of rows on, a few searches step over the column."""

_ROWS_PER_SEARCH = 20
"""To index this many rows takes about as long as to step over a column once."""


@native
class RowIndex:
    """Rows by key: a hash table in an array, made by the first search.

    Args:
        keys: Distinct keys, int64, shape (n,).
    """

    _keys: Int64s
    _slots: Int32s
    _count: int
    _mask: int
    # Of all keys: who chooses ids so that they share slots must know every other key.
    _factor: int
    _searches: int
    _is_made: bool

    def __init__(self, keys: Column) -> None:
        self._keys = view(keys)
        self._count = len(keys)
        self._mask = self._searches = self._factor = 0
        self._is_made = False

    def get(self, key: int) -> int | None:
        """The row of a key; None if it is not in the column."""
        row = self.find(key)
        return None if row < 0 else row

    def find(self, key: int) -> int:
        """The row of a key; -1 if it is not in the column."""
        if not self._count:
            return -1
        if not self._is_made:
            self._searches += 1
            if self._count >= _MANY and self._searches * 200 < self._count:
                return self._stepped_over(key)
            self._make()
        slot: int = self._slot(key)
        while True:
            row: int = self._slots[slot] - 1
            if row < 0 or self._keys[row] == key:
                return row
            slot = (slot + 1) & self._mask

    def _slot(self, key: int) -> int:
        """Where a key belongs: high bits of its product with the factor."""
        mixed: Uint64 = uint64(uint64(key) * uint64(self._factor))
        return mixed >> 32 & self._mask

    def _stepped_over(self, key: int) -> int:
        row: int
        for row in range(self._count - 1, -1, -1):
            if self._keys[row] == key:
                return row
        return -1

    def _make(self) -> None:
        size: int = 16
        while size < 2 * self._count:
            size *= 2
        self._slots = view(np.zeros(size, np.int32))
        self._mask = size - 1
        row: int
        for row in range(self._count):
            self._factor ^= self._keys[row]
        self._factor |= 1
        for row in range(self._count):
            slot: int = self._slot(self._keys[row])
            while self._slots[slot]:
                slot = (slot + 1) & self._mask
            self._slots[slot] = row + 1
        self._is_made = True
