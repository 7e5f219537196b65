"""Ids that taps have shown and that are forgotten otherwise (docs/figures.md, 2).

A participant that was away for hours requests old messages and gets them. Their ids
must be known, or each would count as a new message.
"""

from __future__ import annotations

import msgspec
import numpy as np

from sds_core.observer.columns import Column
from sds_core.observer.sds.limits import LeftOut
from sds_core.observer.sds.totals import ChannelTotals


class OldIdsState(msgspec.Struct, array_like=True):
    """Packed form of `OldIds`: two generations of fingerprints.

    Attributes:
        older, newer: Sorted int64, little-endian, shape (n,).
    """

    older: bytes = b""
    newer: bytes = b""


class OldIds:
    """Remembers the newest ids in eight bytes each.

    When the newer generation holds half of the limit, it replaces the older one.

    Args:
        limit: Number of ids that are remembered at most.
        totals: Count the ids that the limit leaves out.
        state: The packed form.
    """

    def __init__(self, limit: int, totals: ChannelTotals, state: OldIdsState) -> None:
        self._half = max(1, limit // 2)
        self._totals = totals
        self._older = np.frombuffer(state.older, "<i8")
        self._newer = np.frombuffer(state.newer, "<i8")
        self._state: OldIdsState | None = state
        # Of the newer generation, since the state was packed.
        self._added: set[int] = set()

    def __contains__(self, key: int) -> bool:
        """Whether the fingerprint is remembered."""
        return key in self._added or _has(self._newer, key) or _has(self._older, key)

    def add(self, key: int) -> None:
        """Remember the fingerprint of an id that is being forgotten elsewhere."""
        if key in self._added or _has(self._newer, key):
            return
        self._state = None
        self._added.add(key)
        if len(self._newer) + len(self._added) >= self._half:
            self._totals.leave_out(LeftOut.OLD_ID, len(self._older))
            self._older, self._newer = self._joined(), np.empty(0, "<i8")
            self._added.clear()

    def state(self) -> OldIdsState:
        """The packed form."""
        if self._state is None:
            self._newer = self._joined()
            self._added.clear()
            self._state = OldIdsState(self._older.tobytes(), self._newer.tobytes())
        return self._state

    def _joined(self) -> Column:
        """The newer generation, sorted."""
        added = np.fromiter(self._added, np.int64, len(self._added))
        joined: Column = np.sort(np.concatenate((self._newer, added))).astype("<i8")
        return joined


def _has(keys: Column, key: int) -> bool:
    """Whether a sorted column has a key."""
    if not len(keys):
        return False
    row = int(keys.searchsorted(key))
    return row < len(keys) and int(keys[row]) == key
