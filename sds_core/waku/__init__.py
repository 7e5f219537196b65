"""The Waku message around a frame, and the topics that it is relayed on."""

from sds_core.waku.message import (
    MAX_META_BYTES,
    RELIABLE_CHANNEL_META,
    BadContentTopic,
    ContentTopic,
    WakuMessage,
    autosharded_topic,
    message_hash,
    parse_content_topic,
    pubsub_topic,
    shard_of,
)

__all__ = [
    "MAX_META_BYTES",
    "RELIABLE_CHANNEL_META",
    "BadContentTopic",
    "ContentTopic",
    "WakuMessage",
    "autosharded_topic",
    "message_hash",
    "parse_content_topic",
    "pubsub_topic",
    "shard_of",
]
