"""Which messages of a mirror an audit compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sds_core.audit.mirrored import MirroredMessage

Topics = Mapping[str, Sequence[str]]
"""Pubsub topic -> its content topics, none for all; an empty mapping selects all."""


def is_selected(message: MirroredMessage, topics: Topics) -> bool:
    """Whether an audit of these topics compares a message."""
    if not topics:
        return True
    content_topics = topics.get(message.pubsub_topic)
    if content_topics is None:
        return False
    return not content_topics or message.content_topic in content_topics
