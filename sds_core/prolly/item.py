"""The key of a message in a tree: the sender's time, then the message hash."""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

HASH_BYTES: Final = 32
"""Length of a deterministic message hash (14/WAKU2-MESSAGE), bytes."""

KEY_BYTES: Final = 8 + HASH_BYTES
"""Length of an encoded key, bytes."""

TAIL_TIMESTAMP_NS: Final = 2**63 - 1
"""The time in the key of every tail, Unix ns. No message may have this time."""

_TIMESTAMP: Final = Struct(">Q")

TAIL_KEY: Final = _TIMESTAMP.pack(TAIL_TIMESTAMP_NS) + b"\xff" * HASH_BYTES
"""Encoded key of every tail. It is greater than the key of any message."""


class BadItem(ValueError):
    """A tree cannot contain a message with this time or hash.

    The error's text has the invalid time, or the invalid length of the hash.
    """


class Item(NamedTuple):
    """A message in a tree. Items and their encoded keys have the same sort order.

    Attributes:
        timestamp_ns: Sender's time, Unix ns, in [1, `TAIL_TIMESTAMP_NS`). The time 0 is
            not allowed, because in a reference to a node, it means "no node".
        message_hash: Deterministic message hash, 32 bytes.
    """

    timestamp_ns: int
    message_hash: bytes


def pack(item: Item) -> bytes:
    """Return an item's encoded key: its time (8 bytes, big-endian), then its hash.

    Raises:
        BadItem: The time is out of range, or the hash does not have `HASH_BYTES` bytes.
    """
    if not 0 < item.timestamp_ns < TAIL_TIMESTAMP_NS:
        message = (
            f"the time {item.timestamp_ns} ns is outside the range of times in a tree"
        )
        raise BadItem(message)
    if len(item.message_hash) != HASH_BYTES:
        message = (
            f"a message hash must have {HASH_BYTES} bytes, not {len(item.message_hash)}"
        )
        raise BadItem(message)
    return _TIMESTAMP.pack(item.timestamp_ns) + item.message_hash


def unpack(key: bytes) -> Item:
    """Return the item whose encoded key is `key`; for `TAIL_KEY`, the tail's item."""
    return Item(_TIMESTAMP.unpack_from(key)[0], key[8:])


def first_key_at(timestamp_ns: int) -> bytes:
    """Return the smallest possible key of a message at or after a time."""
    return _TIMESTAMP.pack(min(max(timestamp_ns, 0), TAIL_TIMESTAMP_NS)) + bytes(
        HASH_BYTES
    )
