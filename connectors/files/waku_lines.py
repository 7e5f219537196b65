"""Converts JSON of a Waku node's REST API to records (docs/files.md).

Accepts a message of Waku's relay or filter protocol, a JSON array of such messages (a
page), a message of the store protocol, and a whole answer of a store.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from connectors.kafka.producer import waku_headers
from connectors.untrusted_json import UNREADABLE
from connectors.waku_rest.answers import (
    Undecodables,
    hash_of,
    read_page,
    read_store_answer,
)
from sds_core.observer.record import RawRecord
from sds_core.waku import WakuMessage
from sds_core.wire import UndecodableFrame, decode

_NS_PER_MS = 1_000_000
_NO_OFFSET = -1
_STATUS_OK = 200
_ABSENT = msgspec.Raw()


class NotWaku(ValueError):
    """The text holds no Waku message, or its Waku messages cannot be used.

    Attributes:
        detail: Why the Waku messages cannot be used; empty if the text holds no Waku
            message.
    """

    def __init__(self, detail: str = "") -> None:
        self.detail = detail
        super().__init__(detail)


class _Shape(msgspec.Struct, rename="camel"):
    payload: msgspec.Raw = _ABSENT
    message: msgspec.Raw = _ABSENT
    messages: msgspec.Raw = _ABSENT
    message_hash: str | None = None
    pubsub_topic: str | None = None


_SHAPE = msgspec.json.Decoder(_Shape)


def read_waku(text: bytes) -> Iterator[RawRecord]:
    """Yield a record for each Waku message in a JSON text, in the order of the text.

    A record's key is the id of the channel that the frame names; None if the payload is
    not a frame. The record time is the time that the sender set in the message. The
    partition is 0, because Waku has no partitions.

    Raises:
        NotWaku: The text holds no Waku message, or a Waku message cannot be used.
    """
    text = text.strip()
    try:
        shape = _Shape() if text.startswith(b"[") else _SHAPE.decode(text)
    except UNREADABLE:
        raise NotWaku from None
    if shape.messages != _ABSENT:
        yield from _of_store(text)
    elif shape.message != _ABSENT or (shape.message_hash and shape.payload == _ABSENT):
        yield from _of_store(b'{"statusCode":200,"messages":[%b]}' % text)
    elif shape.payload != _ABSENT:
        (message,) = _of_relay(b"[%b]" % text)
        topic = shape.pubsub_topic or None
        if topic is None:
            message_hash = _given_hash(shape.message_hash)
        else:
            message_hash = f"0x{message.hash_on(topic).hex()}"
        yield _record(message, topic, message_hash)
    elif text.startswith(b"["):
        for message in _of_relay(text):
            yield _record(message, None, None)
    else:
        raise NotWaku


def _of_relay(text: bytes) -> list[WakuMessage]:
    try:
        page = read_page(text)
    except UNREADABLE:
        raise NotWaku from None
    if page.broken_off:
        detail = f"a list of Waku messages is incomplete: {page.broken_off}"
        raise NotWaku(detail)
    _refuse_undecodable(page.undecodable)
    return page.messages


def _of_store(text: bytes) -> Iterator[RawRecord]:
    try:
        answer = read_store_answer(text)
        page = answer.page(None)
    except UNREADABLE as error:
        detail = f"an answer of a store cannot be read: {error}"
        raise NotWaku(detail) from error
    if answer.status_code != _STATUS_OK:
        detail = f"the store answered {answer.status_code} {answer.status_desc!r:.80}"
        raise NotWaku(detail)
    _refuse_undecodable(page.undecodable)
    for stored in page.messages:
        if stored.message is None:
            detail = (
                "the answer has a hash, but not the message with this hash: query the "
                "store with includeData=true"
            )
            raise NotWaku(detail)
        message_hash = f"0x{stored.hash.hex()}"
        yield _record(stored.message, stored.pubsub_topic, message_hash)


def _given_hash(text: str | None) -> str | None:
    try:
        return f"0x{hash_of(text).hex()}" if text else None
    except ValueError as error:
        detail = f"a Waku message cannot be read: {error}"
        raise NotWaku(detail) from error


def _refuse_undecodable(undecodable: Undecodables) -> None:
    if undecodable.count:
        detail = f"a Waku message cannot be read: {undecodable.reason}"
        raise NotWaku(detail)


def _record(
    message: WakuMessage, pubsub_topic: str | None, message_hash: str | None
) -> RawRecord:
    if message.timestamp_ns <= 0:
        detail = (
            f"a Waku message has timestamp {message.timestamp_ns}, but a record "
            "needs the time at which the message was sent"
        )
        raise NotWaku(detail)
    headers = waku_headers(message, "replay", pubsub_topic, message_hash)
    try:
        key = decode(message.payload).channel_id.encode()
    except UndecodableFrame:
        key = None
    time_ms = message.timestamp_ns // _NS_PER_MS
    return RawRecord(0, _NO_OFFSET, time_ms, key, message.payload, headers)
