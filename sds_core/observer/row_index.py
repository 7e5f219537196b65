"""An index that finds the row of a key in a column of distinct keys."""

from __future__ import annotations

from os import urandom

import numpy as np

from sds_core.native import Int32s, Int64s, Uint64, native, uint64, view
from sds_core.observer.columns import Column

_MANY = 4_096
"""If a column has fewer rows than this, the first search builds the index."""

_ROWS_PER_SEARCH = 2_000
"""A column with `_MANY` or more rows gets its index when the number of searches reaches
the number of rows divided by this number.

Earlier searches scan the column. Building the index takes as long as a few scans.
"""

_SEED_BYTES = 8


@native
class RowIndex:
    """A hash table from distinct int64 keys to rows, built after enough searches."""

    _keys: Int64s
    _slots: Int32s
    _count: int
    _mask: int
    # Each table has a random seed. Anyone can compute the key of an id, and the sender
    # of all frames of a channel knows all keys. Without a secret, such a sender could
    # create ids that collide in the hash table. The seed affects only the time of a
    # search: rows do not depend on it.
    _seed: Uint64
    _searches: int
    _is_made: bool

    def __init__(self, keys: Column) -> None:
        self._keys = view(keys)
        self._count = len(keys)
        self._mask = self._searches = 0
        self._seed = uint64(0)
        self._is_made = False

    def find(self, key: int) -> int:
        """The row of a key; -1 if the key is not in the column."""
        if not self._count:
            return -1
        if not self._is_made:
            self._searches += 1
            if self._count >= _MANY and self._searches * _ROWS_PER_SEARCH < self._count:
                return self._stepped_over(key)
            self._make()
        slot: int = self._slot(key)
        while True:
            row: int = self._slots[slot] - 1
            if row < 0 or self._keys[row] == key:
                return row
            slot = (slot + 1) & self._mask

    def _slot(self, key: int) -> int:
        """Slot of a key, by a 64-bit mixing function (moremur, Evensen 2019).

        The function also distributes consecutive keys evenly, for example sequence
        numbers.
        """
        first: Uint64 = 0x3C79AC492BA7B653
        second: Uint64 = 0x1C69B3F74AC4AE35
        mixed: Uint64 = uint64(key) ^ self._seed
        mixed = uint64((mixed ^ mixed >> 27) * first)
        mixed = uint64((mixed ^ mixed >> 33) * second)
        return (mixed ^ mixed >> 27) & self._mask

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
        self._seed = int.from_bytes(urandom(_SEED_BYTES), "little")
        row: int
        for row in range(self._count):
            slot: int = self._slot(self._keys[row])
            while self._slots[slot]:
                slot = (slot + 1) & self._mask
            self._slots[slot] = row + 1
        self._is_made = True
