"""Rows by key in columns of any length."""

from __future__ import annotations

import importlib.util
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

import sds_core
from sds_core.observer.row_index import RowIndex


@pytest.mark.parametrize("count", [0, 1, 255, 256, 257, 5_000])
def test_every_key_is_found_at_its_row_and_no_other_key_is(count: int) -> None:
    """Newest and oldest, before and after many searches."""
    keys = np.arange(count, dtype=np.int64) * 7_919 - 10_000
    index = RowIndex(keys)
    for row in (*range(count), *reversed(range(count))):
        assert index.find(int(keys[row])) == row
        assert index.find(int(keys[row]) + 1) == -1
    assert index.find(-(2**63)) == -1


def test_single_searches_find_old_keys() -> None:
    """Each in an index that has not been searched before."""
    keys = np.arange(5_000, dtype=np.int64) * -3
    for row in (0, 1, 2_500, 4_743, 4_744, 4_999):
        assert RowIndex(keys).find(-3 * row) == row
        assert RowIndex(keys).find(-3 * row - 1) == -1


@pytest.mark.parametrize("step", [1, -1, 3, 64, 4_096, 1 << 32, 1 << 52])
def test_keys_of_equal_distance_are_spread(step: int) -> None:
    """As sequence numbers are: a search takes a few looks, not one for every key."""
    # Only the interpreted form shows its slots; the source of both is one.
    path = Path(sds_core.__file__).parent / "observer" / "row_index.py"
    spec = importlib.util.spec_from_file_location("interpreted_row_index", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for first in (0, 1_000_003):
        index = module.RowIndex(np.arange(2_000, dtype=np.int64) * step + first)
        assert index.find(first) == 0
        runs = (
            len(list(run))
            for used, run in groupby(map(bool, vars(index)["_slots"]))
            if used
        )
        assert max(runs) < 100
