"""Ids of messages, under which an application hears of them."""

from __future__ import annotations

from hashlib import sha256
from random import Random


def new_message_id(
    channel_id: str, sender_id: str, payload: bytes, now_ms: int, random: Random
) -> str:
    """Return an id by the payload, which equal payloads do not share.

    Args:
        channel_id: Id of the channel.
        sender_id: Id of the sender.
        payload: The whole payload, before segmentation.
        now_ms: Unix ms.
        random: Source of what distinguishes equal payloads.
    """
    hashed = sha256()
    for part in (
        channel_id.encode(),
        sender_id.encode(),
        now_ms.to_bytes(8, "big"),
        random.getrandbits(128).to_bytes(16, "big"),
        payload,
    ):
        hashed.update(len(part).to_bytes(8, "big"))
        hashed.update(part)
    return hashed.hexdigest()
