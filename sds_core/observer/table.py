"""Entries by key that lie in columns until somebody looks at them.

A view is opened and packed in every batch, and remembers thousands of entries of which
a batch touches a few. So a table keeps what was packed as columns of integers, and the
rest of each entry as bytes. An entry becomes an object when it is asked for.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

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

Entry = TypeVar("Entry")


class Packing(NamedTuple):
    """How a column of integers is packed, and its type in memory.

    Attributes:
        pack, unpack: Functions of `columns`.
        dtype: int64 or uint64.
    """

    pack: Callable[[Column], bytes]
    unpack: Callable[[bytes], Column]
    dtype: type[np.int64] | type[np.uint64] = np.int64


SIGNED = Packing(
    lambda column: pack_ints(column, signed=True),
    lambda data: unpack_ints(data, signed=True),
)
"""Any integers in [-2**63, 2**63)."""

UNSIGNED = Packing(pack_ints, unpack_ints, np.uint64)
"""Integers in [0, 2**64)."""

RISING = Packing(pack_steps, unpack_steps)
"""Integers that mostly rise."""


class Codec(Protocol[Entry]):
    """Splits an entry into integers and the rest, and makes it from them."""

    @property
    def packings(self) -> Sequence[Packing]:
        """One for each column but the key."""

    def split(self, entry: Entry) -> tuple[tuple[int, ...], bytes]:
        """The entry's integers, one for each column, and the rest of it."""

    def join(self, key: int, values: Sequence[int], rest: bytes) -> Entry:
        """The entry again."""


class PackedTable(msgspec.Struct, array_like=True):
    """A table of n entries, in order.

    Attributes:
        keys: Keys, packed as `SIGNED`, shape (n,).
        columns: Columns, packed as the codec says, each of shape (n,).
        ends: End of each entry's bytes in `rests`, packed as `RISING`, shape (n,).
        rests: The rest of each entry, one after the other.
    """

    keys: bytes = b""
    columns: list[bytes] = []
    ends: bytes = b""
    rests: bytes = b""


class Table(Generic[Entry]):
    """Entries by key, in order of insertion.

    An entry may be changed until `flush` or `packed` is called; look it up again
    afterwards.

    Args:
        codec: Splits entries.
        packed: The entries to begin with.
    """

    def __init__(self, codec: Codec[Entry], packed: PackedTable) -> None:
        self._codec = codec
        self._keys = SIGNED.unpack(packed.keys)
        # The empty table has no packed columns.
        self._columns = [
            packing.unpack(data)
            for packing, data in zip(
                codec.packings,
                packed.columns or [b""] * len(codec.packings),
                strict=True,
            )
        ]
        self._ends = RISING.unpack(packed.ends)
        self._rests = packed.rests
        # What the columns were unpacked from, as long as nothing has changed.
        self._given: PackedTable | None = packed
        self._index = RowIndex(self._keys)
        # Rows before this one are gone; others that are gone are in `_gone`.
        self._first = 0
        self._gone: set[int] = set()
        # Entries that are objects, by key; and the row of each that has one.
        self._live: dict[int, Entry] = {}
        self._touched: dict[int, int] = {}
        self._added: OrderedDict[int, Entry] = OrderedDict()

    def __len__(self) -> int:
        """Number of entries."""
        return len(self._keys) - self._first - len(self._gone) + len(self._added)

    def __contains__(self, key: int) -> bool:
        """Whether there is an entry with this key."""
        return key in self._live or self._row(key) is not None

    def __getitem__(self, key: int) -> Entry:
        """The entry with this key, which there must be."""
        entry = self.get(key)
        if entry is None:
            raise KeyError(key)
        return entry

    def __setitem__(self, key: int, entry: Entry) -> None:
        """Append an entry; it replaces one with the same key."""
        if key in self:
            del self[key]
        self._live[key] = self._added[key] = entry

    def get(self, key: int) -> Entry | None:
        """The entry with this key; None if there is none."""
        entry = self._live.get(key)
        if entry is not None:
            return entry
        row = self._row(key)
        return None if row is None else self._opened(key, row)

    def many(self, keys: Iterable[int]) -> list[Entry]:
        """The entries with these keys, which there must be, in the order given."""
        live = self._live
        return [live.get(key) or self[key] for key in keys]

    def at(self, row: int) -> Entry | None:
        """The entry of a row of the columns; None if it is gone."""
        if row < self._first or row in self._gone:
            return None
        key = int(self._keys[row])
        return self._live.get(key) or self._opened(key, row)

    def pop(self, key: int) -> Entry | None:
        """Remove and return the entry with this key; None if there is none."""
        entry = self.get(key)
        if entry is not None:
            del self[key]
        return entry

    def __delitem__(self, key: int) -> None:
        """Remove the entry with this key, if there is one."""
        self._live.pop(key, None)
        if self._added.pop(key, None) is not None:
            return
        row = self._touched.pop(key, None)
        if row is None:
            row = self._row(key)
        if row is not None:
            self._gone.add(row)
            while self._first in self._gone:
                self._gone.remove(self._first)
                self._first += 1

    def first(self) -> int:
        """Key of the first entry; there must be one."""
        row = self.first_row
        return next(iter(self._added)) if row is None else int(self._keys[row])

    @property
    def first_row(self) -> int | None:
        """The first entry's row of the columns; None if it has been added since."""
        return self._first if self._first < len(self._keys) else None

    @property
    def added(self) -> Iterable[Entry]:
        """Entries that are not in the columns yet, in order."""
        return self._added.values()

    def column(self, number: int) -> Column:
        """One column of all entries, shape (n,). Call `flush` first."""
        return self._columns[number]

    @property
    def keys(self) -> Column:
        """Keys of all entries, int64, shape (n,). Call `flush` first."""
        return self._keys

    def flush(self) -> None:
        """Bring the columns up to date. Entries that were looked up are now stale."""
        if not (self._first or self._gone or self._touched or self._added):
            return
        self._given = None
        codec, rows = self._codec, list(self._touched.values())
        split = [codec.split(self._live[key]) for key in self._touched]
        new = [codec.split(entry) for entry in self._added.values()]
        columns = self._columns
        if split:
            for column, values in zip(columns, _transposed(split, codec), strict=True):
                column[rows] = values
        rests = dict(zip(rows, (rest for _, rest in split), strict=True))
        self._join_rests(rests, [rest for _, rest in new])
        kept = [self._keys, *columns]
        if self._first:
            kept = [column[self._first :] for column in kept]
        if self._gone:
            gone = np.fromiter(self._gone, np.int64, len(self._gone)) - self._first
            kept = [np.delete(column, gone) for column in kept]
        if new:
            added = [np.array(list(self._added), np.int64), *_transposed(new, codec)]
            kept = [np.concatenate(pair) for pair in zip(kept, added, strict=True)]
        self._keys, self._columns = kept[0], kept[1:]
        if self._first or self._gone or new:
            self._index, self._first, self._gone = RowIndex(self._keys), 0, set()
        self._live.clear()
        self._touched.clear()
        self._added.clear()

    def packed(self) -> PackedTable:
        """The packed form, for the state."""
        self.flush()
        if self._given is not None:
            return self._given
        return PackedTable(
            SIGNED.pack(self._keys),
            [
                packing.pack(column)
                for packing, column in zip(
                    self._codec.packings, self._columns, strict=True
                )
            ],
            RISING.pack(self._ends),
            self._rests,
        )

    def strip(self, rows: Column) -> None:
        """Replace the rest of some rows by no bytes. Call `flush` first.

        Args:
            rows: Which rows, as booleans of shape (n,).
        """
        self._given = None
        has_rest = np.diff(self._ends, prepend=0) > 0
        stripped = np.flatnonzero(rows & has_rest).tolist()
        if stripped:
            self._join_rests(dict.fromkeys(stripped, b""), [])

    def _row(self, key: int) -> int | None:
        """Row of a key in the columns; None if it is not there or is gone."""
        row = self._index.get(key)
        if row is None or row < self._first or row in self._gone:
            return None
        return row

    def _opened(self, key: int, row: int) -> Entry:
        """Make the entry of a row."""
        begin = int(self._ends[row - 1]) if row else 0
        entry = self._live[key] = self._codec.join(
            key,
            [int(column[row]) for column in self._columns],
            self._rests[begin : int(self._ends[row])],
        )
        self._touched[key] = row
        return entry

    def _join_rests(self, replaced: dict[int, bytes], added: Sequence[bytes]) -> None:
        """Join the rests of the rows that are not gone, and those of added entries."""
        data, ends = self._rests, self._ends
        lengths = np.diff(ends, prepend=0)
        starts = ends - lengths
        changed = sorted([*replaced, *self._gone])
        begin = int(starts[self._first]) if self._first < len(ends) else len(data)
        pieces: list[bytes] = []
        for row, start, end in zip(
            changed, starts[changed].tolist(), ends[changed].tolist(), strict=True
        ):
            pieces.append(data[begin:start])
            begin = end
            if row in replaced:
                pieces.append(replaced[row])
                lengths[row] = len(replaced[row])
        pieces.append(data[begin:])
        lengths = np.delete(lengths, list(self._gone))[self._first :]
        new = np.array([len(rest) for rest in added], np.int64)
        self._rests = b"".join([*pieces, *added])
        self._ends = np.concatenate((lengths, new)).cumsum()


def _transposed(
    split: Sequence[tuple[tuple[int, ...], bytes]], codec: Codec[Entry]
) -> Iterator[Column]:
    """The columns of split entries, of which there is at least one."""
    values: Iterable[tuple[int, ...]] = zip(*(row for row, _ in split), strict=True)
    for packing, column in zip(codec.packings, values, strict=True):
        yield np.array(column, packing.dtype)
