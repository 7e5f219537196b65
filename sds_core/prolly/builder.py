"""Builds a tree from left to right, from new leaves and from subtrees of an old tree.

All new and all changed trees are built here. Therefore, a tree depends only on its
messages and its fan-out, not on the order of its changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from sds_core.prolly.hashing import TAIL_HASH, leaf_hash, top_level
from sds_core.prolly.item import TAIL_KEY
from sds_core.prolly.node import EMPTY, Bucket, Leaf, LeafBucket, Node


class Builder:
    """Builds a tree. The caller adds leaves and subtrees in order of their keys."""

    __slots__ = ("_hashes", "_keys", "_levels", "_limit")

    def __init__(self, limit: bytes) -> None:
        self._limit = limit
        # Encoded keys and node hashes of the added leaves after the last boundary.
        self._keys: list[bytes] = []
        self._hashes: list[bytes] = []
        # Entry i has the nodes of level i + 1 after the last boundary of level i + 1.
        self._levels: list[list[Node]] = []

    def add_leaf(self, key: bytes, node_hash: bytes) -> None:
        """Add a message by its encoded key and the node hash of its leaf."""
        self._keys.append(key)
        self._hashes.append(node_hash)
        if node_hash < self._limit:
            self._end_leaf_bucket(top_level(node_hash, self._limit))

    def add_sorted(self, keys: Sequence[bytes]) -> None:
        """Add messages by their encoded keys, which must be sorted and unique."""
        hashes = [leaf_hash(key) for key in keys]
        limit = self._limit
        begin = 0
        for place in [i for i, one in enumerate(hashes) if one < limit]:
            end = place + 1
            self._keys += keys[begin:end]
            self._hashes += hashes[begin:end]
            self._end_leaf_bucket(top_level(hashes[place], limit))
            begin = end
        self._keys += keys[begin:]
        self._hashes += hashes[begin:]

    def can_take(self, node: Node) -> bool:
        """Return whether `take` can add a subtree now.

        The builder must have no incomplete bucket on the subtree's level or below.
        """
        return not self._keys and not any(self._levels[: node.level - 1])

    def take(self, node: Node) -> None:
        """Add a subtree of level 1 or higher, for which `can_take` returns true."""
        if node.key == TAIL_KEY:
            top = node.level
        else:
            top = top_level(leaf_hash(node.key), self._limit)
        self._add_node(node, top)

    def finish(self) -> Node:
        """Complete the tree; return its root. Do not use the builder afterwards.

        If no added subtree contains the tail, `finish` adds the tail. Therefore, the
        caller must not add the tail with `add_leaf` or `add_sorted`.
        """
        root = self._tail()
        while len(root.children) == 1:
            root = root.children[0]
        # The root of every empty tree must be the object `EMPTY`. `root` may be another
        # tail leaf, because `LeafBucket.children` creates new leaves on each access.
        return EMPTY if isinstance(root, Leaf) else root

    def _tail(self) -> Node:
        last = next((level[-1] for level in self._levels if level), None)
        if last is None or last.key != TAIL_KEY:
            self._keys.append(TAIL_KEY)
            self._hashes.append(TAIL_HASH)
            self._end_leaf_bucket(1)
        place = next(i for i, level in enumerate(self._levels) if level)
        while len(self._levels[place]) > 1 or any(self._levels[place + 1 :]):
            bucket = Bucket(self._levels[place])
            self._levels[place] = []
            self._add_node(bucket, bucket.level)
            place += 1
        return self._levels[place][0]

    def _end_leaf_bucket(self, top: int) -> None:
        bucket = LeafBucket(b"".join(self._keys), b"".join(self._hashes))
        self._keys = []
        self._hashes = []
        self._add_node(bucket, top)

    def _add_node(self, node: Node, top: int) -> None:
        levels = self._levels
        while True:
            while len(levels) < node.level:
                levels.append([])
            level = levels[node.level - 1]
            level.append(node)
            if node.level >= top:
                return
            levels[node.level - 1] = []
            node = Bucket(level)
