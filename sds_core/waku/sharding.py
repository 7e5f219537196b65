"""Which pubsub topic carries a content topic.

Sources: 23/WAKU2-TOPICS; 51/WAKU2-RELAY-SHARDING, "Automatic sharding"; `@waku/utils`
src/common/sharding/topics.ts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256

_DIGITS = re.compile("[0-9]+")


class BadContentTopic(ValueError):
    """A content topic cannot be assigned to a shard.

    Attributes:
        topic: The content topic.
    """

    def __init__(self, topic: str, detail: str) -> None:
        super().__init__(
            f"content topic {topic!r:.120} {detail}: "
            "give /application/version/name/encoding"
        )
        self.topic = topic


@dataclass(frozen=True, slots=True)
class ContentTopic:
    """A content topic in its parts; none is empty.

    Attributes:
        application, version: They determine its shard.
        name, encoding: They distinguish topics of one application.
    """

    application: str
    version: str
    name: str
    encoding: str


def parse_content_topic(topic: str) -> ContentTopic:
    """Read `/application/version/name/encoding`, or the same after `/0`.

    The number in front is the generation of the sharding; 0 is the only one there is.

    Raises:
        BadContentTopic: It has another form, or another generation.
    """
    root, *parts = topic.split("/")
    if root or len(parts) not in (4, 5):
        raise BadContentTopic(topic, "has another form")
    if len(parts) == 5:
        generation = parts.pop(0)
        if not _DIGITS.fullmatch(generation):
            raise BadContentTopic(topic, "has no number as its generation")
        if generation.strip("0"):
            raise BadContentTopic(topic, "is of a generation that does not exist")
    if not all(parts):
        raise BadContentTopic(topic, "has an empty part")
    return ContentTopic(*parts)


def shard_of(topic: ContentTopic, shards: int) -> int:
    """Return the shard of a content topic, in [0, shards).

    Args:
        topic: The content topic.
        shards: How many the cluster has, at least 1; 8 in the Waku Network.
    """
    digest = sha256((topic.application + topic.version).encode()).digest()
    return int.from_bytes(digest[-8:], "big") % shards


def pubsub_topic(cluster: int, shard: int) -> str:
    """Return the pubsub topic of a shard."""
    return f"/waku/2/rs/{cluster}/{shard}"


def autosharded_topic(content_topic: str, cluster: int, shards: int) -> str:
    """Return the pubsub topic that carries a content topic under autosharding.

    Args:
        content_topic: The content topic.
        cluster: The cluster; 1 is the Waku Network.
        shards: How many the cluster has, at least 1; 8 in the Waku Network.

    Raises:
        BadContentTopic: The content topic has another form.
    """
    shard = shard_of(parse_content_topic(content_topic), shards)
    return pubsub_topic(cluster, shard)
