"""A Prolly tree by its definition: lists of nodes, made anew for each set of messages.

It shares nothing with `sds_core.prolly` but the names of its values.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

TAIL_TIME = 2**63 - 1


class ReferenceNode(NamedTuple):
    """A node.

    Attributes:
        time, message_hash: Its key; those of the tail are `TAIL_TIME` and empty.
        node_hash, merkle: Its hashes.
        children: Places of the nodes below it, on the level below.
    """

    time: int
    message_hash: bytes
    node_hash: bytes
    merkle: bytes
    children: range

    @property
    def is_tail(self) -> bool:
        """Whether it is the tail of its level."""
        return self.time == TAIL_TIME


def reference_levels(
    messages: Iterable[tuple[int, bytes]], fan_out: int
) -> list[list[ReferenceNode]]:
    """Return the levels of the tree of some messages, leaves first."""
    level = []
    for time, message_hash in sorted(set(messages)):
        digest = sha256(time.to_bytes(8, "big") + message_hash).digest()
        level.append(ReferenceNode(time, message_hash, digest, digest, range(0)))
    nothing = sha256(b"").digest()
    level.append(ReferenceNode(TAIL_TIME, b"", nothing, nothing, range(0)))
    levels = [level]
    while len(levels[-1]) > 1:
        levels.append(_above(levels[-1], fan_out))
    return levels


def _above(level: list[ReferenceNode], fan_out: int) -> list[ReferenceNode]:
    above = []
    begin = 0
    for place, node in enumerate(level):
        number = int.from_bytes(node.node_hash[:4], "big")
        if node.is_tail or number < 2**32 // fan_out:
            children = range(begin, place + 1)
            joined = b"".join(level[child].merkle for child in children)
            above.append(
                node._replace(
                    node_hash=sha256(node.node_hash).digest(),
                    merkle=sha256(joined).digest(),
                    children=children,
                )
            )
            begin = place + 1
    return above
