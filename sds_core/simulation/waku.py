"""The Waku message around a frame, as far as the monitor hears of it."""

from __future__ import annotations

from hashlib import sha256

PUBSUB_TOPIC = "/waku/2/rs/1/0"
META = b""


def content_topic(channel_id: str) -> str:
    """Return the topic that a simulated channel is sent on (23/WAKU2-TOPICS)."""
    return f"/sds-simulator/1/{channel_id}/proto"


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
    hashed.update(timestamp_ns.to_bytes(8, "big"))
    return hashed.digest()
