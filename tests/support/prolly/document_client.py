"""A client of the document's protocol (steps 3 to 6), for tests and the comparison.

The server's tree is read from its root downwards. A node of the server that this side
has too, with the same Merkle hash, is not read any further. The others are replaced by
their children: the non-boundary nodes that the server names, and the boundary, which
the document's answer leaves out and which has the key of the node itself. Whether the
boundary is the same on both sides shows in the Merkle hash of the node above it.

At the end the Merkle hashes of everything that was read are computed from the leaves
upwards, so a server whose hashes contradict its messages is found out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

from google.protobuf.message import Message

from sds_core.prolly.difference import children_of
from sds_core.prolly.document import MAX_START_NODES, NODE_BYTES, key_of, written
from sds_core.prolly.errors import (
    BadNode,
    UnexpectedMessage,
    WrongHash,
)
from sds_core.prolly.frames import Frame, frame_of, message_in
from sds_core.prolly.hashing import (
    MAX_LEVEL,
    TAIL_HASH,
    boundary_limit,
    hash_at,
    leaf_hash,
    top_level,
)
from sds_core.prolly.item import TAIL_KEY, TAIL_TIMESTAMP_NS, unpack
from sds_core.prolly.node import Node
from sds_core.prolly.outcome import DEFAULT_LIMITS, Allowance, Limits, Outcome
from sds_core.prolly.proto import waku2_sync_pb2 as pb
from sds_core.prolly.tree import ProllyTree

_LONGEST_BUCKET = 8
"""Longest bucket that is expected, in mean buckets: one in 3,000 is longer."""


class _Remote:
    """A node of the server.

    Attributes:
        level, key: Its place.
        after: Key of its left neighbour on its level; all messages below it have
            greater keys.
        merkle: Its Merkle hash; None for a boundary, which the server does not name.
        children: The nodes below it; None before they were read.
    """

    __slots__ = ("after", "children", "key", "level", "merkle")

    def __init__(
        self, level: int, key: bytes, after: bytes, merkle: bytes | None
    ) -> None:
        self.level = level
        self.key = key
        self.after = after
        self.merkle = merkle
        self.children: list[_Remote] | None = None

    def check(self) -> bytes:
        """Return its Merkle hash, computed from the nodes below if they were read.

        Raises:
            WrongHash: The server named another hash.
        """
        if self.children is None:
            assert self.merkle is not None
            return self.merkle
        found = sha256(b"".join(child.check() for child in self.children)).digest()
        if self.merkle is not None and found != self.merkle:
            text = f"the server's node of level {self.level} does not have the Merkle "
            raise WrongHash(text + "hash of the nodes below it")
        return found


class DocumentClient:
    """Finds what two trees do not have in common.

    Args:
        tree: The messages of this side.
        limits: What is accepted of the server.
    """

    def __init__(self, tree: ProllyTree, limits: Limits = DEFAULT_LIMITS) -> None:
        self._tree = tree
        self._limits = limits
        self._boundary_limit = boundary_limit(tree.fan_out)
        # So many that the answer fits a frame.
        answer_nodes = limits.frame_bytes // NODE_BYTES
        starts = answer_nodes // (_LONGEST_BUCKET * tree.fan_out)
        self._starts = max(1, min(starts, MAX_START_NODES))
        self._root: _Remote | None = None
        self._outcome: Outcome | None = None
        # What is unequal on the level that is being read.
        self._ours: Sequence[Node] = ()
        self._theirs: list[_Remote] = []
        self._asked: list[list[_Remote]] = []
        """Nodes of each request of this level; the answers come in this order."""
        self._answered = 0
        self._allowance = Allowance(limits)
        self._awaits_root = False
        self._climbing: pb.Node | None = None

    @property
    def outcome(self) -> Outcome | None:
        """The result; None until the synchronisation ends."""
        return self._outcome

    def start(self) -> Sequence[Frame]:
        """Return the request that opens a connection, the first or a later one."""
        self._awaits_root = True
        self._climbing = None
        root = written(self._tree.root, self._tree)
        return [frame_of(pb.ExchangeRootRequest(root=root))]

    def receive(self, frame: Frame) -> Sequence[Frame]:
        """Take an answer of the server; returns the next requests.

        Raises:
            SyncError: The server does not follow the protocol.
        """
        requests = self._received(message_in(frame))
        return [frame_of(request) for request in requests]

    def _received(self, answer: Message) -> Iterable[Message]:
        match answer:
            case pb.ExchangeRootResponse() if self._awaits_root:
                self._awaits_root = False
                if answer.root.level > self._tree.root.level:
                    text = f"a root of level {answer.root.level} was not asked for"
                    raise BadNode(text)
                return self._climbed(answer.root)
            case pb.GetIntermediateNodeResponse() if self._climbing is not None:
                level = self._climbing.level + 1
                if answer.node.level != level:
                    text = f"a node of level {answer.node.level}, not of level {level}"
                    raise BadNode(text)
                return self._climbed(answer.node)
            case pb.GetNonBoundaryNodesResponse() if self._answered < len(self._asked):
                return self._children(answer.non_boundary_nodes)
        text = f"{type(answer).__name__} was not asked for"
        raise UnexpectedMessage(text)

    def _climbed(self, root: pb.Node) -> Iterable[Message]:
        """Take the tail of a level; the real root has nothing above it."""
        _check_tail(root)
        if root.up:
            if root.up != TAIL_TIMESTAMP_NS or root.level > MAX_LEVEL:
                text = "only a tail is above a tail, and not without end"
                raise BadNode(text)
            self._climbing = root
            request = pb.GetIntermediateNodeRequest(
                node_id=root.up, level=root.level + 1
            )
            return [request]
        self._climbing = None
        known = self._root
        found = (root.level, root.merkle_hash)
        if known is not None and (known.level, known.merkle) == found:
            # The tree is that of the connection before: the open requests again.
            self._asked = self._asked[self._answered :]
            self._answered = 0
            return [self._request(nodes) for nodes in self._asked]
        return self._begun(root)

    def _begun(self, root: pb.Node) -> Iterable[Message]:
        own = self._tree.root
        if root.level == 0 and root.merkle_hash != TAIL_HASH:
            text = "an empty tree with the hash of another"
            raise WrongHash(text)
        self._answered = 0
        self._allowance = Allowance(self._limits)
        self._asked = []
        self._root = _Remote(root.level, TAIL_KEY, b"", root.merkle_hash)
        self._theirs = [self._root]
        # The levels above the lower root have nothing to compare.
        self._ours = [self._tree.raised(max(own.level, root.level))]
        while self._ours[0].level > root.level:
            self._ours = children_of(self._ours)
        self._drop_equal()
        return self._descended()

    def _descended(self) -> Iterable[Message]:
        """Ask for the next level, or finish."""
        if not self._theirs or not self._theirs[0].level:
            self._finish()
            return ()
        parts = range(0, len(self._theirs), self._starts)
        self._asked = [self._theirs[at : at + self._starts] for at in parts]
        self._answered = 0
        return [self._request(nodes) for nodes in self._asked]

    def _request(self, nodes: Iterable[_Remote]) -> Message:
        return pb.GetNonBoundaryNodesRequest(start_nodes=map(_reference, nodes))

    def _children(self, nodes: Sequence[pb.Node]) -> Iterable[Message]:
        """Take the children of the nodes of one request."""
        self._allowance.use(len(nodes))
        parents = self._asked[self._answered]
        read = iter(nodes)
        node = next(read, None)
        for parent in parents:
            level = parent.level - 1
            parent.children = []
            after = parent.after
            while node is not None and (key := key_of(node)) < parent.key:
                if key <= after:
                    text = f"{key.hex()} is not in its place on level {level}"
                    raise BadNode(text)
                _check_non_boundary(node, key, level, self._boundary_limit)
                if not level and node.merkle_hash != node.node_hash:
                    text = "the Merkle hash of a leaf is its node hash"
                    raise WrongHash(text)
                if len(node.merkle_hash) != len(TAIL_HASH):
                    text = f"a Merkle hash of {len(node.merkle_hash)} bytes"
                    raise BadNode(text)
                parent.children.append(_Remote(level, key, after, node.merkle_hash))
                after = key
                node = next(read, None)
            parent.children.append(_Remote(level, parent.key, after, None))
        if node is not None:
            text = f"a node behind all that were asked for: {node.timestamp} ns"
            raise BadNode(text)
        self._answered += 1
        if self._answered < len(self._asked):
            return ()
        return self._next_level()

    def _next_level(self) -> Iterable[Message]:
        for parent in self._theirs:
            self._find_boundary(parent)
        self._theirs = [
            child for parent in self._theirs for child in parent.children or ()
        ]
        self._ours = children_of(self._ours)
        self._drop_equal()
        return self._descended()

    def _find_boundary(self, parent: _Remote) -> None:
        """Find the Merkle hash of a node's last child, if this side has the same."""
        assert parent.children is not None
        boundary = parent.children[-1]
        if not boundary.level:
            is_tail = boundary.key == TAIL_KEY
            boundary.merkle = TAIL_HASH if is_tail else leaf_hash(boundary.key)
            return
        own = self._tree.node(boundary.level, boundary.key)
        if own is None or parent.merkle is None:
            return
        above = sha256()
        for child in parent.children[:-1]:
            above.update(child.merkle or b"")
        above.update(own.merkle)
        if above.digest() == parent.merkle:
            boundary.merkle = own.merkle

    def _drop_equal(self) -> None:
        our_hashes = {node.merkle for node in self._ours}
        their_hashes = {node.merkle for node in self._theirs}
        # A boundary of unknown hash is equal to no node.
        self._ours = [one for one in self._ours if one.merkle not in their_hashes]
        self._theirs = [one for one in self._theirs if one.merkle not in our_hashes]

    def _finish(self) -> None:
        assert self._root is not None
        self._root.check()
        # If the server has nothing of its own, all that is left here is ours alone.
        ours = self._ours
        while ours and ours[0].level:
            ours = children_of(ours)
        self._outcome = Outcome(
            [unpack(leaf.key) for leaf in ours if leaf.key != TAIL_KEY],
            [unpack(leaf.key) for leaf in self._theirs if leaf.key != TAIL_KEY],
        )


def _check_non_boundary(node: pb.Node, key: bytes, level: int, limit: bytes) -> None:
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


def _check_tail(node: pb.Node) -> None:
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


def _reference(node: _Remote) -> pb.Node:
    """Return what the server needs to find one of its nodes."""
    is_tail = node.key == TAIL_KEY
    item = unpack(node.key)
    return pb.Node(
        data=b"" if is_tail else item.message_hash,
        timestamp=item.timestamp_ns,
        level=node.level,
        is_tail=is_tail,
    )
