"""Rows by key in columns of any length."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import operator
from itertools import groupby
from pathlib import Path
from typing import Any

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


@pytest.fixture
def interpreted() -> Any:
    """The module in its interpreted form: only this form shows its slots."""
    # The source of both forms is one.
    path = Path(sds_core.__file__).parent / "observer" / "row_index.py"
    spec = importlib.util.spec_from_file_location("interpreted_row_index", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def longest_run(index: Any) -> int:
    """Most slots in use in a row: a search takes at most one look more."""
    slots = groupby(map(bool, vars(index)["_slots"]))
    return max(len(list(run)) for used, run in slots if used)


@pytest.mark.parametrize("step", [1, -1, 3, 64, 4_096, 1 << 32, 1 << 52])
def test_keys_of_equal_distance_are_spread(interpreted: Any, step: int) -> None:
    """As sequence numbers are: a search takes a few looks, not one for every key."""
    for first in (0, 1_000_003):
        index = interpreted.RowIndex(np.arange(2_000, dtype=np.int64) * step + first)
        assert index.find(first) == 0
        assert longest_run(index) < 100


def chosen_keys(interpreted: Any, count: int) -> list[int]:
    """Keys that a seed of 0 puts into 1/64 of the slots; their XOR is 0.

    The last key, which makes the XOR 0, may be in any slot.
    """
    planned = interpreted.RowIndex(np.arange(count))
    planned.find(0)
    vars(planned)["_seed"] = 0
    slot_of = vars(interpreted.RowIndex)["_slot"]
    few = len(vars(planned)["_slots"]) // 64
    near = (key for key in itertools.count(1) if slot_of(planned, key) < few)
    keys = list(itertools.islice(near, count - 1))
    return [*keys, functools.reduce(operator.xor, keys)]


def test_nobody_can_choose_keys_that_are_close_together(interpreted: Any) -> None:
    """Even a sender that knows the source, and every key of a channel."""
    keys = chosen_keys(interpreted, 500)
    index = interpreted.RowIndex(np.array(keys, np.int64))
    assert index.find(keys[0]) == 0
    assert longest_run(index) < 100


def test_chosen_keys_that_fill_a_run_exactly_are_spread(interpreted: Any) -> None:
    """Each key has its own slot, but a key that is not there would be sought in all."""
    count = 300
    planned = interpreted.RowIndex(np.arange(count))
    planned.find(0)
    vars(planned)["_seed"] = 0
    slot_of = vars(interpreted.RowIndex)["_slot"]
    by_slot: dict[int, int] = {}
    for key in itertools.count(1):
        if len(by_slot) == count - 1:
            break
        slot = slot_of(planned, key)
        if slot < count - 1:
            by_slot.setdefault(slot, key)
    keys = [*by_slot.values(), functools.reduce(operator.xor, by_slot.values())]
    index = interpreted.RowIndex(np.array(keys, np.int64))
    assert [index.find(key) for key in keys] == list(range(count))
    assert longest_run(index) < 100


def test_rows_do_not_depend_on_the_seed(
    interpreted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It moves the slots only, even if no seed spreads the keys."""
    keys = chosen_keys(interpreted, 300)
    orders = set()
    for tries, longest in ((1, 128), (2, 128), (8, 0)):
        monkeypatch.setattr(interpreted, "_TRIES", tries)
        monkeypatch.setattr(interpreted, "_LONGEST_RUN", longest)
        index = interpreted.RowIndex(np.array(keys, np.int64))
        assert [index.find(key) for key in keys] == list(range(len(keys)))
        assert [index.find(key) for key in range(-100, 0)] == [-1] * 100
        orders.add(vars(index)["_slots"].tobytes())
    assert len(orders) == 3
