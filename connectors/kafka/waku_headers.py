"""The headers that a record gets from the Waku message it came in (contract, 1)."""

from __future__ import annotations

from sds_core.waku import WakuMessage

Headers = tuple[tuple[str, bytes], ...]

_GREATEST_TIMESTAMP_NS = 2**63 - 1


def waku_headers(
    message: WakuMessage,
    source: str,
    pubsub_topic: str | None,
    message_hash: str | None,
) -> Headers:
    """All but those of the tap itself; what is not known is left out.

    Args:
        message: The message.
        source: How it came, as the contract names it.
        pubsub_topic: Where it was relayed; None if that is not known.
        message_hash: `0x` and 64 hex digits; None if it is not known.
    """
    headers: Headers = (
        ("source", source.encode()),
        ("content-topic", message.content_topic.encode()),
        ("ephemeral", b"true" if message.ephemeral else b"false"),
    )
    if message_hash is not None:
        headers += (("waku-hash", message_hash.encode()),)
    if pubsub_topic is not None:
        headers += (("pubsub-topic", pubsub_topic.encode()),)
    if 0 < message.timestamp_ns <= _GREATEST_TIMESTAMP_NS:
        headers += (("waku-timestamp", str(message.timestamp_ns).encode()),)
    if message.meta:
        headers += (("meta", message.meta),)
    return headers
