"""Parses answers of a node's REST API (JSON; logos-delivery, rest_api).

If a message in a page is invalid, it is counted, and the other messages of the page are
parsed. If the bytes are not an answer of the API, functions raise one of the errors in
`UNREADABLE`.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as BinasciiError
from dataclasses import dataclass
from typing import Annotated

import msgspec

from connectors.untrusted_json import UNREADABLE
from connectors.waku_rest.json_list import check_length, elements
from sds_core.waku import WakuMessage

_HASH_BYTES = 32
_HEX_HASH = re.compile("0x[0-9a-fA-F]{64}")


@dataclass(slots=True)
class Undecodables:
    """The number of invalid messages in a page, and the text of the first error."""

    count: int = 0
    reason: str = ""

    def add(self, error: Exception) -> None:
        """Count one more invalid message."""
        self.count += 1
        self.reason = self.reason or str(error)


@dataclass(frozen=True, slots=True)
class Page:
    """The messages from a node's cache of a topic; the node has deleted them.

    Messages are in no particular order. If the end of the page is missing, `broken_off`
    has the reason; otherwise, `broken_off` is empty.
    """

    messages: list[WakuMessage]
    undecodable: Undecodables
    broken_off: str = ""


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message of a store. `message` is None if only hashes were requested.

    If pubsub topic and message are known, `hash` (32 bytes) is computed from them.
    Otherwise, `hash` comes from the answer. `pubsub_topic` is None if neither the
    answer nor the query contains it.
    """

    hash: bytes
    pubsub_topic: str | None
    message: WakuMessage | None


@dataclass(frozen=True, slots=True)
class StorePage:
    """One page of a store's answer, oldest message first.

    `cursor` (32 bytes) selects the next page; None if this page is the last.
    """

    messages: list[StoredMessage]
    cursor: bytes | None
    undecodable: Undecodables


def read_page(body: bytes) -> Page:
    """Parse a page of relay or filter; the page's end may be missing.

    Raises:
        ValueError: The bytes are not a page, or end within its first message.
    """
    messages: list[WakuMessage] = []
    undecodable = Undecodables()
    broken_off = ""
    try:
        for raw in elements(body):
            try:
                messages.append(_MESSAGE.decode(check_length(raw)).message())
            except UNREADABLE as error:
                undecodable.add(error)
    except ValueError as error:
        if not (messages or undecodable.count):
            raise
        broken_off = str(error)
    return Page(messages, undecodable, broken_off)


class StoreAnswer(msgspec.Struct, rename="camel"):
    """The answer of a store; its messages are not parsed yet.

    `status_code` has the meaning of an HTTP status. `pagination_cursor` is the hash of
    the page's last message in the order of the query; on the last page, it is None or
    empty.
    """

    status_code: int
    status_desc: str = ""
    messages: msgspec.Raw = msgspec.Raw(b"[]")
    pagination_cursor: str | None = None

    def page(self, requested_topic: str | None) -> StorePage:
        """Parse the messages of the answer.

        `requested_topic` is the query's pubsub topic. It is used if the answer contains
        no pubsub topic, for example because only hashes were requested.

        Raises:
            ValueError: The cursor is not a hash, or the messages are not a list.
        """
        cursor = hash_of(self.pagination_cursor) if self.pagination_cursor else None
        messages: list[StoredMessage] = []
        undecodable = Undecodables()
        for raw in elements(bytes(self.messages)):
            try:
                messages.append(_stored_message(raw, requested_topic))
            except UNREADABLE as error:
                undecodable.add(error)
        return StorePage(messages, cursor, undecodable)


def read_store_answer(body: bytes) -> StoreAnswer:
    """Parse a store's answer, except for the messages in it."""
    return _STORE_ANSWER.decode(body)


def read_subscription_status(body: bytes) -> str:
    """Parse the answer to a filter subscription; return its status text."""
    return _FILTER_ANSWER.decode(body).status_desc


class _Message(msgspec.Struct, rename="camel"):
    """A message of relay, filter or store; null fields count as absent."""

    payload: bytes
    content_topic: str
    timestamp: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    version: Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)] | None = None
    meta: bytes | None = None
    ephemeral: bool | None = None

    def message(self) -> WakuMessage:
        return WakuMessage(
            self.payload,
            self.content_topic,
            self.timestamp or 0,
            self.version or 0,
            self.meta or b"",
            bool(self.ephemeral),
        )


class _Stored(msgspec.Struct, rename="camel"):
    message_hash: str = ""
    message: _Message | None = None
    pubsub_topic: str | None = None


class _FilterAnswer(msgspec.Struct, rename="camel"):
    status_desc: str = ""


_MESSAGE = msgspec.json.Decoder(_Message)
_STORED = msgspec.json.Decoder(_Stored)
_STORE_ANSWER = msgspec.json.Decoder(StoreAnswer)
_FILTER_ANSWER = msgspec.json.Decoder(_FilterAnswer)


def _stored_message(raw: bytes, requested_topic: str | None) -> StoredMessage:
    stored = _STORED.decode(check_length(raw))
    topic = stored.pubsub_topic or requested_topic
    message = stored.message.message() if stored.message else None
    if message is None or topic is None:
        return StoredMessage(hash_of(stored.message_hash), topic, message)
    return StoredMessage(message.hash_on(topic), topic, message)


def hash_of(text: str) -> bytes:
    """Decode a hash of 32 bytes; it is hexadecimal, but older nodes send base64.

    Raises:
        ValueError: The text is neither.
    """
    if _HEX_HASH.fullmatch(text):
        return bytes.fromhex(text[2:])
    try:
        decoded = b64decode(text, validate=True)
    except (BinasciiError, ValueError):
        decoded = b""
    if len(decoded) != _HASH_BYTES:
        message = f"{text!r:.80} is not a hash of {_HASH_BYTES} bytes"
        raise ValueError(message)
    return decoded
