"""Damage to packed columns, with the right checksum behind it.

A checksum finds what storage changed. What else may be wrong in a state or digest must
be found where the columns are read: compiled code would read foreign memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import msgspec

from sds_core.observer import blob
from sds_core.observer.columns import pack_steps, unpack_ints, unpack_steps
from sds_core.observer.kinds import AnyKind
from sds_core.observer.memory import Remembered
from sds_core.observer.sds.copies import PackedBroadcasts
from sds_core.observer.table import PackedTable

_BASE_BYTES = 8
_HEAD_BYTES = 9

Damage = Callable[[bytes], bytes]
"""Changes a column as `pack_ints` packs it, of at least two values."""


def _of_width(code: int) -> Damage:
    return lambda data: bytes([code]) + data[1:]


def _without_last(data: bytes) -> bytes:
    return data[: -(1 << data[0])]


def _with_another(data: bytes) -> bytes:
    return data + data[-(1 << data[0]) :]


COLUMN_DAMAGE: dict[str, Damage] = {
    "width code 4": _of_width(4),
    "width code 255": _of_width(255),
    "no values": lambda _: b"",
    "cut in the head": lambda data: data[:5],
    "head alone": lambda data: data[:_HEAD_BYTES],
    "one value less": _without_last,
    "one value more": _with_another,
    "one byte more": lambda data: data + b"\0",
}


class Column(NamedTuple):
    """A packed column of a state.

    Attributes:
        name: Where it is.
        data: The column.
        values: How many values it must have.
        put: Replaces it.
    """

    name: str
    data: bytes
    values: int
    put: Callable[[bytes], None]

    def damage(self, damage: Damage) -> bool:
        """Damage the column; returns whether it has enough values."""
        if self.values < 3:
            return False
        if _count(unpack_ints, self.data) == self.values:
            self.put(damage(self.data))
            return True
        assert _count(unpack_steps, self.data) == self.values, self.name
        first, steps = self.data[:_BASE_BYTES], self.data[_BASE_BYTES:]
        self.put(first + damage(steps))
        return True


def state_of(kind: AnyKind, data: bytes, type_: Any) -> tuple[Any, Any]:
    """Return totals and state of a blob, to be changed and packed again."""
    return blob.unpack(blob.verified(data), kind.totals, type_)


def columns_in(state: Any, path: str = "") -> Iterator[Column]:
    """Yield each packed column of a state."""
    if isinstance(state, PackedTable):
        count = len(unpack_ints(state.keys, signed=True))
        yield _field(state, "keys", path, count)
        yield _field(state, "ends", path, count)
        for number, data in enumerate(state.columns):
            put = partial(state.columns.__setitem__, number)
            yield Column(f"{path}.columns[{number}]", data, count, put)
    elif isinstance(state, Remembered | PackedBroadcasts):
        names = [field.name for field in msgspec.structs.fields(state)]
        count = len(unpack_ints(getattr(state, names[0]), signed=True))
        for name in names:
            yield _field(state, name, path, count)
    elif isinstance(state, msgspec.Struct):
        for field in msgspec.structs.fields(state):
            value = getattr(state, field.name)
            yield from columns_in(value, f"{path}.{field.name}")
    elif isinstance(state, dict):
        for key, value in state.items():
            yield from columns_in(value, f"{path}[{key}]")


def tables_in(state: Any, path: str = "") -> Iterator[tuple[str, PackedTable]]:
    """Yield the tables of a state that have entries."""
    for field in msgspec.structs.fields(state):
        value = getattr(state, field.name)
        if isinstance(value, PackedTable) and value.keys:
            yield f"{path}.{field.name}", value


def _cut_rests(table: PackedTable) -> bool:
    had_any = bool(table.rests)
    table.rests = table.rests[:-1]
    return had_any


def _more_rests(table: PackedTable) -> bool:
    table.rests += b"\0"
    return True


def _first_end(table: PackedTable, end: int) -> bool:
    """Move the first end; all others stay."""
    ends = unpack_steps(table.ends)
    if len(ends) < 2:
        return False
    ends[0] = end
    table.ends = pack_steps(ends)
    return True


def _column_less(table: PackedTable) -> bool:
    table.columns.pop()
    return True


def _column_more(table: PackedTable) -> bool:
    table.columns.append(table.columns[0])
    return True


TABLE_DAMAGE: dict[str, Callable[[PackedTable], bool]] = {
    "rests are cut": _cut_rests,
    "rests go on": _more_rests,
    "an end after the next one": lambda table: _first_end(table, 1 << 20),
    "a negative end": lambda table: _first_end(table, -5),
    "a column less": _column_less,
    "a column more": _column_more,
}
"""Each changes a table, and returns whether it has enough entries."""


def _field(state: Any, name: str, path: str, count: int) -> Column:
    put = partial(setattr, state, name)
    return Column(f"{path}.{name}", getattr(state, name), count, put)


def _count(unpack: Callable[[bytes], Any], data: bytes) -> int:
    """Number of values; -1 if the column is not packed in this way."""
    try:
        return len(unpack(data))
    except (IndexError, ValueError):
        return -1
