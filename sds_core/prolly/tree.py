"""A Prolly tree of Waku messages (75/WAKU2-SYNC, "Theory and Implementation").

The design combines 75/WAKU2-SYNC and Gustafson's okra. As in okra, only a node's own
hash decides whether the node is a boundary. Therefore, if a message is inserted or
deleted, the other boundaries stay the same. As in the proof of concept of
75/WAKU2-SYNC, the rightmost node of every level is a tail (called "fake root" there).
The tail of the highest level is the root.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from typing import Self

from sds_core.prolly.builder import Builder
from sds_core.prolly.hashing import DEFAULT_FAN_OUT, boundary_limit, leaf_hash
from sds_core.prolly.item import TAIL_KEY, Item, first_key_at, pack, unpack
from sds_core.prolly.node import EMPTY, Bucket, LeafBucket, Node, child_at, keys_below


class ProllyTree:
    """An immutable set of messages. Each change creates a new tree.

    A new tree shares all unchanged nodes with the old tree.

    Args:
        items: Messages in any order. Repeated items count once.
        fan_out: Mean number of nodes in a bucket, in [2, 65,536].

    Raises:
        BadItem: A message has an invalid time or hash.
        BadFanOut: The fan-out is out of range.

    Attributes:
        root: Root of the tree, which is the tail of the highest level.
    """

    __slots__ = ("_limit", "fan_out", "root")

    def __init__(
        self, items: Iterable[Item] = (), fan_out: int = DEFAULT_FAN_OUT
    ) -> None:
        self.fan_out = fan_out
        self._limit = boundary_limit(fan_out)
        builder = Builder(self._limit)
        builder.add_sorted(sorted({pack(item) for item in items}))
        self.root = builder.finish()

    def __len__(self) -> int:
        """Return the number of messages."""
        return self.root.size

    def __iter__(self) -> Iterator[Item]:
        """Iterate over the messages in order of time and hash."""
        return map(unpack, keys_below(self.root))

    def __contains__(self, item: object) -> bool:
        """Return whether a message is in the tree."""
        return isinstance(item, Item) and self.node(0, pack(item)) is not None

    def __eq__(self, other: object) -> bool:
        """Return whether the messages and the fan-outs of two trees are equal."""
        if not isinstance(other, ProllyTree):
            return NotImplemented
        return (self.fan_out, self.root.level, self.root.merkle) == (
            other.fan_out,
            other.root.level,
            other.root.merkle,
        )

    def __hash__(self) -> int:
        """Return a hash value that is computed from the root's Merkle hash."""
        return hash(self.root.merkle)

    def changed(
        self, insert: Collection[Item] = (), delete: Collection[Item] = ()
    ) -> Self:
        """Return a tree with this tree's messages, plus `insert`, minus `delete`.

        `insert` may have messages that the tree already has, and `delete` may have
        messages that the tree lacks. A message in both arguments is deleted.

        Raises:
            BadItem: A message has an invalid time or hash.
        """
        changes = {pack(item): True for item in insert}
        changes |= {pack(item): False for item in delete}
        if not changes:
            return self
        walk = _Walk(Builder(self._limit), sorted(changes.items()))
        walk.over(self.root)
        return self.with_root(walk.builder.finish())

    def between(self, start_ns: int, end_ns: int) -> Self:
        """Return a tree of the messages whose time is in [start_ns, end_ns), Unix ns.

        Only the buckets at the start and at the end of the period are rebuilt.
        """
        builder = Builder(self._limit)
        first, end = first_key_at(start_ns), first_key_at(end_ns)
        _take_between(builder, self.root, b"", first, end)
        return self.with_root(builder.finish())

    def node(self, level: int, key: bytes) -> Node | None:
        """Return the node on `level` whose encoded key is `key`; None if absent."""
        found = self._at_or_after(level, key)
        return found if found is not None and found.key == key else None

    def first_node_at(self, level: int, timestamp_ns: int) -> Node | None:
        """Return a level's leftmost node whose key has this time.

        Return None if no node of the level has this time.
        """
        found = self._at_or_after(level, first_key_at(timestamp_ns))
        if found is None or found.key[:8] != first_key_at(timestamp_ns)[:8]:
            return None
        return found

    def parent(self, node: Node) -> Node | None:
        """Return the parent of a node; None for the root."""
        return self._at_or_after(node.level + 1, node.key)

    def left_of(self, node: Node) -> Node | None:
        """Return the left neighbour of a node on its level; None for the first node."""
        found = None
        here = self.root
        while here.level > node.level:
            children = here.children
            place = bisect_left(children, node.key, key=lambda one: one.key)
            if place:
                found = children[place - 1]
            here = children[place]
        # The left neighbour of `node` is the rightmost node below `found` on the level
        # of `node`.
        while found is not None and found.level > node.level:
            found = found.children[-1]
        return found

    def right_of(self, node: Node) -> Node | None:
        """Return the right neighbour of a node on its level; None for the tail."""
        if node.key == TAIL_KEY:
            return None
        return self._at_or_after(node.level, _next_key(node.key))

    def raised(self, level: int) -> Node:
        """Return a root on `level` for the same messages.

        If the tree's root is on `level` or on a higher level, return the tree's root.
        Otherwise, add levels of one node each above the tree's root.
        """
        root = self.root
        if root.level == 0 and level:
            root = LeafBucket(TAIL_KEY, root.merkle)
        while root.level < level:
            root = Bucket([root])
        return root

    def last(self) -> Item | None:
        """Return the message with the greatest key; None for an empty tree."""
        tail = self.left_of(EMPTY)
        return None if tail is None else unpack(tail.key)

    def _at_or_after(self, level: int, key: bytes) -> Node | None:
        here = self.root
        if not 0 <= level <= here.level:
            return None
        while here.level > level:
            here = child_at(here, key)
        return here

    def with_root(self, root: Node) -> Self:
        """Return a tree with this tree's fan-out and the given root; check nothing."""
        made = object.__new__(type(self))
        made.fan_out = self.fan_out
        made._limit = self._limit
        made.root = root
        return made


class _Walk:
    """Copies a tree into a builder and applies changes in order of their keys.

    A change is a pair: a message's encoded key, and whether the new tree must have the
    message.
    """

    __slots__ = ("_changes", "_place", "builder")

    def __init__(self, builder: Builder, changes: list[tuple[bytes, bool]]) -> None:
        self.builder = builder
        self._changes = changes
        self._place = 0

    def over(self, node: Node) -> None:
        """Copy the subtree of `node`; apply the changes up to the key of `node`."""
        changes = self._changes
        is_changed = self._place < len(changes) and changes[self._place][0] <= node.key
        if not is_changed and node.level and self.builder.can_take(node):
            self.builder.take(node)
        elif isinstance(node, LeafBucket):
            for key, node_hash in node.leaves():
                self._leaf(key, node_hash)
        elif isinstance(node, Bucket):
            for child in node.children:
                self.over(child)
        else:
            self._leaf(node.key, node.merkle)

    def _leaf(self, key: bytes, node_hash: bytes) -> None:
        changes = self._changes
        is_there = True
        while self._place < len(changes) and changes[self._place][0] <= key:
            changed_key, is_wanted = changes[self._place]
            self._place += 1
            if changed_key == key:
                is_there = is_wanted
            elif is_wanted:
                self.builder.add_leaf(changed_key, leaf_hash(changed_key))
        # Do not add the tail, because `Builder.finish` adds it.
        if is_there and key != TAIL_KEY:
            self.builder.add_leaf(key, node_hash)


def _take_between(
    builder: Builder, node: Node, before: bytes, first: bytes, end: bytes
) -> None:
    """Copy the messages below `node` whose encoded keys are in [first, end).

    `before` is the key of the left neighbour of `node`, or an empty byte string if
    `node` has no left neighbour. Therefore, `before` is less than all keys below
    `node`.
    """
    if node.key < first or before >= end:
        return
    if before >= first and node.key < end and builder.can_take(node) and node.level:
        builder.take(node)
    elif isinstance(node, LeafBucket):
        for key, node_hash in node.leaves():
            if first <= key < end:
                builder.add_leaf(key, node_hash)
    else:
        for child in node.children:
            _take_between(builder, child, before, first, end)
            before = child.key


def _next_key(key: bytes) -> bytes:
    return (int.from_bytes(key, "big") + 1).to_bytes(len(key), "big")
