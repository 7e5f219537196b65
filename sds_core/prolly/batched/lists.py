"""Represents lists of nodes in protocol messages, by fingerprints and bitmaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import accumulate, pairwise
from typing import Final, NamedTuple, TypeVar

from sds_core.prolly.errors import BadFrame, BadNode
from sds_core.prolly.item import HASH_BYTES, Item
from sds_core.prolly.node import Node, keys_below
from sds_core.prolly.proto import batched_sync_pb2 as pb

FINGERPRINT_BYTES: Final = 6
"""Length of a fingerprint, bytes.

Two different nodes have equal fingerprints with a probability of 2**-48. If equal
fingerprints make a result wrong, the client detects the error, because it compares the
complete root hash.
"""

SALT_BYTES: Final = 16

_T = TypeVar("_T")


class Compared(NamedTuple):
    """Differences between this side's list of nodes and the other side's list.

    Attributes:
        ours: Nodes in this side's list that the other side's list lacks.
        theirs: Bitmap with one bit for each node in the other side's list. A bit is 1
            if this side's list lacks the node.
    """

    ours: Sequence[Node]
    theirs: bytes


def fingerprint(salt: bytes, merkle: bytes) -> bytes:
    """Return the fingerprint of a node whose Merkle hash is `merkle`."""
    return sha256(salt + merkle).digest()[:FINGERPRINT_BYTES]


def fingerprints(salt: bytes, nodes: Iterable[Node]) -> bytes:
    """Return the fingerprints of `nodes`, joined into one byte string."""
    return b"".join(fingerprint(salt, node.merkle) for node in nodes)


def compare(salt: bytes, nodes: Sequence[Node], theirs: bytes) -> Compared:
    """Compare this side's `nodes` with the other side's nodes.

    `theirs` has the fingerprints of the other side's nodes.

    Raises:
        BadFrame: The length of `theirs` is not a multiple of `FINGERPRINT_BYTES`.
    """
    if len(theirs) % FINGERPRINT_BYTES:
        text = (
            f"a list of fingerprints has {len(theirs)} bytes, which is not a multiple "
            f"of {FINGERPRINT_BYTES}"
        )
        raise BadFrame(text)
    starts = range(0, len(theirs), FINGERPRINT_BYTES)
    their_list = [theirs[at : at + FINGERPRINT_BYTES] for at in starts]
    our_list = [fingerprint(salt, node.merkle) for node in nodes]
    their_set, our_set = set(their_list), set(our_list)
    return Compared(
        [
            node
            for node, one in zip(nodes, our_list, strict=True)
            if one not in their_set
        ],
        bitmap([one not in our_set for one in their_list]),
    )


def bitmap(marks: Sequence[bool]) -> bytes:
    """Return a bitmap with one bit for each mark, without zero bytes at its end."""
    number = int("".join("01"[mark] for mark in reversed(marks)) or "0", 2)
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


def marked(marks: bytes, things: Sequence[_T]) -> list[_T]:
    """Return the `things` whose bits are 1 in the bitmap `marks`.

    Raises:
        BadFrame: The bitmap has a 1 beyond the bit of the last thing.
    """
    number = int.from_bytes(marks, "little")
    # Check the length first: as text, a long bitmap would need 8 times the memory.
    if (last := number.bit_length()) > len(things):
        text = f"a bitmap marks node {last} of a list that has only {len(things)} nodes"
        raise BadFrame(text)
    bits = bin(number)[:1:-1]
    return [thing for bit, thing in zip(bits, things, strict=False) if bit == "1"]


def below(nodes: Iterable[Node]) -> Iterable[bytes]:
    """Return the encoded keys of all messages below the given nodes."""
    return (key for node in nodes for key in keys_below(node))


def tail_children(root: Node) -> list[Sequence[Node]]:
    """Return, for each level above 0, the children of the level's last node (tail).

    The children of the root are first.
    """
    lists = []
    while root.level:
        lists.append(root.children)
        root = root.children[-1]
    return lists


def read_items(message: pb.Items, start_ns: int, end_ns: int) -> list[Item]:
    """Return the items in a protocol message.

    The items' times must be in [start_ns, end_ns), Unix ns.

    Raises:
        BadFrame: The message does not have exactly one hash for each time.
        BadNode: Items are repeated or not in order, or their times are out of range.
    """
    hashes = message.message_hashes
    if len(hashes) != HASH_BYTES * len(message.time_differences):
        text = (
            f"a message has {len(message.time_differences)} timestamps and "
            f"{len(hashes)} bytes of hashes, but must have a hash of {HASH_BYTES} "
            "bytes for each timestamp"
        )
        raise BadFrame(text)
    times_ns = list(accumulate(message.time_differences))
    starts = range(0, len(hashes), HASH_BYTES)
    items = [
        Item(time_ns, hashes[at : at + HASH_BYTES])
        for time_ns, at in zip(times_ns, starts, strict=True)
    ]
    for before, item in pairwise(items):
        if item <= before:
            text = (
                f"message {item.message_hash.hex()} is in the wrong place: messages "
                "must be unique, and sorted by time, then by hash"
            )
            raise BadNode(text)
    if items and not (start_ns <= times_ns[0] <= times_ns[-1] < end_ns):
        text = (
            f"messages have times from {times_ns[0]} to {times_ns[-1]} ns, but the "
            f"compared range is [{start_ns}, {end_ns}) ns"
        )
        raise BadNode(text)
    return items
