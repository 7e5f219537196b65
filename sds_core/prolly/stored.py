"""The part of a tree that a store of nodes must hold: the buckets of level 1.

All nodes of higher levels can be computed from these buckets. The keys contain the
message hashes, so no message needs to be hashed again.
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
    """A bucket: its key, its Merkle hash, and its leaves' encoded keys."""

    key: bytes
    merkle: bytes
    leaves: bytes


class BucketChanges(NamedTuple):
    """The keys of removed buckets, and all buckets that are new or changed."""

    removed: Sequence[bytes]
    added: Sequence[StoredBucket]


def changed_buckets(before: ProllyTree, after: ProllyTree) -> BucketChanges:
    """Return the changes of stored buckets from the tree `before` to `after`."""
    old, new = unequal_on(1, before, after)
    added = [
        StoredBucket(node.key, node.merkle, node.keys)
        for node in new
        if isinstance(node, LeafBucket)
    ]
    kept = {bucket.key for bucket in added}
    return BucketChanges([node.key for node in old if node.key not in kept], added)


def tree_of(buckets: Iterable[StoredBucket], fan_out: int) -> ProllyTree:
    """Return the tree of stored buckets, which must be in order of their keys.

    If a bucket has only the tail, it may be omitted. To detect lost buckets, compare
    the root with the original tree's root.

    Raises:
        DamagedBucket: A bucket does not match its hash, or cannot belong to a tree with
            this fan-out.
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
