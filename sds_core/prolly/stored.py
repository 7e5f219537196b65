"""Converts a tree to the buckets of level 1, for storage, and converts them back.

All nodes of other levels can be computed from the buckets of level 1. The messages are
not needed, because the keys in the buckets contain the message hashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sds_core.prolly.builder import Builder
from sds_core.prolly.difference import unequal_on
from sds_core.prolly.hashing import TAIL_HASH, boundary_limit, leaf_hash
from sds_core.prolly.item import KEY_BYTES, TAIL_KEY
from sds_core.prolly.node import LeafBucket
from sds_core.prolly.tree import ProllyTree


class DamagedBucket(ValueError):
    """A stored bucket is damaged. The error's text has the bucket's key."""

    def __init__(self, key: bytes) -> None:
        super().__init__(f"the bucket of {key.hex()} is damaged")


class StoredBucket(NamedTuple):
    """A bucket of level 1: key, Merkle hash, and joined encoded keys of its leaves."""

    key: bytes
    merkle: bytes
    leaves: bytes


class BucketChanges(NamedTuple):
    """Changes of stored buckets.

    Attributes:
        removed: Keys of the buckets to delete.
        added: Buckets to insert. If a stored bucket has the same key, replace it.
    """

    removed: Sequence[bytes]
    added: Sequence[StoredBucket]


def changed_buckets(before: ProllyTree, after: ProllyTree) -> BucketChanges:
    """Return how the stored buckets change if the tree `after` replaces `before`."""
    old, new = unequal_on(1, before, after)
    added = [
        StoredBucket(node.key, node.merkle, node.keys)
        for node in new
        if isinstance(node, LeafBucket)
    ]
    kept = {bucket.key for bucket in added}
    return BucketChanges([node.key for node in old if node.key not in kept], added)


def tree_of(buckets: Iterable[StoredBucket], fan_out: int) -> ProllyTree:
    """Return the tree whose buckets of level 1 are `buckets`.

    `buckets` must be sorted by key. A bucket that contains only the tail may be
    omitted. The function does not detect other missing buckets. To detect them, compare
    the root of the returned tree with the root of the tree that was stored.

    Raises:
        DamagedBucket: A bucket does not match its key or its hash, is not in order, or
            cannot belong to a tree with this fan-out.
        BadFanOut: The fan-out is out of range.
    """
    tree = ProllyTree(fan_out=fan_out)
    limit = boundary_limit(fan_out)
    builder = Builder(limit)
    last = b""
    for stored in buckets:
        starts = range(0, len(stored.leaves), KEY_BYTES)
        keys = [stored.leaves[at : at + KEY_BYTES] for at in starts]
        hashes = [TAIL_HASH if key == TAIL_KEY else leaf_hash(key) for key in keys]
        bucket = LeafBucket(stored.leaves, b"".join(hashes))
        if (
            not keys
            or [last, *keys] != sorted({last, *keys})
            or (bucket.key, bucket.merkle) != (stored.key, stored.merkle)
            or any(one < limit for one in hashes[:-1])
            or not (hashes[-1] < limit or keys[-1] == TAIL_KEY)
        ):
            raise DamagedBucket(stored.key)
        builder.take(bucket)
        last = bucket.key
    return tree.with_root(builder.finish())
