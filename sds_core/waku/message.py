"""The Waku message and its deterministic hash (14/WAKU2-MESSAGE)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256

import msgspec

# Autosharding computes the pubsub topic of a content topic. Sources: 23/WAKU2-TOPICS;
# 51/WAKU2-RELAY-SHARDING, "Automatic sharding"; `@waku/utils`
# src/common/sharding/topics.ts.

_DIGITS = re.compile("[0-9]+")


class BadContentTopic(ValueError):
    """A content topic cannot be assigned to a shard."""

    def __init__(self, topic: str, detail: str) -> None:
        super().__init__(
            f"content topic {topic!r:.120} {detail}: "
            "give /application/version/name/encoding"
        )
        self.topic = topic


@dataclass(frozen=True, slots=True)
class ContentTopic:
    """The parts of a content topic; none is empty.

    Attributes:
        application, version: Parts that determine the topic's shard.
        name, encoding: Parts that distinguish the content topics of one application.
    """

    application: str
    version: str
    name: str
    encoding: str


def parse_content_topic(topic: str) -> ContentTopic:
    """Parse `/application/version/name/encoding`, with or without a leading `/0`.

    The 0 is the generation of the sharding scheme; no other generation exists.

    Raises:
        BadContentTopic: The form of the topic is wrong, or its generation is not 0.
    """
    root, *parts = topic.split("/")
    if root or len(parts) not in (4, 5):
        raise BadContentTopic(topic, "has another form")
    if len(parts) == 5:
        generation = parts.pop(0)
        if not _DIGITS.fullmatch(generation):
            raise BadContentTopic(topic, "has a generation that is not a number")
        if generation.strip("0"):
            raise BadContentTopic(topic, "has a generation other than 0")
    if not all(parts):
        raise BadContentTopic(topic, "must not have empty parts")
    return ContentTopic(*parts)


def shard_of(topic: ContentTopic, shards: int) -> int:
    """Return the shard of a content topic, in [0, shards)."""
    digest = sha256((topic.application + topic.version).encode()).digest()
    return int.from_bytes(digest[-8:], "big") % shards


def pubsub_topic(cluster: int, shard: int) -> str:
    """Return the pubsub topic of a shard."""
    return f"/waku/2/rs/{cluster}/{shard}"


def autosharded_topic(content_topic: str, cluster: int, shards: int) -> str:
    """Return the pubsub topic that carries a content topic under autosharding.

    Cluster 1 is the Waku Network; it has 8 shards.

    Raises:
        BadContentTopic: The content topic does not have the form that
            `parse_content_topic` accepts.
    """
    shard = shard_of(parse_content_topic(content_topic), shards)
    return pubsub_topic(cluster, shard)


RELIABLE_CHANNEL_META = b"RELIABLE-CHANNEL-API/1"
"""Value of `meta` in messages that the Reliable Channel of logos-delivery sends.

js-waku does not set `meta`.
"""

MAX_META_BYTES = 64
"""Maximum length of `meta`, bytes (14/WAKU2-MESSAGE)."""

_UINT64 = 2**64 - 1


class WakuMessage(msgspec.Struct, frozen=True):
    """A Waku message in the form that nodes relay.

    Attributes:
        timestamp_ns: Time by the sender's clock, Unix ns, a signed 64-bit number; 0 if
            absent.
        version: 1 if the payload is encrypted by 26/WAKU2-PAYLOAD; otherwise 0.
        meta: Metadata of the application, at most 64 bytes.
        ephemeral: Whether stores should not keep the message.
    """

    payload: bytes
    content_topic: str
    timestamp_ns: int = 0
    version: int = 0
    meta: bytes = b""
    ephemeral: bool = False

    def hash_on(self, pubsub_topic: str) -> bytes:
        """Return the deterministic hash, 32 bytes, of the message on a pubsub topic."""
        return message_hash(
            pubsub_topic, self.payload, self.content_topic, self.meta, self.timestamp_ns
        )


def message_hash(
    pubsub_topic: str, payload: bytes, topic: str, meta: bytes, timestamp_ns: int
) -> bytes:
    """Return the deterministic hash of a Waku message, 32 bytes (14/WAKU2-MESSAGE).

    `topic` is the message's content topic. `payload`, `meta` and `timestamp_ns` have
    the same meaning as in `WakuMessage`.
    """
    hashed = sha256(pubsub_topic.encode())
    hashed.update(payload)
    hashed.update(topic.encode())
    hashed.update(meta)
    # A time before 1970 is negative. As in logos-delivery, the hash contains its two's
    # complement.
    hashed.update((timestamp_ns & _UINT64).to_bytes(8, "big"))
    return hashed.digest()
