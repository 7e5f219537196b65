"""The synchronisation of 75/WAKU2-SYNC: its messages and steps."""

from __future__ import annotations

import pytest
from hypothesis import given

from sds_core.prolly.document import DocumentServer
from sds_core.prolly.errors import UnexpectedMessage
from sds_core.prolly.frames import Frame, Kind, frame_of, message_in
from sds_core.prolly.hashing import leaf_hash
from sds_core.prolly.item import TAIL_TIMESTAMP_NS, Item, pack
from sds_core.prolly.node import Node
from sds_core.prolly.proto import waku2_sync_pb2 as pb
from sds_core.prolly.tree import ProllyTree
from tests.support.prolly.document_client import DocumentClient
from tests.support.prolly.sessions import DOCUMENT, found, synchronise
from tests.support.prolly.strategies import FAN_OUTS, SETS

FIRST, SECOND = Item(5, b"\1" * 32), Item(9, b"\2" * 32)


def tag(number: int, wire_type: int) -> bytes:
    """The tag of a field."""
    return bytes([number << 3 | wire_type])


def blob(number: int, value: bytes) -> bytes:
    """A field of bytes, or of a message."""
    return tag(number, 2) + bytes([len(value)]) + value


def answer(tree: ProllyTree, request: object) -> pb.Node:
    """What a server answers with one node."""
    (frame,) = DocumentServer(tree).receive(frame_of(request))  # type: ignore[arg-type]
    message = message_in(frame)
    if isinstance(message, pb.ExchangeRootResponse):
        return message.root
    assert isinstance(message, pb.GetIntermediateNodeResponse)
    return message.node


def below(tree: ProllyTree, *starts: pb.Node) -> list[pb.Node]:
    """The non-boundary nodes that a server names."""
    request = pb.GetNonBoundaryNodesRequest(start_nodes=starts)
    (frame,) = DocumentServer(tree).receive(frame_of(request))
    message = message_in(frame)
    assert isinstance(message, pb.GetNonBoundaryNodesResponse)
    return list(message.non_boundary_nodes)


def reference(node: Node, item: Item | None) -> pb.Node:
    """What a request says of a node; without an item, it is a tail."""
    if item is None:
        return pb.Node(timestamp=TAIL_TIMESTAMP_NS, level=node.level, is_tail=True)
    return pb.Node(
        data=item.message_hash, timestamp=item.timestamp_ns, level=node.level
    )


def tree_of(size: int, fan_out: int = 2, first: int = 1) -> ProllyTree:
    """A tree of so many messages."""
    return ProllyTree(
        (Item(10 * n, n.to_bytes(32, "little")) for n in range(first, first + size)),
        fan_out,
    )


@pytest.mark.rule("sync-node")
def test_a_node_on_the_wire_has_the_fields_of_the_document() -> None:
    """Byte by byte, of the right one of two leaves."""
    tree = ProllyTree([FIRST, SECOND], fan_out=65_536)
    (found_one,) = [
        one
        for one in below(tree, reference(tree.root, None))
        if one.timestamp == SECOND.timestamp_ns
    ]
    digest = leaf_hash(pack(SECOND))
    tail = b"\xff" * 8 + b"\x7f"
    assert found_one.SerializeToString() == b"".join(
        (
            blob(1, SECOND.message_hash),
            tag(2, 0) + b"\x09",
            blob(3, digest),
            # Level 0 is the default value.
            blob(5, digest),
            # No tail: the default value.
            tag(7, 0) + b"\x05",
            tag(8, 0) + tail,
            tag(9, 0) + tail,
            # Nothing is below a leaf.
        )
    )


@pytest.mark.rule("sync-node", "sync-node-refs", "sync-fake-root")
def test_a_tail_on_the_wire_has_no_key_and_no_value() -> None:
    """Only the time that stands for it, its level, hashes and references."""
    tree = ProllyTree([FIRST, SECOND], fan_out=65_536)
    root = answer(tree, pb.ExchangeRootRequest(root=pb.Node(level=1)))
    assert root.SerializeToString() == b"".join(
        (
            tag(2, 0) + b"\xff" * 8 + b"\x7f",
            blob(3, root.node_hash),
            tag(4, 0) + b"\x01",
            blob(5, tree.root.merkle),
            tag(6, 0) + b"\x01",
            tag(10, 0) + b"\xff" * 8 + b"\x7f",
        )
    )


@pytest.mark.rule("sync-wire")
def test_requests_and_answers_have_the_fields_of_the_document() -> None:
    """Byte by byte."""
    node = pb.Node(timestamp=3)
    inner = tag(2, 0) + b"\x03"
    for message in (
        pb.ExchangeRootRequest(root=node),
        pb.ExchangeRootResponse(root=node),
        pb.GetIntermediateNodeResponse(node=node),
        pb.GetNonBoundaryNodesRequest(start_nodes=[node]),
        pb.GetNonBoundaryNodesResponse(non_boundary_nodes=[node]),
    ):
        assert message.SerializeToString() == blob(1, inner)
    request = pb.GetIntermediateNodeRequest(node_id=3, level=2)
    assert request.SerializeToString() == tag(1, 0) + b"\x03" + tag(2, 0) + b"\x02"


@pytest.mark.rule("sync-exchange-root", "sync-step-3")
def test_the_client_begins_with_its_root() -> None:
    """Level and Merkle hash say where it wants to begin, and whether it differs."""
    tree = tree_of(40)
    (frame,) = DocumentClient(tree).start()
    message = message_in(frame)
    assert isinstance(message, pb.ExchangeRootRequest)
    assert message.root.level == tree.root.level
    assert message.root.merkle_hash == tree.root.merkle
    assert message.root.is_tail


@pytest.mark.rule("sync-exchange-root", "sync-step-4", "sync-step-4a", "sync-step-4b")
def test_the_server_answers_with_its_tail_of_that_level_or_its_root() -> None:
    """4a: not more than it has; 4b: not its own root if that is higher."""
    tree = tree_of(40)
    height = tree.root.level
    for level in range(height + 5):
        request = pb.ExchangeRootRequest(root=pb.Node(level=level, is_tail=True))
        root = answer(tree, request)
        assert root.is_tail
        assert root.level == min(level, height)
        tail = tree.raised(height)
        while tail.level > root.level:
            tail = tail.children[-1]
        assert root.merkle_hash == tail.merkle
        assert bool(root.up) == (root.level < height)


@pytest.mark.rule("sync-notice")
def test_the_server_notices_that_the_client_has_other_messages() -> None:
    """By its root alone."""
    tree = tree_of(40)
    for client, differs in ((tree_of(40), False), (tree_of(39), True)):
        server = DocumentServer(tree)
        assert server.client_differs is None
        list(server.receive(DocumentClient(client).start()[0]))
        assert server.client_differs is differs


@pytest.mark.rule("sync-get-intermediate")
def test_a_node_is_found_by_time_and_level() -> None:
    """Every node of the tree; nothing, if there is none."""
    tree = tree_of(40)
    level: list[Node] = [tree.root]
    while level:
        for node in level:
            time_ns = int.from_bytes(node.key[:8], "big")
            request = pb.GetIntermediateNodeRequest(node_id=time_ns, level=node.level)
            found_one = answer(tree, request)
            assert (found_one.level, found_one.timestamp) == (node.level, time_ns)
            assert found_one.merkle_hash == node.merkle
        level = [child for node in level for child in node.children]
    for time_ns, number in ((11, 0), (10, 99), (10, -1)):
        request = pb.GetIntermediateNodeRequest(node_id=time_ns, level=number)
        (frame,) = DocumentServer(tree).receive(frame_of(request))
        message = message_in(frame)
        assert isinstance(message, pb.GetIntermediateNodeResponse)
        assert not message.HasField("node")


@pytest.mark.rule("sync-get-intermediate", "sync-node-refs")
def test_a_time_of_two_messages_means_the_first_in_order_of_hashes() -> None:
    """An `int64` cannot say which."""
    low, high = Item(5, b"\1" * 32), Item(5, b"\2" * 32)
    tree = ProllyTree([high, low])
    found_one = answer(tree, pb.GetIntermediateNodeRequest(node_id=5, level=0))
    assert found_one.data == low.message_hash


@pytest.mark.rule("sync-node-refs")
def test_references_lead_to_the_nodes_around() -> None:
    """Left, right, up and down, of every node but the tails."""
    tree = tree_of(60)
    levels = set()
    above: list[Node] = [tree.root]
    while above[0].level:
        for parent in above:
            is_tail = _time(parent) == TAIL_TIMESTAMP_NS
            item = None if is_tail else Item(*_item(parent))
            for one in below(tree, reference(parent, item)):
                here = tree.first_node_at(one.level, one.timestamp)
                assert here is not None
                left, right = tree.left_of(here), tree.right_of(here)
                assert one.left == (0 if left is None else _time(left))
                assert right is not None
                assert one.right == _time(right)
                assert one.up == _time(parent)
                assert one.down == (one.timestamp if one.level else 0)
                levels.add(one.level)
        above = [child for parent in above for child in parent.children]
    assert len(levels) > 2


def _time(node: Node) -> int:
    return int.from_bytes(node.key[:8], "big")


def _item(node: Node) -> tuple[int, bytes]:
    return _time(node), node.key[8:]


@pytest.mark.rule("sync-get-non-boundary", "sync-step-5a")
def test_non_boundary_nodes_are_those_just_one_level_below() -> None:
    """Of each start node; its last child, the boundary, has the key of the node."""
    tree = tree_of(60)
    level = [child for child in tree.root.children if child.level]
    starts = [
        reference(one, None if _time(one) == TAIL_TIMESTAMP_NS else Item(*_item(one)))
        for one in level
    ]
    expected = [child for one in level for child in one.children[:-1]]
    found_nodes = below(tree, *starts)
    assert [(one.level, one.timestamp) for one in found_nodes] == [
        (child.level, _time(child)) for child in expected
    ]
    assert [one.merkle_hash for one in found_nodes] == [one.merkle for one in expected]


@pytest.mark.rule("sync-roles", "sync-any-tree", "sync-list")
@pytest.mark.rule("sync-step-5", "sync-step-6")
@given(here=SETS, there=SETS, fan_out=FAN_OUTS)
def test_the_client_finds_what_each_side_lacks(
    here: set[Item], there: set[Item], fan_out: int
) -> None:
    """Exactly, also with empty trees and of unequal heights."""
    only_here, only_there = found(DOCUMENT, here, there, fan_out)
    assert list(only_here) == sorted(here - there)
    assert list(only_there) == sorted(there - here)


@pytest.mark.rule("sync-step-4a", "sync-step-4b", "sync-same-level")
@pytest.mark.parametrize(("here", "there"), [(3, 400), (400, 3), (0, 50), (50, 0)])
def test_unequal_heights_are_compared_on_a_common_level(here: int, there: int) -> None:
    """The smaller tree's messages are all in the larger one."""
    ours, theirs = tree_of(here), tree_of(there)
    assert ours.root.level != theirs.root.level
    client = DocumentClient(ours)
    synchronise(client, DocumentServer(theirs))
    assert client.outcome is not None
    assert set(client.outcome.only_here) == set(ours) - set(theirs)
    assert set(client.outcome.only_there) == set(theirs) - set(ours)


@pytest.mark.rule("sync-get-non-boundary", "sync-step-5a", "sync-step-5b")
def test_equal_subtrees_are_not_traversed() -> None:
    """Equal trees need the root alone; one difference one node of each level."""
    tree = tree_of(5_000, fan_out=8)
    client = DocumentClient(tree_of(5_000, fan_out=8))
    assert synchronise(client, DocumentServer(tree)).frames == 1

    asked: list[Frame] = []

    class Recording(DocumentServer):
        def receive(self, frame: Frame) -> list[Frame]:
            asked.append(frame)
            return list(super().receive(frame))

    items = list(tree)
    client = DocumentClient(tree.changed(delete=[items[2_500]]))
    synchronise(client, Recording(tree))
    starts = 0
    for frame in asked:
        message = message_in(frame)
        if isinstance(message, pb.GetNonBoundaryNodesRequest):
            starts += len(message.start_nodes)
    # A boundary of unknown hash beside the unequal node is read too.
    assert starts <= 2 * tree.root.level


def test_frames_of_other_kinds_are_no_requests() -> None:
    """An answer, for instance."""
    with pytest.raises(UnexpectedMessage, match="is not a request"):
        DocumentServer(tree_of(3)).receive(Frame(Kind.EXCHANGE_ROOT_RESPONSE, b""))
