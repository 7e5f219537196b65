"""Rows by key in columns of any length."""

from __future__ import annotations

import numpy as np
import pytest

from sds_core.observer.row_index import RowIndex


@pytest.mark.parametrize("count", [0, 1, 255, 256, 257, 5_000])
def test_every_key_is_found_at_its_row_and_no_other_key_is(count: int) -> None:
    """Newest and oldest, before and after many searches."""
    keys = np.arange(count, dtype=np.int64) * 7_919 - 10_000
    index = RowIndex(keys)
    for row in (*range(count), *reversed(range(count))):
        assert index.get(int(keys[row])) == row
        assert index.get(int(keys[row]) + 1) is None
    assert index.get(-(2**63)) is None


def test_single_searches_find_old_keys() -> None:
    """Each in an index that has not been searched before."""
    keys = np.arange(5_000, dtype=np.int64) * -3
    for row in (0, 1, 2_500, 4_743, 4_744, 4_999):
        assert RowIndex(keys).get(-3 * row) == row
        assert RowIndex(keys).get(-3 * row - 1) is None
