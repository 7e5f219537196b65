"""The parts of a Waku message that the monitor sees around a simulated frame."""

from __future__ import annotations

PUBSUB_TOPIC = "/waku/2/rs/1/0"
META = b""


def content_topic(channel_id: str) -> str:
    """Return the topic that a simulated channel is sent on (23/WAKU2-TOPICS)."""
    return f"/sds-simulator/1/{channel_id}/proto"
