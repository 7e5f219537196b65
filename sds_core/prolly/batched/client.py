"""The client of the batched synchronisation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from google.protobuf.message import Message

from sds_core.prolly.batched.lists import (
    FINGERPRINT_BYTES,
    SALT_BYTES,
    below,
    compare,
    fingerprints,
    marked,
    read_items,
    tail_children,
)
from sds_core.prolly.difference import children_of
from sds_core.prolly.errors import BadFrame, UnexpectedMessage, WrongHash
from sds_core.prolly.frames import Frame, Kind, frame_of, message_in
from sds_core.prolly.hashing import MAX_LEVEL
from sds_core.prolly.item import TAIL_TIMESTAMP_NS, Item, unpack
from sds_core.prolly.node import Node
from sds_core.prolly.outcome import DEFAULT_LIMITS, Allowance, Limits, Outcome
from sds_core.prolly.proto import batched_sync_pb2 as pb
from sds_core.prolly.tree import ProllyTree

_EXPECTED: Final = frozenset({Kind.STEP, Kind.ITEMS, Kind.REFUSAL})

_MANY_MORE: Final = 6
"""At this ratio or above, the client stops comparing nodes and requests messages.

The ratio is the number of compared nodes that only the server has, divided by the
number of compared nodes that only the client has. The client then requests all messages
below the server's nodes, although it already has some of these messages. A further
comparison would cost more than the transfer of these messages.
"""


class BatchedClient:
    """Finds the messages that only the client or only the server has.

    Args:
        tree: The messages of the client.
        random_bytes: Function that returns as many random bytes as its argument states.
            The client uses the bytes as salts.
        start_ns, end_ns: The client compares messages whose time is in
            [start_ns, end_ns), Unix ns.

    Attributes:
        outcome: The differences; None until the synchronisation ends.
    """

    def __init__(
        self,
        tree: ProllyTree,
        random_bytes: Callable[[int], bytes],
        start_ns: int = 1,
        end_ns: int = TAIL_TIMESTAMP_NS,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._random_bytes = random_bytes
        # No message may have another time, so an answer with another time is refused.
        self._start_ns = max(start_ns, 1)
        self._end_ns = min(end_ns, TAIL_TIMESTAMP_NS)
        self._limits = limits
        self._own = self._tree = tree.between(start_ns, end_ns)
        """`_own` has only the messages of this side.

        `_tree` also has the messages that the server sent in earlier connections.
        """
        self.outcome: Outcome | None = None
        self._begin(b"")

    def start(self) -> Sequence[Frame]:
        """Return the first frames of a connection. Call `start` for each connection.

        The client keeps the messages that it received in an earlier connection, so the
        server does not resend them.
        """
        self._tree = self._tree.changed(insert=self._received)
        self._begin(self._random_bytes(SALT_BYTES))
        root = self._tree.root
        request = pb.Open(
            salt=self._salt,
            fan_out=self._tree.fan_out,
            start_ns=self._start_ns,
            end_ns=self._end_ns,
            root=root.merkle,
            height=root.level,
            tail_children=[
                fingerprints(self._salt, children) for children in tail_children(root)
            ],
        )
        return [frame_of(request)]

    def receive(self, frame: Frame) -> Sequence[Frame]:
        """Process a frame from the server; return the frames to send.

        Raises:
            SyncError: The server does not follow the protocol, or refuses the request.
        """
        message = message_in(frame, expected=_EXPECTED)
        return [frame_of(one) for one in self._answer(message)]

    def _begin(self, salt: bytes) -> None:
        self._salt = salt
        self._allowance = Allowance(self._limits)
        self._root: pb.Root | None = None
        self._list: Sequence[Node] | None = None
        """Nodes of the list that was sent last; None before the first answer."""
        self._only_here: Sequence[Node] = ()
        """Nodes of this side that the server does not have."""
        self._awaits_items = False
        self._received: list[Item] = []

    def _answer(self, message: Message) -> Iterable[Message]:
        match message:
            case pb.Step() if self._salt and not self._awaits_items and message.level:
                return self._stepped(message)
            case pb.Items() if self._salt and self.outcome is None:
                return self._took(message)
        text = f"{type(message).__name__} is not expected at this point"
        raise UnexpectedMessage(text)

    def _stepped(self, step: pb.Step) -> Iterable[Message]:
        self._allowance.use(len(step.fingerprints) // FINGERPRINT_BYTES)
        ours = children_of(self._differing(step))
        level = step.level - 1
        if step.skips_level and level:
            ours = children_of(ours)
            level -= 1
        compared = compare(self._salt, ours, step.fingerprints)
        their_count = int.from_bytes(compared.theirs, "little").bit_count()
        is_mostly_theirs = their_count >= _MANY_MORE * len(compared.ours)
        if compared.theirs and level and not is_mostly_theirs:
            self._list = children_of(compared.ours)
            return [
                pb.Step(
                    level=level,
                    differing=compared.theirs,
                    fingerprints=fingerprints(self._salt, self._list),
                )
            ]
        self._only_here = compared.ours
        self._awaits_items = True
        if compared.theirs:
            return [pb.Want(wanted=compared.theirs)]
        self._finish()
        return ()

    def _took(self, message: pb.Items) -> Iterable[Message]:
        if not self._awaits_items:
            self._only_here = self._differing(message)
            self._awaits_items = True
        items = read_items(message, self._start_ns, self._end_ns)
        self._allowance.use(len(items))
        self._received += items
        if not message.has_more:
            self._finish()
        elif not items:
            raise BadFrame("a message has no items, but states that more items follow")
        return ()

    def _differing(self, message: pb.Step | pb.Items) -> Sequence[Node]:
        if self._list is None:
            if not message.HasField("root") or message.level > MAX_LEVEL + 1:
                text = (
                    "an answer must have a root, and a level of at most "
                    f"{MAX_LEVEL + 1}; its level is {message.level}"
                )
                raise BadFrame(text)
            self._root = message.root
            self._list = self._below_tail(message.level)
        nodes = marked(message.differing, self._list)
        if any(node.level != message.level for node in nodes):
            text = (
                f"an answer has level {message.level}, but marks nodes of other levels"
            )
            raise BadFrame(text)
        return nodes

    def _below_tail(self, level: int) -> Sequence[Node]:
        root = self._tree.root
        if level >= root.level:
            return [self._tree.raised(level)]
        return tail_children(root)[root.level - level - 1]

    def _finish(self) -> None:
        received = set(self._received)
        # If the comparison of nodes ended above the leaves, the server also sends
        # messages that this side already has.
        lacking = [
            item for item in map(unpack, below(self._only_here)) if item not in received
        ]
        theirs = self._tree.changed(insert=self._received, delete=lacking)
        sent, own = self._root, theirs.root
        if sent is None or (sent.height, sent.root) != (own.level, own.merkle):
            text = "the server's messages do not match the root that the server sent"
            raise WrongHash(text)
        only_there = {item for item in received if item not in self._own}
        if self._tree is not self._own:
            earlier = {item for item in self._tree if item not in self._own}
            only_there |= earlier - set(lacking)
        self.outcome = Outcome(
            [item for item in lacking if item in self._own], sorted(only_there)
        )
