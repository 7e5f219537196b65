"""Bounded memory of keys that were seen; forgets the oldest first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import TypeVar

import msgspec

from sds_core.observer.columns import pack_ints, pack_steps, unpack_ints, unpack_steps

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
    """Keys with the clock at which each was last seen.

    Args:
        limit: Number of keys that are remembered at most.
        packed: Keys to begin with; None for none.
    """

    def __init__(self, limit: int, packed: Remembered | None = None) -> None:
        self._limit = limit
        self._clocks: dict[int, int] = {}
        if packed is not None:
            keys = unpack_ints(packed.keys, signed=True)
            clocks = unpack_steps(packed.clocks)
            self._clocks = dict(zip(keys, clocks, strict=True))

    def __contains__(self, key: int) -> bool:
        """Whether the key is remembered."""
        return key in self._clocks

    def __len__(self) -> int:
        """Number of keys that are remembered."""
        return len(self._clocks)

    @property
    def oldest_ms(self) -> int | None:
        """Clock at which the oldest key was last seen; None if there is no key."""
        return next(iter(self._clocks.values()), None)

    def add(self, key: int, clock_ms: int) -> int:
        """Remember a key as seen now.

        Returns the number of keys forgotten because of the limit: 0 or 1.
        """
        if key in self._clocks:
            # Removed first, so that the dictionary stays in order of age.
            del self._clocks[key]
        self._clocks[key] = clock_ms
        if len(self._clocks) <= self._limit:
            return 0
        del self._clocks[next(iter(self._clocks))]
        return 1

    def forget_before(self, clock_ms: int) -> None:
        """Forget keys last seen before this clock, Unix ms."""
        for key in oldest(self._clocks, lambda seen_ms: seen_ms < clock_ms):
            del self._clocks[key]

    def packed(self) -> Remembered:
        """The keys in packed form, for the state."""
        return Remembered(
            keys=pack_ints(list(self._clocks), signed=True),
            clocks=pack_steps(list(self._clocks.values())),
        )
