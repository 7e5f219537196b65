"""A table that finds entries by key, and decodes an entry only when it is looked up.

Every batch loads and stores a view, but uses only a few of the view's thousands of
entries. Therefore, a table keeps the entries' integers in columns, and the rest of each
entry as bytes. When an entry is looked up, the table decodes it into an object.
"""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Iterable
from typing import Generic, TypeVar

import msgspec
import numpy as np

from sds_core.native import Int64Rows, Int64s, native, row_of, view
from sds_core.observer.columns import (
    DAMAGED,
    Column,
    integers,
    pack_row,
    pack_row_steps,
    rows_in,
    unpack_row,
)
from sds_core.observer.row_index import RowIndex

Entry = TypeVar("Entry")


class Packing(enum.Enum):
    """How a column of integers is encoded; see the module `columns`."""

    SIGNED = enum.auto()
    """Any integers in [-2**63, 2**63)."""
    UNSIGNED = enum.auto()
    """Integers in [0, 2**64)."""
    RISING = enum.auto()
    """Integers in [-2**62, 2**62) that mostly increase."""


SIGNED, UNSIGNED, RISING = Packing


@native
class Codec(Generic[Entry]):
    """How a table stores entries of one kind.

    Attributes:
        packings: Encoding of columns 1, 2 and so on; column 0 has the keys.
        latest: Number of the column that has, for each entry, the time at which the
            entry was last needed.
    """

    packings: tuple[Packing, ...]
    latest: int

    def __init__(self, packings: tuple[Packing, ...], latest: int) -> None:
        self.packings = packings
        self.latest = latest

    def store(self, entry: object, cells: Int64Rows, row: int) -> bytes:
        """Write an entry's integers into a row; return the rest of the entry as bytes.

        The cells are signed, so `native.int64` must convert each unsigned integer.
        """
        raise NotImplementedError

    def load(self, key: int, cells: Int64Rows, row: int, rest: bytes) -> Entry:
        """Return the decoded entry."""
        raise NotImplementedError


class PackedTable(msgspec.Struct, array_like=True):
    """The encoded form of a table with n entries, which are in order of insertion.

    Attributes:
        keys: Keys, encoded as `SIGNED`, shape (n,).
        columns: Columns, encoded as in `Codec.packings`, each of shape (n,).
        ends: For each entry, the offset in `rests` at which the entry's bytes end.
            Encoded as `RISING`, shape (n,).
        rests: The joined bytes of the entries' parts that are not in columns.
    """

    keys: bytes = b""
    columns: list[bytes] = []
    ends: bytes = b""
    rests: bytes = b""


@native
class Table(Generic[Entry]):
    """Entries by key, in order of insertion.

    Until `flush` or `packed` is called, you may change an entry that you looked up.
    After that, look up the entry again before you change it.

    Raises:
        ValueError: The encoded table is damaged.
    """

    _codec: Codec[Entry]
    # Each row of this array is a column of the table: the keys, the codec's columns,
    # and the ends of the entries' bytes in `_rests`.
    _block: Column
    _cells: Int64Rows
    _rows: int
    _last: int
    _rests: bytes
    # The table's encoded form; None if the table has changed since it was decoded.
    _given: PackedTable | None
    _index: RowIndex
    # The entries in all rows before `_first` were removed. `_gone` has the later rows
    # whose entries were removed.
    _first: int
    _gone: set[int]
    # `_objects` has the entry of each row; None if the entry is not decoded, or was
    # removed. `_touched` has the rows of decoded entries, in order of decoding.
    _objects: list[Entry | None]
    _touched: list[int]
    # Entries that were added after the last `flush`, and therefore have no row yet.
    _added: OrderedDict[int, Entry]

    def __init__(self, codec: Codec[Entry], packed: PackedTable) -> None:
        self._codec = codec
        self._last = len(codec.packings) + 1
        self._rests = packed.rests
        self._unpack(packed)
        self._given = packed
        self._first = 0
        self._gone = set()
        self._touched = []
        self._added = OrderedDict()

    def _unpack(self, packed: PackedTable) -> None:
        rows: int = rows_in(packed.keys, False)
        self._hold(np.empty((self._last + 1, rows), np.int64))
        if not rows:
            # If a table has no entries, its other encoded parts must be empty too.
            if packed.ends or packed.rests or any(packed.columns):
                raise ValueError(DAMAGED)
            return
        unpack_row(packed.keys, True, False, row_of(self._cells, 0))
        number: int = 1
        for packing, data in zip(self._codec.packings, packed.columns, strict=True):
            is_signed: bool = packing is Packing.SIGNED
            is_rising: bool = packing is Packing.RISING
            unpack_row(data, is_signed, is_rising, row_of(self._cells, number))
            number += 1
        unpack_row(packed.ends, True, True, row_of(self._cells, self._last))
        begin: int = 0
        row: int
        for row in range(rows):
            if self._cells[self._last, row] < begin:
                raise ValueError(DAMAGED)
            begin = self._cells[self._last, row]
        if begin != len(self._rests):
            raise ValueError(DAMAGED)

    def _hold(self, block: Column) -> None:
        self._block = block
        self._cells = view(block)
        self._rows = block.shape[1]
        self._index = RowIndex(block[0])
        self._objects = [None] * self._rows

    def __len__(self) -> int:
        """Number of entries."""
        return self._rows - self._first - len(self._gone) + len(self._added)

    def __contains__(self, key: int) -> bool:
        """Whether an entry with this key exists."""
        return self._row(key) >= 0 or key in self._added

    def __getitem__(self, key: int) -> Entry:
        """The entry with this key, which must exist."""
        entry = self.get(key)
        if entry is None:
            raise KeyError(key)
        return entry

    def __setitem__(self, key: int, entry: Entry) -> None:
        """Append an entry. If the key already has an entry, that entry is removed."""
        if self._row(key) >= 0 or key in self._added:
            self.remove(key)
        self._added[key] = entry

    def get(self, key: int) -> Entry | None:
        """The entry with this key; None if none exists."""
        row: int = self._row(key)
        if row < 0:
            return self._added.get(key) if self._added else None
        entry = self._objects[row]
        return self._opened(key, row) if entry is None else entry

    def many(self, keys: Iterable[int]) -> list[Entry]:
        """The entries with these keys, in the order of `keys`. Each must exist."""
        return [self[key] for key in keys]

    def at(self, row: int) -> Entry | None:
        """The entry whose integers are in a row; None if the entry was removed."""
        if row < self._first or (self._gone and row in self._gone):
            return None
        entry = self._objects[row]
        if entry is not None:
            return entry
        return self._opened(self._cells[0, row], row)

    def pop(self, key: int) -> Entry | None:
        """Remove and return the entry with this key; None if none exists."""
        entry = self.get(key)
        if entry is not None:
            self.remove(key)
        return entry

    def remove(self, key: int) -> None:
        """Remove the entry with this key, if it exists."""
        if self._added and self._added.pop(key, None) is not None:
            return
        row: int = self._row(key)
        if row >= 0:
            self._objects[row] = None
            self._gone.add(row)
            while self._first in self._gone:
                self._gone.remove(self._first)
                self._first += 1

    def first(self) -> int:
        """Key of the first entry, which must exist."""
        if self._first < self._rows:
            return self._cells[0, self._first]
        return next(iter(self._added))

    def column(self, number: int) -> Column:
        """The values of all entries in one column, shape (n,). Call `flush` first."""
        column: Column = self._block[number]
        if self._codec.packings[number - 1] is Packing.UNSIGNED:
            return column.view(np.uint64)
        return column

    @property
    def keys(self) -> Column:
        """Keys of all entries, int64, shape (n,). Call `flush` first."""
        keys: Column = self._block[0]
        return keys

    def silent_since(self, clock_ms: int) -> list[int]:
        """Keys of the entries that were last needed before `clock_ms`."""
        self.flush()
        return integers(self.keys[self.column(self._codec.latest) < clock_ms])

    def silent_from_ms(self) -> int | None:
        """The earliest time at which an entry was last needed, Unix ms.

        The result is None if the table is empty.
        """
        self.flush()
        latest = self.column(self._codec.latest)
        return int(latest.min()) if len(latest) else None

    def flush(self) -> None:
        """Write all changes since the last call into the columns.

        The table no longer uses the objects of entries that were looked up before.
        """
        if not (self._first or self._gone or self._touched or self._added):
            return
        self._given = None
        rests: dict[int, bytes] = {}
        for row in self._touched:
            one = self._objects[row]
            if one is not None:
                rests[row] = self._codec.store(one, self._cells, row)
                self._objects[row] = None
        new = np.empty((self._last + 1, len(self._added)), np.int64)
        cells: Int64Rows = view(new)
        added: list[bytes] = []
        place: int
        for place, (key, entry) in enumerate(self._added.items()):
            cells[0, place] = key
            added.append(self._codec.store(entry, cells, place))
        self._join_rests(rests, added, cells)
        if self._first or self._gone or self._added:
            kept = self._block[:, self._first :]
            if self._gone:
                gone = np.fromiter(self._gone, np.int64, len(self._gone))
                kept = np.delete(kept, gone - self._first, axis=1)
            if self._added:
                kept = np.concatenate((kept, new), axis=1)
            self._hold(np.ascontiguousarray(kept))
            self._first = 0
            self._gone = set()
        self._touched.clear()
        self._added.clear()

    def packed(self) -> PackedTable:
        """Return the encoded table, which the state stores."""
        self.flush()
        if self._given is not None:
            return self._given
        columns: list[bytes] = []
        number: int = 1
        for packing in self._codec.packings:
            cells: Int64s = row_of(self._cells, number)
            if packing is Packing.RISING:
                columns.append(pack_row_steps(cells))
            else:
                columns.append(pack_row(cells, packing is Packing.SIGNED))
            number += 1
        return PackedTable(
            pack_row(row_of(self._cells, 0), True),
            columns,
            pack_row_steps(row_of(self._cells, self._last)),
            self._rests,
        )

    def strip(self, rows: Iterable[int]) -> None:
        """For the entries in these rows, delete the part that is not in columns.

        Call `flush` first.
        """
        self._given = None
        no_rows = np.empty((self._last + 1, 0), np.int64)
        self._join_rests(dict.fromkeys(rows, b""), [], view(no_rows))

    def _row(self, key: int) -> int:
        row: int = self._index.find(key)
        if row < self._first or (self._gone and row in self._gone):
            return -1
        return row

    def _opened(self, key: int, row: int) -> Entry:
        begin: int = self._cells[self._last, row - 1] if row else 0
        end: int = self._cells[self._last, row]
        entry = self._codec.load(key, self._cells, row, self._rests[begin:end])
        self._objects[row] = entry
        self._touched.append(row)
        return entry

    def _join_rests(
        self,
        replaced: dict[int, bytes],
        added: list[bytes],
        cells: Int64Rows,
    ) -> None:
        """Update `_rests` and the ends of its parts after changes.

        `_rests` then has the bytes of the remaining rows, followed by those of the
        added entries. The columns still contain the removed rows.

        Args:
            replaced: For each changed row, its new bytes.
            added: The bytes of each added entry.
            cells: Receives the ends of the added entries' bytes.
        """
        last: int = self._last
        data, pieces = self._rests, []
        # All bytes between two changed rows are copied in one piece.
        copied: int = self._cells[last, self._first - 1] if self._first else 0
        begin: int = copied
        end: int = 0
        changed: list[int] = sorted([*replaced, *self._gone])
        place: int = 0
        next_changed: int = changed[0] if changed else -1
        row: int
        for row in range(self._first, self._rows):
            old_end: int = self._cells[last, row]
            length: int = old_end - begin
            if row == next_changed:
                place += 1
                next_changed = changed[place] if place < len(changed) else -1
                pieces.append(data[copied:begin])
                copied = old_end
                length = 0
                rest = None if row in self._gone else replaced[row]
                if rest:
                    pieces.append(rest)
                    length = len(rest)
            end += length
            self._cells[last, row] = end
            begin = old_end
        pieces.append(data[copied:])
        for place, rest in enumerate(added):
            end += len(rest)
            cells[last, place] = end
        self._rests = b"".join([*pieces, *added])
