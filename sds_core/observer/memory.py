"""Remembers the most recently seen keys, up to a maximum number of keys."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

import msgspec
import numpy as np

from sds_core.native import Int64Rows, Int64s, native, row_of, view
from sds_core.observer.columns import (
    DAMAGED,
    Column,
    pack_row,
    pack_row_steps,
    unpacked_row,
)
from sds_core.observer.row_index import RowIndex


class Remembered(msgspec.Struct, array_like=True):
    """Encoded form of a `Memory` without facts: two columns, oldest key first.

    Attributes:
        keys: The keys, encoded by `pack_ints`, shape (n,).
        clocks: Clock at which each key was last seen, Unix ms, encoded by `pack_steps`,
            shape (n,).
    """

    keys: bytes = b""
    clocks: bytes = b""


@native
class Memory:
    """Remembers when each key was last seen, and integers that are facts about the key.

    Initial keys stay in columns, so that decoding or encoding tens of thousands of keys
    takes a fraction of a millisecond. Keys that are added later are in a dictionary.

    Args:
        keys: Initial keys, int64, shape (n,), oldest key first.
        clocks: Clock at which each key was last seen, Unix ms, in increasing order,
            shape (n,).
        facts: One column of shape (n,) for each fact, with an integer for each key.
            `change` writes to these arrays.

    Raises:
        ValueError: The columns have different lengths.
    """

    _limit: int
    _keys: Int64s
    _clocks: Int64s
    _facts: list[Column]
    _rows: int
    _first: int
    _moved: set[int]
    _index: RowIndex
    _added: OrderedDict[int, tuple[int, ...]]

    def __init__(
        self, limit: int, keys: Column, clocks: Column, facts: Iterable[Column] = ()
    ) -> None:
        self._limit = limit
        self._keys = view(keys)
        self._clocks = view(clocks)
        self._facts = list(facts)
        self._rows = len(keys)
        for column in (clocks, *self._facts):
            if len(column) != self._rows:
                raise ValueError(DAMAGED)
        # A row of `_keys` no longer counts if it is before `_first` or in `_moved`.
        self._first = 0
        self._moved = set()
        self._index = RowIndex(keys)
        # `_added` is an `OrderedDict`, because a plain dictionary finds its first entry
        # slowly after many entries at its beginning were deleted.
        self._added = OrderedDict()

    @classmethod
    def of(cls, limit: int, packed: Remembered | None = None) -> Memory:
        """Return a memory without facts; empty if `packed` is omitted."""
        packed = packed or Remembered()
        keys = unpacked_row(packed.keys, True, False)
        return cls(limit, keys, unpacked_row(packed.clocks, True, True))

    def __contains__(self, key: int) -> bool:
        """Whether the key is remembered."""
        return key in self._added or self._row(key) >= 0

    def __len__(self) -> int:
        """Number of keys that are remembered."""
        return self._rows - self._first - len(self._moved) + len(self._added)

    @property
    def oldest_ms(self) -> int | None:
        """When the oldest key was last seen, Unix ms; None if the memory is empty."""
        self._skip_moved()
        if self._first < self._rows:
            return self._clocks[self._first]
        for entry in self._added.values():
            return entry[0]
        return None

    def facts(self, key: int) -> tuple[int, ...] | None:
        """The facts about a key; None if the key is not remembered."""
        entry = self._added.get(key)
        if entry is not None:
            return entry[1:]
        row: int = self._row(key)
        return None if row < 0 else tuple([int(column[row]) for column in self._facts])

    def add(self, key: int, entry: tuple[int, ...]) -> int:
        """Remember a key as seen now. `entry` has the clock (Unix ms), then the facts.

        Returns:
            1 if the oldest key was dropped, because the memory exceeded its limit;
            otherwise 0.
        """
        # A known key moves to the end, so that the keys stay in order of age.
        if self._added.pop(key, None) is None:
            row: int = self._row(key)
            if row >= 0:
                self._moved.add(row)
        self._added[key] = entry
        if len(self) <= self._limit:
            return 0
        self._skip_moved()
        if self._first < self._rows:
            self._first += 1
        else:
            del self._added[next(iter(self._added))]
        return 1

    def change(self, key: int, *facts: int) -> None:
        """Replace the facts about a remembered key; its age does not change."""
        entry = self._added.get(key)
        if entry is not None:
            self._added[key] = (entry[0], *facts)
            return
        row: int = self._row(key)
        if row >= 0:
            for column, fact in zip(self._facts, facts, strict=True):
                column[row] = fact

    def forget_before(self, clock_ms: int) -> None:
        """Drop keys that were last seen before `clock_ms`, Unix ms."""
        first: int = self._first
        while first < self._rows and self._clocks[first] < clock_ms:
            first += 1
        if first > self._first:
            self._first = first
            self._moved = {row for row in self._moved if row >= first}
        if self._first == self._rows and self._added:
            old: list[int] = []
            for key, entry in self._added.items():
                if entry[0] >= clock_ms:
                    break
                old.append(key)
            for key in old:
                del self._added[key]

    def columns(self) -> tuple[Column, ...]:
        """The columns of keys, clocks and each fact, shape (n,), oldest key first."""
        block = np.empty((2 + len(self._facts), len(self)), np.int64)
        cells: Int64Rows = view(block)
        place: int = 0
        row: int
        number: int
        if not self._moved and self._first < self._rows:
            place = self._rows - self._first
            row_of(cells, 0)[:place] = self._keys[self._first :]
            row_of(cells, 1)[:place] = self._clocks[self._first :]
        else:
            for row in range(self._first, self._rows):
                if row not in self._moved:
                    cells[0, place] = self._keys[row]
                    cells[1, place] = self._clocks[row]
                    place += 1
        number = 2
        for column in self._facts:
            kept = column[self._first :]
            if self._moved:
                moved = np.fromiter(self._moved, np.int64, len(self._moved))
                kept = np.delete(kept, moved - self._first)
            block[number, :place] = kept
            number += 1
        for key, entry in self._added.items():
            cells[0, place] = key
            number = 1
            for value in entry:
                cells[number, place] = value
                number += 1
            place += 1
        return tuple(block)

    def packed(self) -> Remembered:
        """The keys and their clocks in encoded form, without facts."""
        keys, clocks = self.columns()[:2]
        return Remembered(pack_row(view(keys), True), pack_row_steps(view(clocks)))

    def _row(self, key: int) -> int:
        row: int = self._index.find(key)
        if row < self._first or (self._moved and row in self._moved):
            return -1
        return row

    def _skip_moved(self) -> None:
        """Move `_first` to the oldest row that still counts, or after the last row."""
        while self._moved and self._first in self._moved:
            self._moved.remove(self._first)
            self._first += 1
