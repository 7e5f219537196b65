"""Decides which Waku messages are mirrored, and which key their records get."""

from __future__ import annotations

import enum

from sds_core.waku.message import RELIABLE_CHANNEL_META, WakuMessage
from sds_core.wire import UndecodableFrame, decode
from sds_core.wire.segment_header import read_segment_header


class Skip(enum.StrEnum):
    """Why a message is not mirrored.

    `SEGMENT` and `NOT_SDS` occur only if the mirror reads whole shards.
    """

    OTHER_TOPIC = "other_topic"
    """The message's content topic is not selected."""
    SEGMENT = "segment"
    """The message is a segment of a larger payload, not an SDS message by itself."""
    NOT_SDS = "not_sds"
    """The message is neither an SDS message nor a segment."""


class Selection:
    """Selects messages by content topic, or by their content.

    If content topics are given, all messages of these topics are mirrored. Messages
    that cannot be decoded become dead letters later.

    If no content topics are given, the mirror reads whole shards. It then selects SDS
    messages, and messages whose `meta` is the mark of the Reliable Channel API.
    """

    def __init__(self, content_topics: frozenset[str] = frozenset()) -> None:
        self._content_topics = content_topics

    def skipped(self, message: WakuMessage, channel: str | None) -> Skip | None:
        """Return why a message is not mirrored; None if it is mirrored."""
        if self._content_topics:
            wanted = message.content_topic in self._content_topics
            return None if wanted else Skip.OTHER_TOPIC
        if channel is not None or message.meta == RELIABLE_CHANNEL_META:
            return None
        is_segment = read_segment_header(message.payload) is not None
        return Skip.SEGMENT if is_segment else Skip.NOT_SDS


def channel_of(payload: bytes) -> str | None:
    """Return the channel id of an SDS message; None for other payloads."""
    try:
        return decode(payload).channel_id
    except UndecodableFrame:
        return None
