"""An index that finds the row of a key in a column of distinct keys."""

from __future__ import annotations

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

_LONGEST_RUN = 128
"""Maximum number of slots in use in a row, unless `_TRIES` seeds do not suffice.

A search takes at most one step more. With a million random keys, the longest run has
about 70 slots.
"""

_TRIES = 8
"""Maximum number of seeds that are tried for a column."""


@native
class RowIndex:
    """A hash table from distinct int64 keys to rows, built after enough searches."""

    _keys: Int64s
    _slots: Int32s
    _count: int
    _mask: int
    # Anyone can compute the key of an id, and the sender of all frames of a channel
    # knows all keys. Such a sender can create ids that collide with the first seed. The
    # next seed then spreads them: ids that collide with all seeds cannot be found.
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
        self._mask = size - 1
        row: int
        for row in range(self._count):
            self._seed ^= uint64(self._keys[row])
        factor: Uint64 = 0x3C79AC492BA7B653
        left: int = _TRIES
        while not self._fill(size, size if left == 1 else _LONGEST_RUN):
            self._seed = uint64(self._seed * factor + 1)
            left -= 1
        self._is_made = True

    def _fill(self, size: int, longest: int) -> bool:
        """Make the table with the seed; return whether no run exceeds `longest`."""
        self._slots = view(np.zeros(size, np.int32))
        row: int
        step: int
        for row in range(self._count):
            slot: int = self._slot(self._keys[row])
            step = 0
            while self._slots[slot]:
                slot = (slot + 1) & self._mask
                step += 1
            if step >= longest:
                return False
            self._slots[slot] = row + 1
        run: int = 0
        if self._count > longest:
            # The last slots and the first ones can be one run.
            for step in range(size + longest):
                run = run + 1 if self._slots[step & self._mask] else 0
                if run > longest:
                    return False
        return True
