"""A Prolly tree: the same for the same messages, with the hashes of its definition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.prolly.hashing import BadFanOut
from sds_core.prolly.item import (
    TAIL_KEY,
    TAIL_TIMESTAMP_NS,
    BadItem,
    Item,
    pack,
    unpack,
)
from sds_core.prolly.node import Bucket, Node
from sds_core.prolly.tree import ProllyTree
from tests.support.prolly.reference import ReferenceNode, reference_levels
from tests.support.prolly.strategies import FAN_OUTS, ITEMS, SETS


def levels_of(tree: ProllyTree) -> list[list[Node]]:
    """The nodes of each level, leaves first."""
    levels: list[list[Node]] = [[tree.root]]
    while levels[-1][0].level:
        levels.append([child for node in levels[-1] for child in node.children])
    return levels[::-1]


def packed(node: ReferenceNode) -> bytes:
    """The key of a node of the reference."""
    if node.is_tail:
        return TAIL_KEY
    return pack(Item(node.time, node.message_hash))


def assert_is_tree_of(tree: ProllyTree, messages: set[Item]) -> None:
    """Every node is where the definition has it, with its hashes and children."""
    expected = reference_levels(messages, tree.fan_out)
    levels = levels_of(tree)
    assert len(levels) == len(expected)
    for number, (found, wanted) in enumerate(zip(levels, expected, strict=True)):
        assert [node.level for node in found] == [number] * len(wanted)
        assert [node.key for node in found] == [packed(one) for one in wanted]
        assert [node.merkle for node in found] == [one.merkle for one in wanted]
        assert [len(node.children) for node in found] == [
            len(one.children) for one in wanted
        ]
    assert set(tree) == messages
    assert len(tree) == len(messages)


@pytest.mark.rule("sync-fake-root", "sync-merkle", "sync-populate")
@given(messages=SETS, fan_out=FAN_OUTS)
def test_every_node_is_as_defined(messages: set[Item], fan_out: int) -> None:
    """Tails at every level, boundaries by hash, Merkle hashes of all children."""
    assert_is_tree_of(ProllyTree(messages, fan_out), messages)


@pytest.mark.rule("sync-populate", "sync-future-batch")
@given(
    changes=st.lists(
        st.tuples(st.sets(ITEMS, max_size=12), st.sets(ITEMS, max_size=8))
    ),
    fan_out=FAN_OUTS,
)
def test_changes_lead_to_the_tree_of_the_messages(
    changes: list[tuple[set[Item], set[Item]]], fan_out: int
) -> None:
    """In any order, one by one or many at once; older trees stay as they are."""
    tree, messages = ProllyTree(fan_out=fan_out), set[Item]()
    before = []
    for insert, delete in changes:
        before.append((tree, set(messages)))
        tree = tree.changed(insert, delete)
        messages = (messages | insert) - delete
    assert_is_tree_of(tree, messages)
    for old, its_messages in before:
        assert_is_tree_of(old, its_messages)
    one_by_one = ProllyTree(fan_out=fan_out)
    for item in messages:
        one_by_one = one_by_one.changed(insert=[item])
    assert one_by_one == tree
    for item in sorted(messages)[::2]:
        one_by_one = one_by_one.changed(delete=[item])
    assert_is_tree_of(one_by_one, set(sorted(messages)[1::2]))


@pytest.mark.rule("sync-future-batch")
def test_later_messages_leave_the_nodes_to_their_left_alone() -> None:
    """They are the very same objects: nothing there was hashed again."""
    items = [Item(1 + n, n.to_bytes(32, "little")) for n in range(4_000)]
    tree = ProllyTree(items[:3_000])
    longer = tree.changed(insert=items[3_000:])
    assert longer == ProllyTree(items)
    old, new = levels_of(tree), levels_of(longer)
    for level in range(1, len(old)):
        kept = old[level][:-1]
        assert all(
            one is another
            for one, another in zip(kept, new[level][: len(kept)], strict=True)
        )


@given(messages=SETS, start=st.integers(-2, 16), end=st.integers(-2, 16), q=FAN_OUTS)
def test_a_range_of_time_is_the_tree_of_its_messages(
    messages: set[Item], start: int, end: int, q: int
) -> None:
    """From inclusive to exclusive."""
    tree = ProllyTree(messages, q).between(start, end)
    assert_is_tree_of(
        tree, {one for one in messages if start <= one.timestamp_ns < end}
    )


@given(messages=SETS, item=ITEMS, q=FAN_OUTS)
def test_nodes_are_found_by_level_and_key(
    messages: set[Item], item: Item, q: int
) -> None:
    """And their neighbours and parents."""
    tree = ProllyTree(messages, q)
    assert (item in tree) == (item in messages)
    assert tree.node(len(levels_of(tree)), TAIL_KEY) is None
    assert tree.node(-1, TAIL_KEY) is None
    for number, level in enumerate(levels_of(tree)):
        keys = [node.key for node in level]
        for place, node in enumerate(level):
            same = tree.node(number, node.key)
            assert same is not None
            assert same.merkle == node.merkle
            left = tree.left_of(node)
            assert (left and left.key) == (keys[place - 1] if place else None)
            right = tree.right_of(node)
            assert (right and right.key) == (
                keys[place + 1] if place + 1 < len(keys) else None
            )
            parent = tree.parent(node)
            if number == tree.root.level:
                assert parent is None
            else:
                assert parent is not None
                assert node.key in {child.key for child in parent.children}
        assert (tree.node(number, pack(item)) is not None) == (pack(item) in keys)
        first = tree.first_node_at(number, item.timestamp_ns)
        with_time = [key for key in keys if unpack(key)[0] == item.timestamp_ns]
        assert (first and first.key) == (with_time[0] if with_time else None)
    assert tree.last() == (max(messages) if messages else None)


@given(messages=SETS, more=st.integers(0, 4), q=FAN_OUTS)
def test_a_higher_root_has_only_tails_above_the_real_one(
    messages: set[Item], more: int, q: int
) -> None:
    """So that trees of different heights have a common level."""
    tree = ProllyTree(messages, q)
    node = tree.raised(tree.root.level + more)
    assert node.level == tree.root.level + more
    for _ in range(more):
        assert len(node.children) == 1
        (node,) = node.children
    assert node.merkle == tree.root.merkle


@pytest.mark.rule("sync-step-1")
def test_two_messages_of_one_nanosecond_are_two() -> None:
    """In order of their hashes."""
    first, second = Item(5, bytes(32)), Item(5, b"\1" + bytes(31))
    tree = ProllyTree([second, first])
    assert list(tree) == [first, second]
    assert tree.changed(delete=[first]) == ProllyTree([second])


def test_golden_hashes() -> None:
    """Of the empty tree, and of four messages: they decide whether peers agree."""
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert (ProllyTree().root.level, ProllyTree().root.merkle.hex()) == (0, empty)
    tree = ProllyTree([Item(n, bytes([n]) * 32) for n in range(1, 5)], fan_out=2)
    assert (tree.root.level, tree.root.merkle.hex()) == GOLDEN


GOLDEN = (4, "7c66983bc0ca9e04b3f822eec484785689a0d0437956f43f3cc536fe10e0f00a")


@pytest.mark.parametrize("time_ns", [0, -1, TAIL_TIMESTAMP_NS, 2**63])
def test_messages_without_a_time_are_refused(time_ns: int) -> None:
    """With the value."""
    with pytest.raises(BadItem, match=str(time_ns)):
        ProllyTree([Item(time_ns, bytes(32))])


@pytest.mark.parametrize("length", [0, 31, 33])
def test_hashes_of_another_length_are_refused(length: int) -> None:
    """With the length."""
    with pytest.raises(BadItem, match=f"not {length}"):
        ProllyTree().changed(insert=[Item(1, bytes(length))])


@pytest.mark.parametrize("fan_out", [1, 0, -3, 65_537])
def test_other_fan_outs_are_refused(fan_out: int) -> None:
    """With the value."""
    with pytest.raises(BadFanOut, match=str(fan_out)):
        ProllyTree(fan_out=fan_out)


def test_a_change_makes_few_new_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many on each level as it touches, whatever the size of the tree."""
    made = 0

    class Counted(Bucket):
        def __init__(self, children: list[Node]) -> None:
            nonlocal made
            made += 1
            super().__init__(children)

    monkeypatch.setattr("sds_core.prolly.builder.Bucket", Counted)
    for size in (1_000, 30_000):
        tree = ProllyTree(
            Item(10 * n, n.to_bytes(32, "little")) for n in range(1, size)
        )
        made = 0
        for number in range(50):
            item = Item(10 * number * size // 60 + 1, b"\x05" * 32)
            made = 0
            changed = tree.changed(insert=[item])
            assert made <= 4 * changed.root.level
            assert item in changed
