"""The server of the batched synchronisation (docs/sync.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Final

from google.protobuf.message import Message

from sds_core.prolly.batched.lists import (
    FINGERPRINT_BYTES,
    SALT_BYTES,
    Compared,
    below,
    compare,
    fingerprint,
    fingerprints,
    marked,
)
from sds_core.prolly.difference import children_of
from sds_core.prolly.errors import BadFrame, UnexpectedMessage
from sds_core.prolly.frames import Frame, Kind, frame_of, message_in
from sds_core.prolly.hashing import MAX_LEVEL, hash_at
from sds_core.prolly.item import HASH_BYTES, unpack
from sds_core.prolly.node import Node
from sds_core.prolly.outcome import DEFAULT_LIMITS, Allowance, Limits
from sds_core.prolly.proto import batched_sync_pb2 as pb
from sds_core.prolly.tree import ProllyTree

ITEMS_PER_MESSAGE: Final = 20_000
"""Maximum number of items in one `pb.Items`; they have about 800 kB in total."""

_EXPECTED: Final = frozenset({Kind.OPEN, Kind.STEP, Kind.WANT, Kind.REFUSAL})

_MOST_SKIPPED: Final = 512
"""Maximum number of nodes in the server's list after the server skips a level.

If the list would be longer, the server does not skip the level. The fingerprints of 512
nodes have 3 kB.
"""


class BatchedServer:
    """Answers the messages of one client on one connection.

    Args:
        tree: The messages of this side. All answers are about this tree.
    """

    def __init__(self, tree: ProllyTree, limits: Limits = DEFAULT_LIMITS) -> None:
        self._tree = tree
        self._limits = limits
        self._allowance = Allowance(limits)
        self._salt = b""
        self._root: pb.Root | None = None
        """Root to send with the next answer.

        None before the client's first message, and after the root was sent.
        """
        self._list: Sequence[Node] = ()
        """Nodes of the list that was sent last."""

    def receive(self, frame: Frame) -> Iterable[Frame]:
        """Return the answer to a frame from the client.

        Each frame of the answer is created when the caller iterates over the answer.

        Raises:
            SyncError: The client does not follow the protocol, or exceeds a limit.
        """
        return map(frame_of, self._answer(message_in(frame, expected=_EXPECTED)))

    def _answer(self, message: Message) -> Iterable[Message]:
        match message:
            case pb.Open():
                return self._opened(message)
            case pb.Step() if self._salt and message.level > 0:
                self._allowance.use(len(message.fingerprints) // FINGERPRINT_BYTES)
                ours = children_of(marked(message.differing, self._list))
                compared = compare(self._salt, ours, message.fingerprints)
                return self._step(message.level - 1, compared)
            case pb.Want() if self._salt:
                return self._items(marked(message.wanted, self._list))
        text = f"{type(message).__name__} is not expected at this point"
        raise UnexpectedMessage(text)

    def _opened(self, request: pb.Open) -> Iterable[Message]:
        if request.fan_out != self._tree.fan_out:
            reason = (
                f"this side's trees have the fan-out {self._tree.fan_out}, not "
                f"{request.fan_out}"
            )
            return [pb.Refusal(reason=reason)]
        _check_open(request)
        self._salt = request.salt
        self._allowance = Allowance(self._limits)
        tree = self._tree.between(request.start_ns, request.end_ns)
        own = tree.root
        self._root = pb.Root(root=own.merkle, height=own.level)
        level = max(request.height, own.level)
        ours: Sequence[Node] = [tree.raised(level)]
        theirs = _below_tail(request, level)
        while True:
            self._allowance.use(len(theirs) // FINGERPRINT_BYTES)
            compared = compare(self._salt, ours, theirs)
            places = range(len(theirs) // FINGERPRINT_BYTES)
            # The last child of a tail is the tail of the level below. If no other child
            # differs, compare the children of the last child next, because the request
            # contains their fingerprints.
            if not level or marked(compared.theirs, places) != [places[-1]]:
                return self._step(level, compared)
            level -= 1
            ours = children_of(compared.ours)
            theirs = _below_tail(request, level)

    def _step(self, level: int, compared: Compared) -> Iterable[Message]:
        ours, theirs = compared
        if level and ours and theirs:
            self._list = children_of(ours)
            skips_level = self._skip_level(level)
            if len(self._list) * FINGERPRINT_BYTES < self._limits.frame_bytes // 2:
                return [
                    pb.Step(
                        level=level,
                        differing=theirs,
                        fingerprints=fingerprints(self._salt, self._list),
                        root=self._take_root(),
                        skips_level=skips_level,
                    )
                ]
        # Nothing is left to compare, or the list of nodes is too long for a frame.
        return self._items(ours, level, theirs)

    def _skip_level(self, level: int) -> bool:
        """Replace the nodes of the list by their children if this saves a round trip.

        Return whether the nodes were replaced. If the client lists the leaves, the
        server can answer with messages. If the server lists the leaves, the client
        needs another round trip to request messages.
        """
        if self._root is None or level < 2 or level % 2 == 0:
            return False
        lower = children_of(self._list)
        if len(lower) > _MOST_SKIPPED:
            return False
        self._list = lower
        return True

    def _items(
        self, nodes: Sequence[Node], level: int = 0, differing: bytes = b""
    ) -> Iterator[Message]:
        keys = iter(below(nodes))
        part = list(islice(keys, ITEMS_PER_MESSAGE))
        while True:
            following = list(islice(keys, ITEMS_PER_MESSAGE))
            items = [unpack(key) for key in part]
            times_ns = [0, *(item.timestamp_ns for item in items)]
            yield pb.Items(
                level=level,
                differing=differing,
                time_differences=[later - time for time, later in pairwise(times_ns)],
                message_hashes=b"".join(item.message_hash for item in items),
                root=self._take_root(),
                has_more=bool(following),
            )
            if not following:
                return
            part, differing = following, b""

    def _take_root(self) -> pb.Root | None:
        root, self._root = self._root, None
        return root


def _below_tail(request: pb.Open, level: int) -> bytes:
    """Return the fingerprints of the tail's children on `level` in the client's tree.

    If the client's root is not above `level`, the only node is the client's root,
    raised to `level`.
    """
    above = level - request.height
    if above < 0:
        return request.tail_children[-above - 1]
    # Each level above the root has one node, which has one child. The Merkle hash of
    # such a node is the hash of its child's Merkle hash.
    return fingerprint(request.salt, hash_at(request.root, above))


def _check_open(request: pb.Open) -> None:
    if len(request.salt) != SALT_BYTES or len(request.root) != HASH_BYTES:
        text = (
            f"the salt has {len(request.salt)} bytes and the root has "
            f"{len(request.root)} bytes, but the salt must have {SALT_BYTES} bytes and "
            f"the root {HASH_BYTES} bytes"
        )
        raise BadFrame(text)
    if request.height > MAX_LEVEL + 1 or request.height != len(request.tail_children):
        text = (
            f"a tree has height {request.height} and {len(request.tail_children)} "
            "lists of tail children: the two numbers must be equal, and at "
            f"most {MAX_LEVEL + 1}"
        )
        raise BadFrame(text)
    if not all(request.tail_children):
        raise BadFrame("a tail must have at least one child")
