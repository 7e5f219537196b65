"""Nodes as the document writes them.

A reference in the document is a time (`int64`), and two messages may have the same one.
A time therefore means the first node of its level with that time, in the order of
hashes. A node in a `GetNonBoundaryNodesRequest` has its message hash too and is never
ambiguous, which is why the client descends by these requests alone.
"""

from __future__ import annotations

from typing import NamedTuple

from sds_core.prolly.errors import BadNode
from sds_core.prolly.hashing import (
    MAX_LEVEL,
    TAIL_HASH,
    hash_at,
    leaf_hash,
    top_level,
)
from sds_core.prolly.item import (
    TAIL_KEY,
    TAIL_TIMESTAMP_NS,
    BadItem,
    Item,
    pack,
    unpack,
)
from sds_core.prolly.node import Node
from sds_core.prolly.proto import waku2_sync_pb2 as pb
from sds_core.prolly.tree import ProllyTree

_NO_REFERENCE = 0


class Neighbours(NamedTuple):
    """Nodes around a node on its level; None at the ends."""

    left: Node | None
    right: Node | None


def written(node: Node, tree: ProllyTree, around: Neighbours | None = None) -> pb.Node:
    """Return a node with its references.

    Args:
        node: A node of the tree.
        tree: The tree.
        around: Its neighbours, if they are known; else they are searched.
    """
    if around is None:
        around = Neighbours(tree.left_of(node), tree.right_of(node))
    is_tail = node.key == TAIL_KEY
    leaf = TAIL_HASH if is_tail else leaf_hash(node.key)
    time_ns, message_hash = unpack(node.key)
    return pb.Node(
        data=b"" if is_tail else message_hash,
        timestamp=time_ns,
        node_hash=hash_at(leaf, node.level),
        level=node.level,
        merkle_hash=node.merkle,
        is_tail=is_tail,
        left=_reference(around.left),
        right=_reference(around.right),
        up=_reference(tree.parent(node)),
        down=time_ns if node.level else _NO_REFERENCE,
    )


def key_of(node: pb.Node) -> bytes:
    """Return the packed key of a node from a peer.

    Raises:
        BadNode: No node has such a time or hash.
    """
    if node.is_tail:
        if node.data or node.timestamp != TAIL_TIMESTAMP_NS:
            text = f"a tail with the time {node.timestamp}, or with data"
            raise BadNode(text)
        return TAIL_KEY
    try:
        return pack(Item(node.timestamp, node.data))
    except BadItem as error:
        raise BadNode(str(error)) from error


def check_non_boundary(node: pb.Node, key: bytes, level: int, limit: bytes) -> None:
    """Check a node that is no boundary of its level.

    Args:
        node: From a peer.
        key: Its packed key.
        level: The level that it should have.
        limit: From `boundary_limit`.

    Raises:
        BadNode: It is on another level than its hash says, or its hash is wrong.
    """
    if node.is_tail or node.level != level:
        text = f"a node of level {node.level} or a tail, where one of {level} should be"
        raise BadNode(text)
    leaf = leaf_hash(key)
    if top_level(leaf, limit) != level:
        text = f"{key.hex()} is not the last of its kind on level {level}; is the "
        raise BadNode(text + "peer's fan-out another one?")
    if node.node_hash != hash_at(leaf, level):
        text = f"the node hash of {key.hex()} on level {level} is wrong"
        raise BadNode(text)


def check_tail(node: pb.Node) -> None:
    """Check a tail, as which every root comes.

    Raises:
        BadNode: It is none, or its level or hash is wrong.
    """
    if not node.is_tail or key_of(node) != TAIL_KEY:
        text = "a root that is no tail"
        raise BadNode(text)
    if not 0 <= node.level <= MAX_LEVEL + 1:
        text = f"a root of level {node.level}"
        raise BadNode(text)
    if node.node_hash != hash_at(TAIL_HASH, node.level):
        text = f"the node hash of the tail of level {node.level} is wrong"
        raise BadNode(text)


def _reference(node: Node | None) -> int:
    return _NO_REFERENCE if node is None else unpack(node.key).timestamp_ns
