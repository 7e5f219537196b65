"""Waku messages in the records of a mirror (docs/records.md)."""

from __future__ import annotations

from binascii import unhexlify
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sds_core.observer.record import RawRecord
from sds_core.prolly.item import Item, pack

_MOST_DIGITS = 19


class MirroredMessage(NamedTuple):
    """A message that a mirror wrote as a record.

    `channel` is the key of the record. If the record lacks a topic or the key, the text
    is empty. `is_ephemeral` is needed because store nodes keep no ephemeral messages.
    """

    item: Item
    partition: int
    offset: int
    pubsub_topic: str
    content_topic: str
    is_ephemeral: bool
    channel: str


class Unidentified(ValueError):
    """A record lacks a valid hash or a valid time of its message."""


def mirrored_message(record: RawRecord) -> MirroredMessage | None:
    """Return the message of a record; None for a heartbeat.

    Raises:
        Unidentified: The record does not identify its message.
    """
    # If a header is repeated, its last value counts.
    headers = dict(record.headers)
    if headers.get("kind") == b"heartbeat":
        return None
    message_hash = headers.get("waku-hash") or b""
    time = headers.get("waku-timestamp") or b""
    is_time = time.isdigit() and len(time) <= _MOST_DIGITS
    if not (message_hash.startswith(b"0x") and is_time):
        raise Unidentified
    try:
        item = Item(int(time), unhexlify(message_hash[2:]))
        pack(item)
    except ValueError as error:
        raise Unidentified from error
    return MirroredMessage(
        item,
        record.partition,
        record.offset,
        _text(headers, "pubsub-topic"),
        _text(headers, "content-topic"),
        headers.get("ephemeral") == b"true",
        (record.key or b"").decode(errors="replace"),
    )


def _text(headers: Mapping[str, bytes | None], name: str) -> str:
    return (headers.get(name) or b"").decode(errors="replace")


Topics = Mapping[str, Sequence[str]]
"""For each selected pubsub topic, the selected content topics. An empty sequence
selects all content topics of the pubsub topic; an empty mapping selects everything."""


def is_selected(message: MirroredMessage, topics: Topics) -> bool:
    """Return whether an audit of these topics includes a message."""
    if not topics:
        return True
    content_topics = topics.get(message.pubsub_topic)
    if content_topics is None:
        return False
    return not content_topics or message.content_topic in content_topics
