"""Waku messages as the REST API of a node gives them, made into records.

Understood are a message of relay or filter, an entry of the store or of the messaging
API around one, a whole answer of the store, and a list of any of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

import msgspec

from connectors.kafka.record import RawRecord
from sds_core.waku import WakuMessage
from sds_core.wire import UndecodableFrame, decode

_NS_PER_MS = 1_000_000
_HASH = re.compile("0x[0-9a-fA-F]{64}")
_NOWHERE = -1
_ABSENT = msgspec.Raw()


class NotWaku(ValueError):
    """There is no Waku message; the message is empty if it does not even look so."""


class _Message(msgspec.Struct, rename="camel"):
    """A message, with what relay does not tell and a store does."""

    payload: bytes
    content_topic: str
    timestamp: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
    meta: bytes | None = None
    ephemeral: bool | None = None
    pubsub_topic: str | None = None
    message_hash: str | None = None


class _Shape(msgspec.Struct, rename="camel"):
    """What tells the forms of a JSON object apart."""

    payload: msgspec.Raw = _ABSENT
    message: msgspec.Raw = _ABSENT
    messages: list[msgspec.Raw] | None = None
    pubsub_topic: str | None = None
    message_hash: str | None = None


_SHAPE = msgspec.json.Decoder(_Shape)
_MESSAGE = msgspec.json.Decoder(_Message)
_LIST = msgspec.json.Decoder(list[msgspec.Raw])


def read_waku(text: bytes) -> Iterator[RawRecord]:
    """Read the Waku messages of some JSON, in its order.

    The key is the channel of the frame inside; a payload that is no frame has none. The
    time is the sender's. None of them has a partition: 0 stands for it.

    Raises:
        NotWaku: There are none, or one cannot be used.
    """
    try:
        if text.lstrip().startswith(b"["):
            for element in _LIST.decode(text):
                yield from read_waku(bytes(element))
            return
        shape = _SHAPE.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise NotWaku from None
    if shape.messages is not None:
        for element in shape.messages:
            yield from read_waku(bytes(element))
        return
    raw = text if shape.payload != _ABSENT else shape.message
    if raw == _ABSENT:
        if shape.message_hash is not None:
            message = "a hash without a message: ask the store with includeData=true"
            raise NotWaku(message)
        raise NotWaku
    try:
        told = _MESSAGE.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"a Waku message cannot be read: {error}"
        raise NotWaku(message) from error
    yield _record(
        told,
        told.pubsub_topic or shape.pubsub_topic,
        told.message_hash or shape.message_hash,
    )


def _record(
    told: _Message, pubsub_topic: str | None, message_hash: str | None
) -> RawRecord:
    """The record that a tap would have written (docs/records.md)."""
    message = WakuMessage(
        told.payload, told.content_topic, told.timestamp, meta=told.meta or b""
    )
    headers = [
        ("source", b"replay"),
        ("waku-timestamp", str(told.timestamp).encode()),
        ("content-topic", told.content_topic.encode()),
    ]
    # The node's word counts only where the hash cannot be computed.
    if pubsub_topic is not None:
        message_hash = f"0x{message.hash_on(pubsub_topic).hex()}"
        headers.append(("pubsub-topic", pubsub_topic.encode()))
    if message_hash is not None and _HASH.fullmatch(message_hash):
        headers.append(("waku-hash", message_hash.encode()))
    if message.meta:
        headers.append(("meta", message.meta))
    if told.ephemeral is not None:
        headers.append(("ephemeral", b"true" if told.ephemeral else b"false"))
    try:
        key = decode(message.payload).channel_id.encode()
    except UndecodableFrame:
        key = None
    return RawRecord(
        0, _NOWHERE, told.timestamp // _NS_PER_MS, key, message.payload, tuple(headers)
    )
