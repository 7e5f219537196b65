"""The difference of two trees is that of the sets."""

from __future__ import annotations

import pytest
from hypothesis import given

from sds_core.prolly import difference as module
from sds_core.prolly.item import Item
from sds_core.prolly.tree import ProllyTree
from tests.support.prolly.difference import difference
from tests.support.prolly.strategies import FAN_OUTS, SETS


@given(first=SETS, second=SETS, fan_out=FAN_OUTS)
def test_it_is_exact_both_ways(
    first: set[Item], second: set[Item], fan_out: int
) -> None:
    """Also if one lacks the other's smallest messages, or has none at all."""
    found = difference(ProllyTree(first, fan_out), ProllyTree(second, fan_out))
    assert list(found.only_first) == sorted(first - second)
    assert list(found.only_second) == sorted(second - first)


@given(messages=SETS, changes=SETS, fan_out=FAN_OUTS)
def test_it_is_exact_after_a_few_changes(
    messages: set[Item], changes: set[Item], fan_out: int
) -> None:
    """Between a tree and one that was made of it."""
    insert, delete = set(sorted(changes)[:3]), set(sorted(messages)[:2])
    before = ProllyTree(messages, fan_out)
    after = before.changed(insert, delete)
    found = difference(before, after)
    expected = (messages | insert) - delete
    assert set(found.only_first) == messages - expected
    assert set(found.only_second) == expected - messages


def test_its_cost_follows_the_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty times as many messages, and hardly more nodes to look at."""
    looked_at = 0
    children_of = module.children_of

    def counted(nodes: object) -> object:
        nonlocal looked_at
        found = children_of(nodes)  # type: ignore[arg-type]
        looked_at += len(found)
        return found

    monkeypatch.setattr(module, "children_of", counted)
    costs = []
    for size in (5_000, 100_000):
        items = [Item(10 * n, n.to_bytes(32, "little")) for n in range(1, size)]
        tree = ProllyTree(items)
        other = tree.changed(delete=items[:: size // 10])
        looked_at = 0
        assert len(difference(tree, other).only_first) == len(items[:: size // 10])
        costs.append(looked_at)
    assert costs[1] < 2 * costs[0]
