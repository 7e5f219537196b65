"""Which Waku messages are mirrored, and under which key."""

from __future__ import annotations

import enum

from sds_core.waku.message import RELIABLE_CHANNEL_META, WakuMessage
from sds_core.wire import UndecodableFrame, decode
from sds_core.wire.segment_header import read_segment_header


class Skip(enum.StrEnum):
    """Why a message is not mirrored."""

    OTHER_TOPIC = "other_topic"
    """Its content topic is not among those asked for."""
    SEGMENT = "segment"
    """It is one segment of something larger: no SDS message by itself."""
    NOT_SDS = "not_sds"
    """It is no SDS message, on a shard where anything may pass."""


class Selection:
    """Chooses messages by content topic, or by what they are.

    With content topics, all that is sent on them is mirrored: what cannot be decoded
    there is worth a dead letter. Without, a whole shard is listened to, and only what
    is an SDS message, or is marked as one by the Reliable Channel API, is meant.

    Args:
        content_topics: Those asked for; empty for all.
    """

    def __init__(self, content_topics: frozenset[str] = frozenset()) -> None:
        self._content_topics = content_topics

    def skipped(self, message: WakuMessage, channel: str | None) -> Skip | None:
        """Why a message is left out; None if it is mirrored.

        Args:
            message: The message.
            channel: As `channel_of` gives it.
        """
        if self._content_topics:
            wanted = message.content_topic in self._content_topics
            return None if wanted else Skip.OTHER_TOPIC
        if channel is not None or message.meta == RELIABLE_CHANNEL_META:
            return None
        is_segment = read_segment_header(message.payload) is not None
        return Skip.SEGMENT if is_segment else Skip.NOT_SDS


def channel_of(payload: bytes) -> str | None:
    """Channel id of an SDS message; None if it is none."""
    try:
        return decode(payload).channel_id
    except UndecodableFrame:
        return None
