"""Hashes of nodes, and the rule that decides which nodes are boundaries.

A node's hash depends only on the node's key and level. Therefore, the shape of a tree
does not depend on the order in which messages are inserted. The hash of a leaf is the
SHA-256 of the leaf's encoded key. The hash of the lowest level's tail is the SHA-256 of
an empty string. At each higher level, a node's hash is the SHA-256 of the hash that the
same key has one level below. If the first four bytes of a node's hash, as a big-endian
number, are less than 2**32 / fan-out, the node is a *boundary*. A boundary is the last
node of a bucket, and the next level has a node with the same key. The tail of a level
is the last node of the level's last bucket.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

DEFAULT_FAN_OUT: Final = 16
"""By default, a bucket has this number of nodes on average.

docs/sync.md compares other values.
"""

MAX_FAN_OUT: Final = 65_536
"""Maximum fan-out.

A tree with fewer messages than its fan-out usually has only one bucket.
"""

MAX_LEVEL: Final = 64
"""Maximum level of a node that is not a tail.

A key is hashed once for each of its levels, so this maximum limits the CPU time.
"""

TAIL_HASH: Final = sha256().digest()
"""Node hash of the tail of the lowest level."""


class BadFanOut(ValueError):
    """The fan-out is out of range. The error's text contains the fan-out."""


def boundary_limit(fan_out: int) -> bytes:
    """Return the boundary limit, 32 bytes.

    A node is a boundary if its node hash is less than this limit.

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
    """Return the highest level on which a message has a node, at most `MAX_LEVEL`.

    `leaf` is the node hash of the message's leaf. `limit` is from `boundary_limit`.
    """
    level = 0
    while leaf < limit and level < MAX_LEVEL:
        leaf = sha256(leaf).digest()
        level += 1
    return level
