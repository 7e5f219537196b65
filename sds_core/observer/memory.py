"""Bounded memory of keys that were seen; forgets the oldest first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile
from typing import TypeVar

import msgspec
import numpy as np

from sds_core.observer.columns import (
    Column,
    pack_ints,
    pack_steps,
    unpack_ints,
    unpack_steps,
)
from sds_core.observer.row_index import RowIndex

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def oldest(
    entries: Mapping[_Key, _Value], is_old: Callable[[_Value], bool]
) -> list[_Key]:
    """Keys of the entries before the first that is not old, to be deleted.

    One pass: to delete the first entry of a dictionary again and again takes quadratic
    time, since each search for the first steps over all that were deleted.

    Args:
        entries: Entries in order of age.
        is_old: Whether a value is old.
    """
    old = takewhile(lambda entry: is_old(entry[1]), entries.items())
    return [key for key, _ in old]


class Remembered(msgspec.Struct, array_like=True):
    """Packed form of a `Memory`: columns in order of age.

    Attributes:
        keys: The keys, packed by `pack_ints`, shape (n,).
        clocks: Clock at which each was last seen, Unix ms, packed by `pack_steps`,
            shape (n,).
    """

    keys: bytes = b""
    clocks: bytes = b""


class Memory:
    """Keys with the clock at which each was last seen, and facts about it.

    What was packed stays in columns, so that opening and packing a memory takes a
    fraction of a millisecond for tens of thousands of keys. Keys that were added since
    lie in a dictionary.

    Args:
        limit: Number of keys that are remembered at most.
        keys: Keys to begin with, int64, shape (n,), in order of age.
        clocks: Clock of each, Unix ms, rising, shape (n,).
        facts: Columns of further integers, each of shape (n,); changed in place.
    """

    def __init__(
        self, limit: int, keys: Column, clocks: Column, facts: Iterable[Column] = ()
    ) -> None:
        self._limit = limit
        self._keys = keys
        self._clocks = clocks
        self._facts = tuple(facts)
        # Rows of `_keys` before this one are forgotten, and those in `_moved`.
        self._first = 0
        self._moved: set[int] = set()
        self._index = RowIndex(keys)
        # Ordered, since a plain dictionary searches long for its first entry if many
        # before it were deleted.
        self._added: OrderedDict[int, tuple[int, ...]] = OrderedDict()

    @classmethod
    def of(cls, limit: int, packed: Remembered | None = None) -> Memory:
        """A memory without facts; empty if nothing is given."""
        packed = packed or Remembered()
        keys = unpack_ints(packed.keys, signed=True)
        return cls(limit, keys, unpack_steps(packed.clocks))

    def __contains__(self, key: int) -> bool:
        """Whether the key is remembered."""
        return key in self._added or self._row(key) is not None

    def __len__(self) -> int:
        """Number of keys that are remembered."""
        return len(self._keys) - self._first - len(self._moved) + len(self._added)

    @property
    def oldest_ms(self) -> int | None:
        """Clock at which the oldest key was last seen; None if there is no key."""
        self._skip_moved()
        if self._first < len(self._keys):
            return int(self._clocks[self._first])
        return next((entry[0] for entry in self._added.values()), None)

    def facts(self, key: int) -> tuple[int, ...] | None:
        """The facts about a key; None if it is not remembered."""
        entry = self._added.get(key)
        if entry is not None:
            return entry[1:]
        row = self._row(key)
        return None if row is None else tuple(int(c[row]) for c in self._facts)

    def add(self, key: int, clock_ms: int, *facts: int) -> int:
        """Remember a key as seen now, with these facts.

        Returns the number of keys forgotten because of the limit: 0 or 1.
        """
        # Removed first, so that the entries stay in order of age.
        if self._added.pop(key, None) is None and (row := self._row(key)) is not None:
            self._moved.add(row)
        self._added[key] = (clock_ms, *facts)
        if len(self) <= self._limit:
            return 0
        self._skip_moved()
        if self._first < len(self._keys):
            self._first += 1
        else:
            del self._added[next(iter(self._added))]
        return 1

    def change(self, key: int, *facts: int) -> None:
        """Replace the facts about a remembered key; its age stays."""
        entry = self._added.get(key)
        if entry is not None:
            self._added[key] = (entry[0], *facts)
            return
        row = self._row(key)
        if row is not None:
            for column, fact in zip(self._facts, facts, strict=True):
                column[row] = fact

    def forget_before(self, clock_ms: int) -> None:
        """Forget keys last seen before this clock, Unix ms."""
        first = max(self._first, int(self._clocks.searchsorted(clock_ms)))
        if first > self._first:
            self._first = first
            self._moved = {row for row in self._moved if row >= first}
        if self._first == len(self._keys):
            for key in oldest(self._added, lambda entry: entry[0] < clock_ms):
                del self._added[key]

    def columns(self) -> tuple[Column, ...]:
        """Keys, clocks and facts in order of age, each of shape (n,)."""
        kept: list[Column] = [self._keys, self._clocks, *self._facts]
        if self._first:
            kept = [column[self._first :] for column in kept]
        if self._moved:
            moved = np.fromiter(self._moved, np.int64, len(self._moved)) - self._first
            kept = [np.delete(column, moved) for column in kept]
        if not self._added:
            return tuple(kept)
        entries = zip(*self._added.values(), strict=True)
        added = [np.array(list(self._added), np.int64)]
        added += [np.array(column, np.int64) for column in entries]
        return tuple(np.concatenate(pair) for pair in zip(kept, added, strict=True))

    def packed(self) -> Remembered:
        """The keys in packed form, without facts."""
        keys, clocks = self.columns()[:2]
        return Remembered(pack_ints(keys, signed=True), pack_steps(clocks))

    def _row(self, key: int) -> int | None:
        """Row of a key in the columns; None if it is not there or is forgotten."""
        row = self._index.get(key)
        if row is None or row < self._first or row in self._moved:
            return None
        return row

    def _skip_moved(self) -> None:
        """Let `_first` be the oldest row that is remembered, or the end."""
        while self._first in self._moved:
            self._moved.remove(self._first)
            self._first += 1
