"""The server of the protocol in 75/WAKU2-SYNC.

The server implements steps 3 and 4 of the protocol, and answers the requests of step 5.

In 75/WAKU2-SYNC, a reference to a node is the node's time (`int64`), but several nodes
of a level may have the same time. The server selects the one with the smallest message
hash. To avoid such ambiguous references, a client can descend with
`GetNonBoundaryNodesRequest` alone, because this request also contains the nodes'
message hashes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

from google.protobuf.message import Message

from sds_core.prolly.errors import BadNode, LimitExceeded, UnexpectedMessage
from sds_core.prolly.frames import Frame, frame_of, message_in
from sds_core.prolly.hashing import TAIL_HASH, hash_at, leaf_hash
from sds_core.prolly.item import (
    TAIL_KEY,
    TAIL_TIMESTAMP_NS,
    BadItem,
    Item,
    pack,
    unpack,
)
from sds_core.prolly.node import Node
from sds_core.prolly.outcome import DEFAULT_LIMITS, Limits
from sds_core.prolly.proto import waku2_sync_pb2 as pb
from sds_core.prolly.tree import ProllyTree

MAX_START_NODES = 256
"""Maximum number of start nodes in one `GetNonBoundaryNodesRequest`."""

NODE_BYTES = 200
"""Upper bound of the length of an encoded node, bytes."""

_NO_REFERENCE = 0


def written(
    node: Node, tree: ProllyTree, around: tuple[Node | None, Node] | None = None
) -> pb.Node:
    """Return a node of `tree` as a protobuf message, with references to other nodes.

    `around` has the node's left and right neighbours. If `around` is omitted, the
    function looks up the neighbours in `tree`.
    """
    left, right = around or (tree.left_of(node), tree.right_of(node))
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
        left=_reference(left),
        right=_reference(right),
        up=_reference(tree.parent(node)),
        down=time_ns if node.level else _NO_REFERENCE,
    )


def key_of(node: pb.Node) -> bytes:
    """Return the encoded key of a node that a peer sent.

    Raises:
        BadNode: The time or the message hash of the node is invalid.
    """
    if node.is_tail:
        if node.data or node.timestamp != TAIL_TIMESTAMP_NS:
            text = f"a tail node has data, or has the wrong time: {node.timestamp}"
            raise BadNode(text)
        return TAIL_KEY
    try:
        return pack(Item(node.timestamp, node.data))
    except BadItem as error:
        raise BadNode(str(error)) from error


class DocumentServer:
    """Answers one client's requests about one tree.

    Args:
        tree: The messages of this side.

    Attributes:
        client_differs: Whether the client's root in the latest `ExchangeRootRequest`
            differs from this tree's root; None before the first `ExchangeRootRequest`.
            If the roots differ, this side may lack messages.
    """

    def __init__(self, tree: ProllyTree, limits: Limits = DEFAULT_LIMITS) -> None:
        self._tree = tree
        self._max_nodes = limits.frame_bytes // NODE_BYTES
        self.client_differs: bool | None = None

    def receive(self, frame: Frame) -> Sequence[Frame]:
        """Return the answer to the request in a frame.

        Raises:
            SyncError: The request is invalid, or the request or its answer is too long.
        """
        request = message_in(frame, MAX_START_NODES * NODE_BYTES)
        return [frame_of(self._answer(request))]

    def _answer(self, request: Message) -> Message:
        match request:
            case pb.ExchangeRootRequest():
                return self._root(request.root)
            case pb.GetIntermediateNodeRequest():
                return self._node(request.node_id, request.level)
            case pb.GetNonBoundaryNodesRequest():
                return self._non_boundary(request.start_nodes)
        text = f"{type(request).__name__} is not a request of this protocol"
        raise UnexpectedMessage(text)

    def _root(self, root: pb.Node) -> pb.ExchangeRootResponse:
        own = self._tree.root
        self.client_differs = (root.level, root.merkle_hash) != (own.level, own.merkle)
        # Steps 4a and 4b: answer with this tree's tail on the level of the lower root.
        level = min(max(root.level, 0), own.level)
        tail = self._tree.node(level, TAIL_KEY)
        assert tail is not None  # noqa: S101 - every level has a tail
        return pb.ExchangeRootResponse(root=written(tail, self._tree))

    def _node(self, time_ns: int, level: int) -> pb.GetIntermediateNodeResponse:
        node = self._tree.first_node_at(level, time_ns)
        if node is None:
            return pb.GetIntermediateNodeResponse()
        return pb.GetIntermediateNodeResponse(node=written(node, self._tree))

    def _non_boundary(self, starts: Sequence[pb.Node]) -> Message:
        if len(starts) > MAX_START_NODES:
            text = (
                f"the request has {len(starts)} start nodes, but may have at most "
                f"{MAX_START_NODES}"
            )
            raise LimitExceeded(text)
        nodes: list[pb.Node] = []
        for start in starts:
            found = self._tree.node(start.level, key_of(start))
            if found is None or not found.level:
                text = f"no node of level {start.level} has the requested key"
                raise BadNode(text)
            if len(nodes) + len(found.children) > self._max_nodes:
                text = (
                    f"the answer would have more than {self._max_nodes} nodes: "
                    "request fewer nodes at once"
                )
                raise LimitExceeded(text)
            nodes += self._below(found)
        return pb.GetNonBoundaryNodesResponse(non_boundary_nodes=nodes)

    def _below(self, node: Node) -> Iterator[pb.Node]:
        """Yield the children of a node, except the last child (the boundary)."""
        children = node.children
        before = self._tree.left_of(children[0])
        for left, (child, right) in zip(
            chain([before], children), pairwise(children), strict=False
        ):
            yield written(child, self._tree, (left, right))


def _reference(node: Node | None) -> int:
    return _NO_REFERENCE if node is None else unpack(node.key).timestamp_ns
