"""The Waku message and its deterministic hash (14/WAKU2-MESSAGE)."""

from __future__ import annotations

from hashlib import sha256

import msgspec

RELIABLE_CHANNEL_META = b"RELIABLE-CHANNEL-API/1"
"""`meta` of messages from the Reliable Channel of logos-delivery; js-waku sets none."""

MAX_META_BYTES = 64
"""Longest `meta` (14/WAKU2-MESSAGE)."""

_UINT64 = 2**64 - 1


class WakuMessage(msgspec.Struct, frozen=True):
    """A message as nodes relay it.

    Attributes:
        payload: Content of the message.
        content_topic: Topic by which applications select messages.
        timestamp_ns: Time by the sender's clock, Unix ns, in [-2**63, 2**63); 0 if
            absent.
        version: 0, or 1 if the payload is encrypted by 26/WAKU2-PAYLOAD.
        meta: Metadata of the application, at most 64 bytes.
        ephemeral: Whether store nodes should not store it.
    """

    payload: bytes
    content_topic: str
    timestamp_ns: int = 0
    version: int = 0
    meta: bytes = b""
    ephemeral: bool = False

    def hash_on(self, pubsub_topic: str) -> bytes:
        """Return the deterministic hash on a pubsub topic, 32 bytes."""
        return message_hash(
            pubsub_topic,
            self.payload,
            self.content_topic,
            self.meta,
            self.timestamp_ns,
        )


def message_hash(
    pubsub_topic: str, payload: bytes, topic: str, meta: bytes, timestamp_ns: int
) -> bytes:
    """Return the deterministic hash of a Waku message, 32 bytes (14/WAKU2-MESSAGE).

    Args:
        pubsub_topic: where it is relayed.
        payload: its content.
        topic: its content topic.
        meta: its meta attribute, at most 64 bytes.
        timestamp_ns: its sender's time, Unix ns.
    """
    hashed = sha256(pubsub_topic.encode())
    hashed.update(payload)
    hashed.update(topic.encode())
    hashed.update(meta)
    # A time before 1970 is hashed in two's complement, as logos-delivery casts it.
    hashed.update((timestamp_ns & _UINT64).to_bytes(8, "big"))
    return hashed.digest()
