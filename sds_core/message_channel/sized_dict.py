"""A dict in order of insertion, with the total size of its values."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, ItemsView, Iterator, MutableMapping, ValuesView
from typing import TypeVar

V = TypeVar("V")


class SizedDict(MutableMapping[str, V]):
    """A dict from ids to values, oldest first, with the total size of the values.

    If untrusted senders choose the sizes of values, a limit on the number of values
    does not bound the memory, but a limit on the total size does.

    Args:
        size_of: Function that returns the size of a value in bytes. The size of a
            stored value must not change.
    """

    __slots__ = ("_entries", "_size_of", "size_bytes")

    def __init__(self, size_of: Callable[[V], int]) -> None:
        self._size_of = size_of
        # An OrderedDict finds the oldest entry in constant time, even after removals.
        self._entries: OrderedDict[str, V] = OrderedDict()
        self.size_bytes = 0

    def __getitem__(self, message_id: str) -> V:
        """Return a value."""
        return self._entries[message_id]

    def __setitem__(self, message_id: str, value: V) -> None:
        """Add or replace a value; a replacement keeps the old value's position."""
        replaced = self._entries.get(message_id)
        if replaced is not None:
            self.size_bytes -= self._size_of(replaced)
        self._entries[message_id] = value
        self.size_bytes += self._size_of(value)

    def __delitem__(self, message_id: str) -> None:
        """Remove a value."""
        self.size_bytes -= self._size_of(self._entries.pop(message_id))

    def __iter__(self) -> Iterator[str]:
        """Return the ids, oldest first."""
        return iter(self._entries)

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self._entries)

    def __contains__(self, message_id: object) -> bool:
        """Return whether an id is present."""
        return message_id in self._entries

    def items(self) -> ItemsView[str, V]:
        """Return ids and values; faster than the method of the base class."""
        return self._entries.items()

    def values(self) -> ValuesView[V]:
        """Return the values; faster than the method of the base class."""
        return self._entries.values()

    def oldest(self) -> str:
        """Return the id of the oldest value; the dict must not be empty."""
        return next(iter(self._entries))

    def is_over(self, limit: int, limit_bytes: int) -> bool:
        """Return whether the number of values or the sum of sizes is over its limit."""
        return len(self._entries) > limit or self.size_bytes > limit_bytes
