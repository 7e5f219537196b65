"""Entries that lie in columns until they are looked at."""

from __future__ import annotations

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sds_core.native import Int64Rows, int64, uint64
from sds_core.observer.columns import integers
from sds_core.observer.table import SIGNED, UNSIGNED, Codec, PackedTable, Table
from tests.support.properties import CAREFUL

KEYS = st.one_of(st.integers(0, 20), st.integers(-(2**63), 2**63 - 1))


class Entry(msgspec.Struct):
    """An entry with two integers and a text."""

    low: int
    high: int
    text: str


class EntryCodec(Codec[Entry]):
    """Keeps the integers in columns."""

    def store(self, entry: object, cells: Int64Rows, row: int) -> bytes:
        """See `Codec`."""
        assert isinstance(entry, Entry)
        cells[1, row] = entry.low
        cells[2, row] = int64(entry.high)
        return entry.text.encode()

    def load(self, key: int, cells: Int64Rows, row: int, rest: bytes) -> Entry:
        """See `Codec`."""
        return Entry(cells[1, row], uint64(cells[2, row]), rest.decode())


ENTRIES = st.builds(
    Entry, st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**64 - 1), st.text()
)


class TableMachine(RuleBasedStateMachine):
    """A table does what a dictionary does."""

    def __init__(self) -> None:
        super().__init__()
        self.codec = EntryCodec((SIGNED, UNSIGNED), 1)
        self.table = Table(self.codec, PackedTable())
        self.model: dict[int, Entry] = {}

    @rule(key=KEYS, entry=ENTRIES)
    def append(self, key: int, entry: Entry) -> None:
        """A new entry is the last one, also if its key was there."""
        self.model.pop(key, None)
        self.model[key] = msgspec.structs.replace(entry)
        self.table[key] = entry

    @rule(key=KEYS)
    def remove(self, key: int) -> None:
        """Any key may be removed."""
        assert self.table.pop(key) == self.model.pop(key, None)

    @precondition(lambda self: self.model)
    @rule()
    def remove_first(self) -> None:
        """The oldest goes first."""
        key = self.table.first()
        assert key == next(iter(self.model))
        self.table.remove(key)
        del self.model[key]

    @precondition(lambda self: self.model)
    @rule(data=st.data(), text=st.text(), low=st.integers(0, 9))
    def change(self, data: st.DataObject, text: str, low: int) -> None:
        """What is looked up may be changed."""
        key = data.draw(st.sampled_from(list(self.model)))
        for entries in (self.model, self.table):
            entry = entries[key]
            entry.text, entry.low = text, low

    @rule()
    def flush(self) -> None:
        """Columns have every entry, in order."""
        self.table.flush()
        entries = self.model.values()
        assert integers(self.table.keys) == list(self.model)
        assert integers(self.table.column(1)) == [entry.low for entry in entries]
        assert integers(self.table.column(2)) == [entry.high for entry in entries]

    @rule()
    def restart(self) -> None:
        """Nothing is lost in the state."""
        data = msgspec.msgpack.encode(self.table.packed())
        packed = msgspec.msgpack.decode(data, type=PackedTable)
        self.table = Table(self.codec, packed)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def strip(self, data: st.DataObject) -> None:
        """The rest of some rows is removed."""
        self.table.flush()
        chosen = data.draw(st.sets(st.sampled_from(list(self.model))))
        for key in chosen:
            self.model[key].text = ""
        keys = integers(self.table.keys)
        self.table.strip([row for row, key in enumerate(keys) if key in chosen])

    @invariant()
    def same(self) -> None:
        """Every entry is found, and no other."""
        assert len(self.table) == len(self.model)
        for key in range(21):
            assert (key in self.table) == (key in self.model)
            assert self.table.get(key) == self.model.get(key)


TestTable = TableMachine.TestCase
TestTable.settings = settings(
    CAREFUL, max_examples=CAREFUL.max_examples // 4, stateful_step_count=20
)
