"""Hashes of nodes, and the rule that decides which nodes are boundaries.

A node's hash depends only on its key and level, so the order of insertion does not
change the shape of a tree. A leaf's hash is the SHA-256 of its encoded key; the tail's
hash is the SHA-256 of an empty string. At each higher level, the hash of the level
below is hashed again. A node is a *boundary* if the first four bytes of its hash, as a
number, are below 2**32 / fan-out. A boundary ends a bucket, and is also a node of the
next level. The tail ends the last bucket of each level.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

DEFAULT_FAN_OUT: Final = 16
"""Mean number of nodes in a bucket; docs/sync.md has the comparison."""

MAX_FAN_OUT: Final = 65_536
"""Maximum fan-out; a tree with larger buckets would have one level."""

MAX_LEVEL: Final = 64
"""Maximum level of a boundary; limits the length of a chain of hashes."""

TAIL_HASH: Final = sha256().digest()
"""Node hash of the tail of the lowest level."""


class BadFanOut(ValueError):
    """The fan-out is out of range; the text has the value."""


def boundary_limit(fan_out: int) -> bytes:
    """Return the smallest node hash that is not a boundary, 32 bytes.

    Raises:
        BadFanOut: The fan-out is not in [2, `MAX_FAN_OUT`].
    """
    if not 2 <= fan_out <= MAX_FAN_OUT:
        message = f"the fan-out is {fan_out}, but must be in [2, {MAX_FAN_OUT}]"
        raise BadFanOut(message)
    return (2**32 // fan_out).to_bytes(4, "big") + bytes(28)


def leaf_hash(key: bytes) -> bytes:
    """Return the node hash of a message's leaf; `key` is its encoded key."""
    return sha256(key).digest()


def hash_at(leaf: bytes, level: int) -> bytes:
    """Return the node hash at a level from the leaf's node hash."""
    for _ in range(level):
        leaf = sha256(leaf).digest()
    return leaf


def top_level(leaf: bytes, limit: bytes) -> int:
    """Return the highest level that has a node with this key, at most `MAX_LEVEL`."""
    level = 0
    while leaf < limit and level < MAX_LEVEL:
        leaf = sha256(leaf).digest()
        level += 1
    return level
