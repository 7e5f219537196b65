"""Record headers that come from the Waku message (docs/records.md)."""

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
    """Return all headers but the tap's own; unknown ones are left out.

    Args:
        message: The Waku message.
        source: Value of header `source`.
        pubsub_topic: Pubsub topic that it was relayed on; None if unknown.
        message_hash: `0x` and 64 hexadecimal digits; None if unknown.
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
