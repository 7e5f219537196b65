"""Bounded memory of what was seen, oldest forgotten first."""

from __future__ import annotations

import msgspec

from sds_core.observer.columns import pack_ints, pack_steps, unpack_ints, unpack_steps


class Remembered(msgspec.Struct, array_like=True):
    """Packed form of a `Memory`: columns in order of age (see `pack_ints`).

    Attributes:
        keys: Shape (n,).
        clocks: Unix ms, see `pack_steps`, shape (n,).
    """

    keys: bytes = b""
    clocks: bytes = b""


class Memory:
    """Keys seen lately, each with the clock at which it was last seen."""

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
        """How many keys are remembered."""
        return len(self._clocks)

    @property
    def oldest_ms(self) -> int | None:
        """When the oldest key was last seen; None if there is none."""
        return next(iter(self._clocks.values()), None)

    def add(self, key: int, clock_ms: int) -> int:
        """Remember a key as of now; returns how many the limit pushed out."""
        if key in self._clocks:
            # Taken out first, so that the dictionary stays in order of age.
            del self._clocks[key]
        self._clocks[key] = clock_ms
        if len(self._clocks) <= self._limit:
            return 0
        del self._clocks[next(iter(self._clocks))]
        return 1

    def forget_before(self, clock_ms: int) -> None:
        """Forget what was last seen before a time."""
        while self._clocks:
            key = next(iter(self._clocks))
            if self._clocks[key] >= clock_ms:
                return
            del self._clocks[key]

    def packed(self) -> Remembered:
        """Columns for the state."""
        return Remembered(
            keys=pack_ints(list(self._clocks), signed=True),
            clocks=pack_steps(list(self._clocks.values())),
        )
