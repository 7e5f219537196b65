"""Hashes of nodes, and the rule that decides which nodes are boundaries.

A node's hash depends only on its key and level, so the order of insertion does not
change a tree's shape. The hash of a leaf is the SHA-256 of its encoded key. The hash of
the lowest level's tail is the SHA-256 of an empty string. At each higher level, a
node's hash is the SHA-256 of the hash that its key has at the level below. If the first
four bytes of the hash, as a number, are below 2**32 / fan-out, the node is a
*boundary*. A boundary ends a bucket, and its key is also a key of the next level. The
tail ends the last bucket of each level.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

DEFAULT_FAN_OUT: Final = 16
"""Default mean number of nodes in a bucket; docs/sync.md compares other values."""

MAX_FAN_OUT: Final = 65_536
"""Maximum fan-out. With larger buckets, a tree would have only one level."""

MAX_LEVEL: Final = 64
"""Maximum level of a message's key. It limits how often a key is hashed."""

TAIL_HASH: Final = sha256().digest()
"""Node hash of the tail of the lowest level."""


class BadFanOut(ValueError):
    """The fan-out is out of range. The text contains the value."""


def boundary_limit(fan_out: int) -> bytes:
    """Return the smallest hash of a node that is not a boundary, 32 bytes.

    Raises:
        BadFanOut: The fan-out is not in [2, `MAX_FAN_OUT`].
    """
    if not 2 <= fan_out <= MAX_FAN_OUT:
        message = f"the fan-out is {fan_out}, but must be in [2, {MAX_FAN_OUT}]"
        raise BadFanOut(message)
    return (2**32 // fan_out).to_bytes(4, "big") + bytes(28)


def leaf_hash(key: bytes) -> bytes:
    """Return the node hash of a message's leaf. `key` is the message's encoded key."""
    return sha256(key).digest()


def hash_at(leaf: bytes, level: int) -> bytes:
    """Return a key's node hash at a level. `leaf` is the key's node hash at level 0."""
    for _ in range(level):
        leaf = sha256(leaf).digest()
    return leaf


def top_level(leaf: bytes, limit: bytes) -> int:
    """Return the highest level of the leaf's key, at most `MAX_LEVEL`."""
    level = 0
    while leaf < limit and level < MAX_LEVEL:
        leaf = sha256(leaf).digest()
        level += 1
    return level
