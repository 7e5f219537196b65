"""Nodes of a tree. Nodes are immutable, so a snapshot of a tree needs no copy.

Each node above the lowest level is a *bucket*: it consists of nodes of the level below.
The keys of these nodes are greater than the key of the bucket's left neighbour. The
bucket's own key is the greatest key in the bucket.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final, TypeAlias

from sds_core.prolly.hashing import TAIL_HASH
from sds_core.prolly.item import HASH_BYTES, KEY_BYTES, TAIL_KEY


class Leaf:
    """A node of level 0: one message, or the tail. `merkle` is the leaf's node hash."""

    __slots__ = ("key", "merkle")

    level: Final = 0

    def __init__(self, key: bytes, merkle: bytes) -> None:
        self.key = key
        self.merkle = merkle

    @property
    def size(self) -> int:
        """Number of messages: 1, or 0 for the tail."""
        return int(self.key != TAIL_KEY)

    @property
    def children(self) -> Sequence[Node]:
        """Always empty."""
        return ()


class LeafBucket:
    """A node of level 1.

    The node does not store `Leaf` objects, because they would need ten times the
    memory, and a tree can have more than a million leaves.

    Attributes:
        keys: Encoded key of each leaf of this node, joined into one byte string.
        hashes: Hash of each leaf of this node, joined into one byte string.
        key: Encoded key of the node: the last key in `keys`.
        merkle: SHA-256 of `hashes`.
        size: Number of messages in the node. The tail is not counted.
    """

    __slots__ = ("hashes", "key", "keys", "merkle", "size")

    level: Final = 1

    def __init__(self, keys: bytes, hashes: bytes) -> None:
        self.keys = keys
        self.hashes = hashes
        self.key = keys[-KEY_BYTES:]
        self.merkle = sha256(hashes).digest()
        self.size = len(keys) // KEY_BYTES - (self.key == TAIL_KEY)

    @property
    def children(self) -> Sequence[Node]:
        """The node's leaves, from left to right."""
        return [Leaf(key, merkle) for key, merkle in self.leaves()]

    def leaves(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the key and the node hash of each leaf."""
        keys, hashes = self.keys, self.hashes
        for place in range(len(keys) // KEY_BYTES):
            key, merkle = place * KEY_BYTES, place * HASH_BYTES
            yield keys[key : key + KEY_BYTES], hashes[merkle : merkle + HASH_BYTES]


class Bucket:
    """A node above level 1.

    Attributes:
        children: The nodes in the bucket, from left to right. The bucket's key is the
            key of the last child.
        merkle: SHA-256 of the joined Merkle hashes of the children.
    """

    __slots__ = ("children", "key", "level", "merkle", "size")

    level: int
    children: Sequence[Node]
    key: bytes
    merkle: bytes
    size: int

    def __init__(self, children: Sequence[Node]) -> None:
        last = children[-1]
        self.level = last.level + 1
        self.children = tuple(children)
        self.key = last.key
        self.merkle = sha256(b"".join(one.merkle for one in children)).digest()
        self.size = sum(one.size for one in children)


Node: TypeAlias = Leaf | LeafBucket | Bucket

EMPTY: Final = Leaf(TAIL_KEY, TAIL_HASH)
"""Root of a tree without messages."""


def child_at(node: Node, key: bytes) -> Node:
    """Return the leftmost child of `node` whose key is at least `key`."""
    children = node.children
    return children[bisect_left(children, key, key=lambda one: one.key)]


def keys_below(node: Node) -> Iterator[bytes]:
    """Yield the encoded keys of all messages below a node, in order."""
    if isinstance(node, Bucket):
        for child in node.children:
            yield from keys_below(child)
        return
    keys = node.key if isinstance(node, Leaf) else node.keys
    for place in range(0, node.size * KEY_BYTES, KEY_BYTES):
        yield keys[place : place + KEY_BYTES]
