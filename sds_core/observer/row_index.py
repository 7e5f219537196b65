"""Finds the row of a key in a column of distinct keys."""

from __future__ import annotations

import numpy as np

from sds_core.observer.columns import Column

_NEWEST = 256
"""Rows at the end that are indexed first: histories name them."""

_ROWS_PER_SEARCH = 200
"""To index this many rows takes about as long as to search a column once."""


class RowIndex:
    """Rows by key.

    To index a whole column takes far longer than the few searches of a batch. So the
    first search indexes the newest rows, and one of many searches among the others
    indexes those.

    Args:
        keys: Distinct keys, int64, shape (n,).
    """

    def __init__(self, keys: Column) -> None:
        self._keys = keys
        # Rows from this one on are in `_rows`.
        self._indexed_from = len(keys)
        self._rows: dict[int, int] = {}
        self._searches = 0

    def get(self, key: int) -> int | None:
        """The row of a key; None if it is not in the column."""
        if self._indexed_from and not self._rows:
            self._index_from(max(0, len(self._keys) - _NEWEST))
        row = self._rows.get(key)
        if row is not None or not self._indexed_from:
            return row
        self._searches += 1
        if self._searches * _ROWS_PER_SEARCH > self._indexed_from:
            self._index_from(0)
            return self._rows.get(key)
        found = np.flatnonzero(self._keys[: self._indexed_from] == key)
        return int(found[0]) if len(found) else None

    def _index_from(self, first: int) -> None:
        """Index the rows from this one on."""
        keys = self._keys[first : self._indexed_from].tolist()
        self._rows.update(zip(keys, range(first, self._indexed_from), strict=True))
        self._indexed_from = first
