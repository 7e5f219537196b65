"""The server of the document's protocol (steps 3 and 4, and what step 5 asks for)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

from google.protobuf.message import Message

from sds_core.prolly.document.nodes import Neighbours, key_of, written
from sds_core.prolly.errors import BadNode, LimitExceeded, UnexpectedMessage
from sds_core.prolly.frames import Frame, frame_of, message_in
from sds_core.prolly.item import TAIL_KEY
from sds_core.prolly.limits import DEFAULT_LIMITS, Limits
from sds_core.prolly.node import Node
from sds_core.prolly.proto import waku2_sync_pb2 as pb
from sds_core.prolly.tree import ProllyTree

MAX_START_NODES = 256
"""Nodes in one `GetNonBoundaryNodesRequest`."""

NODE_BYTES = 200
"""More than a node needs on the wire."""


class DocumentServer:
    """Answers requests about one tree.

    Args:
        tree: The messages of this side. It does not change during the connection.
        limits: What is accepted and sent.

    Attributes:
        client_differs: Whether the root in the latest `ExchangeRootRequest` shows that
            both sides do not have the same messages, so this side may lack some too;
            None before one came.
    """

    def __init__(self, tree: ProllyTree, limits: Limits = DEFAULT_LIMITS) -> None:
        self._tree = tree
        self._max_nodes = limits.frame_bytes // NODE_BYTES
        self.client_differs: bool | None = None

    def receive(self, frame: Frame) -> Sequence[Frame]:
        """Return the answer to a request.

        Raises:
            SyncError: It cannot be read, asks for too much, or is no request.
        """
        return [frame_of(self._answer(message_in(frame)))]

    def _answer(self, request: Message) -> Message:
        match request:
            case pb.ExchangeRootRequest():
                return self._root(request.root)
            case pb.GetIntermediateNodeRequest():
                return self._node(request.node_id, request.level)
            case pb.GetNonBoundaryNodesRequest():
                return self._non_boundary(request.start_nodes)
        text = f"{type(request).__name__} is no request of this protocol"
        raise UnexpectedMessage(text)

    def _root(self, root: pb.Node) -> pb.ExchangeRootResponse:
        own = self._tree.root
        self.client_differs = (root.level, root.merkle_hash) != (own.level, own.merkle)
        # 4a and 4b: the same height as the client's, or the greatest there is.
        level = min(max(root.level, 0), own.level)
        tail = self._tree.node(level, TAIL_KEY)
        assert tail is not None  # noqa: S101 - every level has a tail
        return pb.ExchangeRootResponse(root=written(tail, self._tree))

    def _node(self, time_ns: int, level: int) -> pb.GetIntermediateNodeResponse:
        found = self._tree.first_node_at(level, time_ns)
        if found is None:
            return pb.GetIntermediateNodeResponse()
        return pb.GetIntermediateNodeResponse(node=written(found, self._tree))

    def _non_boundary(self, starts: Sequence[pb.Node]) -> Message:
        if len(starts) > MAX_START_NODES:
            text = f"{len(starts)} start nodes; a request has at most {MAX_START_NODES}"
            raise LimitExceeded(text)
        nodes: list[pb.Node] = []
        for start in starts:
            found = self._tree.node(start.level, key_of(start))
            if found is None or not found.level:
                text = f"no node of level {start.level} has the key in the request"
                raise BadNode(text)
            if len(nodes) + len(found.children) > self._max_nodes:
                text = f"an answer of more than {self._max_nodes} nodes: ask in parts"
                raise LimitExceeded(text)
            nodes += self._below(found)
        return pb.GetNonBoundaryNodesResponse(non_boundary_nodes=nodes)

    def _below(self, node: Node) -> Iterator[pb.Node]:
        """Yield the children of a node but the last, which is its boundary."""
        children = node.children
        before = self._tree.left_of(children[0])
        for left, (child, right) in zip(
            chain([before], children), pairwise(children), strict=False
        ):
            yield written(child, self._tree, Neighbours(left, right))
