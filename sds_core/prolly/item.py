"""The key of a message in a tree: the sender's time, then the message hash."""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

HASH_BYTES: Final = 32
"""Length of a deterministic message hash (14/WAKU2-MESSAGE)."""

KEY_BYTES: Final = 8 + HASH_BYTES
"""Length of an encoded key."""

TAIL_TIMESTAMP_NS: Final = 2**63 - 1
"""Time of the tail of a level; no message may have this time."""

_TIMESTAMP: Final = Struct(">Q")

TAIL_KEY: Final = _TIMESTAMP.pack(TAIL_TIMESTAMP_NS) + b"\xff" * HASH_BYTES
"""Encoded key of the tail; it is greater than all keys of messages."""


class BadItem(ValueError):
    """A tree cannot contain the message; the error has the value."""


class Item(NamedTuple):
    """A message in a tree; items sort like their encoded keys.

    Attributes:
        timestamp_ns: Sender's time, Unix ns, in [1, `TAIL_TIMESTAMP_NS`); the time 0
            marks an absent reference.
        message_hash: Deterministic message hash, 32 bytes.
    """

    timestamp_ns: int
    message_hash: bytes


def pack(item: Item) -> bytes:
    """Return the key of an item: the time as 8 bytes big-endian, then the hash.

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
    """Return the item of an encoded key; the tail has the time `TAIL_TIMESTAMP_NS`."""
    return Item(_TIMESTAMP.unpack_from(key)[0], key[8:])


def first_key_at(timestamp_ns: int) -> bytes:
    """Return the smallest key of messages at or after a time."""
    return _TIMESTAMP.pack(min(max(timestamp_ns, 0), TAIL_TIMESTAMP_NS)) + bytes(
        HASH_BYTES
    )
