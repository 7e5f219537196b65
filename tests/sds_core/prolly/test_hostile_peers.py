"""A peer that does not follow the protocol: a typed error, and bounded memory."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.prolly.batched.client import BatchedClient
from sds_core.prolly.batched.server import BatchedServer
from sds_core.prolly.document import MAX_START_NODES, DocumentServer
from sds_core.prolly.errors import (
    BadFrame,
    BadNode,
    LimitExceeded,
    PeerRefused,
    SyncError,
    UnexpectedMessage,
    WrongHash,
)
from sds_core.prolly.frames import (
    Frame,
    FrameReader,
    Kind,
    frame_of,
    message_in,
)
from sds_core.prolly.hashing import TAIL_HASH, hash_at
from sds_core.prolly.item import TAIL_TIMESTAMP_NS, Item
from sds_core.prolly.outcome import Limits, Server
from sds_core.prolly.proto import batched_sync_pb2 as bb
from sds_core.prolly.proto import waku2_sync_pb2 as pb
from sds_core.prolly.tree import ProllyTree
from tests.support.prolly.document_client import DocumentClient
from tests.support.prolly.sessions import BOTH, Protocol, synchronise

ITEMS = [Item(10 * n, n.to_bytes(32, "little")) for n in range(1, 300)]
TREE = ProllyTree(ITEMS, 4)
LACKING = TREE.changed(delete=ITEMS[::7])

Change = Callable[[pb.Node], None]


class Lying(Server):
    """A server of the document's protocol that changes its answers.

    Args:
        change: Changes a node of an answer.
        only: The kind of answers that it changes.
    """

    def __init__(self, change: Change, only: Kind) -> None:
        self._honest = DocumentServer(TREE)
        self._change = change
        self._only = only

    def receive(self, frame: Frame) -> list[Frame]:
        """Answer."""
        (answer,) = self._honest.receive(frame)
        if answer.kind is not self._only:
            return [answer]
        message = message_in(answer)
        if isinstance(message, pb.ExchangeRootResponse):
            self._change(message.root)
        elif isinstance(message, pb.GetNonBoundaryNodesResponse):
            for node in message.non_boundary_nodes[:1]:
                self._change(node)
        return [frame_of(message)]


def changed(**values: object) -> Change:
    """Return what sets some fields."""

    def change(node: pb.Node) -> None:
        for name, value in values.items():
            setattr(node, name, value)

    return change


def _later(node: pb.Node) -> None:
    node.timestamp += 1


ROOT, NODES = Kind.EXCHANGE_ROOT_RESPONSE, Kind.GET_NON_BOUNDARY_NODES_RESPONSE


@pytest.mark.parametrize(
    ("change", "only", "error"),
    [
        (changed(merkle_hash=b"\1" * 32), ROOT, WrongHash),
        (changed(node_hash=b"\1" * 32), ROOT, BadNode),
        (changed(is_tail=False), ROOT, BadNode),
        (changed(timestamp=4), ROOT, BadNode),
        (changed(data=b"x"), ROOT, BadNode),
        (changed(level=-1), ROOT, BadNode),
        (changed(level=60), ROOT, BadNode),
        (changed(up=12), ROOT, BadNode),
        (changed(merkle_hash=b"\1" * 32), NODES, WrongHash),
        (changed(merkle_hash=b"\1"), NODES, BadNode),
        (changed(node_hash=b"\1" * 32), NODES, BadNode),
        (changed(level=0), NODES, BadNode),
        (changed(level=3), NODES, BadNode),
        (changed(is_tail=True), NODES, BadNode),
        (changed(timestamp=0), NODES, BadNode),
        (changed(timestamp=-5), NODES, BadNode),
        (changed(timestamp=TAIL_TIMESTAMP_NS), NODES, BadNode),
        (changed(data=b""), NODES, BadNode),
        (changed(data=b"\1" * 33), NODES, BadNode),
        (_later, NODES, BadNode),
    ],
)
def test_a_wrong_node_is_found_out(
    change: Change, only: Kind, error: type[SyncError]
) -> None:
    """By its place, its own hash, or the Merkle hashes above it."""
    client = DocumentClient(LACKING)
    with pytest.raises(error):
        synchronise(client, Lying(change, only))
    assert client.outcome is None


def test_wrong_leaves_are_found_out() -> None:
    """A leaf whose Merkle hash is not its node hash."""

    def change(node: pb.Node) -> None:
        if node.level == 0:
            node.merkle_hash = b"\1" * 32

    with pytest.raises(WrongHash, match="leaf"):
        synchronise(DocumentClient(LACKING), Lying(change, NODES))


class Growing(Server):
    """A server whose tree has no top."""

    def receive(self, frame: Frame) -> list[Frame]:
        """Answer with a tail that has another one above it."""
        request = message_in(frame)
        level = 0
        if isinstance(request, pb.GetIntermediateNodeRequest):
            level = request.level
        elif isinstance(request, pb.ExchangeRootRequest):
            level = request.root.level
        tail = pb.Node(
            timestamp=TAIL_TIMESTAMP_NS,
            is_tail=True,
            level=level,
            node_hash=hash_at(TAIL_HASH, level),
            merkle_hash=b"\1" * 32,
            up=TAIL_TIMESTAMP_NS,
        )
        if isinstance(request, pb.ExchangeRootRequest):
            return [frame_of(pb.ExchangeRootResponse(root=tail))]
        return [frame_of(pb.GetIntermediateNodeResponse(node=tail))]


def test_references_that_never_end_are_found_out() -> None:
    """Each step leads up, and trees have a greatest height."""
    with pytest.raises(BadNode, match="not without end"):
        synchronise(DocumentClient(LACKING), Growing())


class Repeating(Server):
    """A server that answers each request with nodes of an earlier answer."""

    def __init__(self) -> None:
        self._honest = DocumentServer(TREE)
        self._nodes: list[pb.Node] = []

    def receive(self, frame: Frame) -> list[Frame]:
        """Answer as before."""
        (answer,) = self._honest.receive(frame)
        message = message_in(answer)
        if not isinstance(message, pb.GetNonBoundaryNodesResponse):
            return [answer]
        self._nodes = self._nodes or list(message.non_boundary_nodes)
        return [
            frame_of(pb.GetNonBoundaryNodesResponse(non_boundary_nodes=self._nodes))
        ]


def test_references_in_a_circle_are_found_out() -> None:
    """Each level must be the next lower one."""
    with pytest.raises(BadNode):
        synchronise(DocumentClient(LACKING), Repeating())


@pytest.mark.parametrize("protocol", BOTH, ids=lambda one: one.name)
@pytest.mark.parametrize("limit", [0, 5, 60])
def test_a_client_accepts_a_bounded_number_of_nodes(
    protocol: Protocol, limit: int
) -> None:
    """The server has much more."""
    client = protocol.client(ProllyTree(fan_out=4), Limits(nodes=limit))
    with pytest.raises(LimitExceeded, match=f"more than {limit} "):
        synchronise(client, protocol.server(TREE, Limits()))
    assert client.outcome is None


@pytest.mark.parametrize("time_ns", [0, TAIL_TIMESTAMP_NS])
def test_times_that_no_message_may_have_are_refused(time_ns: int) -> None:
    """Also if the client asked for all times that a number can have."""
    chance = random.Random(1).randbytes
    client = BatchedClient(TREE, chance, start_ns=0, end_ns=2**63)
    client.start()
    items = bb.Items(
        level=1,
        time_differences=[time_ns],
        message_hashes=bytes(32),
        root=bb.Root(root=bytes(32), height=1),
    )
    with pytest.raises(BadNode, match="the compared range"):
        client.receive(frame_of(items))


def test_a_server_compares_a_bounded_number_of_nodes() -> None:
    """The client's lists are counted."""
    client = BatchedClient(TREE, random.Random(1).randbytes)
    with pytest.raises(LimitExceeded, match="more than 3 nodes"):
        synchronise(client, BatchedServer(LACKING, Limits(nodes=3)))


def test_requests_for_too_much_are_refused() -> None:
    """Too many nodes at once, or children beyond the length of a frame."""
    start = pb.Node(timestamp=TAIL_TIMESTAMP_NS, level=1, is_tail=True)
    many = [start] * (MAX_START_NODES + 1)
    request = frame_of(pb.GetNonBoundaryNodesRequest(start_nodes=many))
    with pytest.raises(LimitExceeded, match=str(len(many))):
        DocumentServer(TREE).receive(request)
    request = frame_of(pb.GetNonBoundaryNodesRequest(start_nodes=[pb.Node()] * 50_000))
    # Nodes without fields would take 40 times the memory of the frame.
    with pytest.raises(LimitExceeded, match="has 100000 bytes, but at most 51200"):
        DocumentServer(TREE).receive(request)
    wide = ProllyTree(ITEMS, 65_536)
    request = frame_of(pb.GetNonBoundaryNodesRequest(start_nodes=[start]))
    with pytest.raises(LimitExceeded, match="request fewer nodes at once"):
        DocumentServer(wide, Limits(frame_bytes=20_000)).receive(request)


@pytest.mark.parametrize(
    "start",
    [
        pb.Node(timestamp=TAIL_TIMESTAMP_NS, level=0, is_tail=True),
        pb.Node(timestamp=TAIL_TIMESTAMP_NS, level=99, is_tail=True),
        pb.Node(timestamp=TAIL_TIMESTAMP_NS, level=-1, is_tail=True),
        pb.Node(timestamp=7, level=1, data=bytes(32)),
        pb.Node(timestamp=7, level=1, data=b"short"),
    ],
)
def test_requests_for_nodes_that_are_not_there_are_refused(start: pb.Node) -> None:
    """Leaves have nothing below them."""
    request = frame_of(pb.GetNonBoundaryNodesRequest(start_nodes=[start]))
    with pytest.raises(BadNode):
        DocumentServer(TREE).receive(request)


def batched_client() -> BatchedClient:
    """A client that has begun."""
    client = BatchedClient(LACKING, random.Random(1).randbytes)
    client.start()
    return client


ROOT_OF_TREE = bb.Root(root=TREE.root.merkle, height=TREE.root.level)


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (bb.Step(level=2, fingerprints=b"\1" * 6), BadFrame),
        (bb.Step(level=2, fingerprints=b"\1" * 5, root=ROOT_OF_TREE), BadFrame),
        (bb.Step(level=0, root=ROOT_OF_TREE), UnexpectedMessage),
        (bb.Step(level=2, differing=b"\xff" * 90, root=ROOT_OF_TREE), BadFrame),
        (bb.Step(level=99, differing=b"\1", root=ROOT_OF_TREE), BadFrame),
        (bb.Items(level=1), BadFrame),
        (bb.Items(root=bb.Root()), WrongHash),
        (bb.Items(root=ROOT_OF_TREE), WrongHash),
        (bb.Items(root=ROOT_OF_TREE, has_more=True), BadFrame),
        (
            bb.Items(root=ROOT_OF_TREE, time_differences=[5], message_hashes=b"x"),
            BadFrame,
        ),
        (
            bb.Items(
                root=ROOT_OF_TREE, time_differences=[5, 0], message_hashes=bytes(64)
            ),
            BadNode,
        ),
        (
            bb.Items(root=ROOT_OF_TREE, time_differences=[0], message_hashes=bytes(32)),
            BadNode,
        ),
        (
            bb.Items(
                root=ROOT_OF_TREE,
                time_differences=[2**63, 2**63],
                message_hashes=bytes(64),
            ),
            BadNode,
        ),
        (bb.Want(), UnexpectedMessage),
        (bb.RecordsResponse(), UnexpectedMessage),
        (bb.Refusal(reason="no"), PeerRefused),
    ],
)
def test_a_batched_client_finds_out_wrong_answers(
    message: bb.Items, error: type[SyncError]
) -> None:
    """By their lists, by the range of times, or by the hash of the root."""
    client = batched_client()
    with pytest.raises(error):
        client.receive(frame_of(message))
    assert client.outcome is None


def test_a_batched_client_finds_out_invented_and_hidden_messages() -> None:
    """What it learns must have the hash of the server's root."""

    class Inventing(BatchedServer):
        def receive(self, frame: Frame) -> list[Frame]:
            answers = []
            for answer in super().receive(frame):
                message = message_in(answer)
                if isinstance(message, bb.Items) and message.time_differences:
                    message.message_hashes = b"\7" + message.message_hashes[1:]
                answers.append(frame_of(message))
            return answers

    class Hiding(BatchedServer):
        def receive(self, frame: Frame) -> list[Frame]:
            answers = []
            for answer in super().receive(frame):
                message = message_in(answer)
                if isinstance(message, bb.Items) and message.time_differences:
                    message.time_differences.pop()
                    message.message_hashes = message.message_hashes[:-32]
                answers.append(frame_of(message))
            return answers

    for kind in (Inventing, Hiding):
        client = BatchedClient(LACKING, random.Random(1).randbytes)
        with pytest.raises(
            WrongHash, match="do not match the root that the server sent"
        ):
            synchronise(client, kind(TREE))


def opening(**values: object) -> Frame:
    """A first message with other values."""
    message = message_in(BatchedClient(LACKING, random.Random(1).randbytes).start()[0])
    assert isinstance(message, bb.Open)
    lists = values.pop("tail_children", None)
    for name, value in values.items():
        setattr(message, name, value)
    if isinstance(lists, list):
        del message.tail_children[:]
        message.tail_children.extend(lists)
    return frame_of(message)


@pytest.mark.parametrize(
    "frame",
    [
        opening(salt=b""),
        opening(root=b"short"),
        opening(height=2**31),
        opening(height=0),
        opening(tail_children=[b"123456"]),
        opening(tail_children=[b""] * LACKING.root.level),
        opening(tail_children=[b"12345"] * LACKING.root.level),
    ],
)
def test_a_batched_server_refuses_wrong_openings(frame: Frame) -> None:
    """Before it compares anything."""
    with pytest.raises(BadFrame):
        list(BatchedServer(TREE).receive(frame))


def test_a_batched_server_says_which_fan_out_it_has() -> None:
    """Trees with another one have nothing in common."""
    client = BatchedClient(ProllyTree(ITEMS, 8), random.Random(1).randbytes)
    with pytest.raises(PeerRefused, match="have the fan-out 4, not 8"):
        synchronise(client, BatchedServer(TREE))


def test_a_document_client_notices_another_fan_out() -> None:
    """The levels of nodes do not fit."""
    with pytest.raises(BadNode, match="fan-out"):
        synchronise(DocumentClient(ProllyTree(ITEMS[1:], 8)), DocumentServer(TREE))


@pytest.mark.parametrize("kind", [bb.Step, bb.Want])
def test_a_long_bitmap_takes_little_memory(kind: type[bb.Step | bb.Want]) -> None:
    """It is refused before it is taken apart, bit by bit."""
    server = BatchedServer(TREE)
    client = BatchedClient(LACKING, random.Random(1).randbytes)
    for frame in client.start():
        list(server.receive(frame))
    marks = b"\xff" * 1_000_000
    request = (
        bb.Step(level=1, differing=marks) if kind is bb.Step else bb.Want(wanted=marks)
    )
    frame = frame_of(request)
    tracemalloc.start()
    try:
        with pytest.raises(BadFrame, match="marks node 8000000 of a list"):
            list(server.receive(frame))
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most_bytes < 4 * len(marks)


@pytest.mark.parametrize("message", [bb.Step(level=1), bb.Want(), bb.Items()])
def test_a_batched_server_answers_nothing_before_it_was_opened(
    message: bb.Step,
) -> None:
    """Whatever comes."""
    with pytest.raises(UnexpectedMessage):
        list(BatchedServer(TREE).receive(frame_of(message)))


@given(
    kind=st.sampled_from(list(Kind)),
    body=st.binary(max_size=200),
    steps=st.integers(0, 2),
)
def test_random_bytes_raise_only_errors_of_synchronisation(
    kind: Kind, body: bytes, steps: int
) -> None:
    """At both sides of both protocols, at the begin and later."""
    for protocol in BOTH:
        client = protocol.client(LACKING, Limits())
        server = protocol.server(TREE, Limits())
        synchronise(client, server, break_after=steps)
        for side in (client, server):
            try:
                list(side.receive(Frame(kind, body)))
            except SyncError:
                continue


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("too many peers", "too many peers"),
        ("", "the peer refused the request, but gave no reason"),
        ("a\nb\x1b[2J", r"a\\nb\\x1b\[2J"),
        ("x" * 100_000, "^x{133}…x{66}$"),
    ],
)
def test_the_reason_of_a_refusal_is_one_line_of_bounded_length(
    reason: str, text: str
) -> None:
    """It is shown to an operator."""
    with pytest.raises(PeerRefused, match=text):
        message_in(frame_of(bb.Refusal(reason=reason)))


def test_long_frames_are_refused_by_their_head() -> None:
    """Before their bytes are held."""
    reader = FrameReader(100)
    with pytest.raises(LimitExceeded, match="a frame has 101 bytes, but at most 100"):
        reader.feed((101).to_bytes(4, "big") + bytes([Kind.WANT]))


def test_frames_of_unknown_kinds_are_refused() -> None:
    """With the kind."""
    with pytest.raises(BadFrame, match="unknown kind 99"):
        FrameReader(100).feed(bytes([0, 0, 0, 1, 99]))


@given(
    bodies=st.lists(st.binary(max_size=30), max_size=5),
    cuts=st.lists(st.integers(1, 40), max_size=30),
)
def test_a_stream_is_divided_into_its_frames(
    bodies: list[bytes], cuts: list[int]
) -> None:
    """Wherever it is cut."""
    frames = [Frame(Kind.WANT, body) for body in bodies]
    stream = b"".join(map(bytes, frames))
    reader, found = FrameReader(30), []
    for cut in cuts:
        found += reader.feed(stream[:cut])
        stream = stream[cut:]
    found += reader.feed(stream)
    assert found == frames
    assert reader.is_between_frames


@pytest.mark.parametrize(
    "kind", [Kind.RECORDS_RESPONSE, Kind.GET_NON_BOUNDARY_NODES_RESPONSE]
)
def test_an_unexpected_message_is_refused_before_it_is_parsed(kind: Kind) -> None:
    """Its frame may hold eight million empty items, which take 700 MB."""
    unreadable = Frame(kind, b"\xff")
    for side in (BatchedServer(TREE), BatchedClient(TREE, random.Random(1).randbytes)):
        with pytest.raises(UnexpectedMessage):
            side.receive(unreadable)
