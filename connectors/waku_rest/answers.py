"""Parses answers of a node's REST API (JSON; logos-delivery, rest_api).

An invalid message does not affect other messages of its page. If the bytes are not an
answer of the API, functions raise one of the errors in `UNREADABLE`.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as BinasciiError
from dataclasses import dataclass
from typing import Annotated

import msgspec

from connectors.waku_rest.json_list import check_length, elements
from sds_core.waku import WakuMessage

UNREADABLE = (ValueError, RecursionError)
"""Errors of parsing untrusted JSON; too deeply nested JSON raises RecursionError."""

_HASH_BYTES = 32
_HEX_HASH = re.compile("0x[0-9a-fA-F]{64}")


@dataclass(slots=True)
class Undecodables:
    """The number of invalid messages in a page, and the error of the first of them."""

    count: int = 0
    reason: str = ""

    def add(self, error: Exception) -> None:
        """Count one more message."""
        self.count += 1
        self.reason = self.reason or str(error)


@dataclass(frozen=True, slots=True)
class Page:
    """A page: the messages that a node had cached for a topic, and has now deleted.

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
    Otherwise, `hash` comes from the answer. The pubsub topic is None if the answer
    lacks it.
    """

    hash: bytes
    pubsub_topic: str | None
    message: WakuMessage | None


@dataclass(frozen=True, slots=True)
class StorePage:
    """One page of a store's answer, oldest message first.

    The cursor of 32 bytes selects the next page; it is None on the last page.
    """

    messages: list[StoredMessage]
    cursor: bytes | None
    undecodable: Undecodables


def read_page(body: bytes) -> Page:
    """Parse a page of relay or filter; its end may be missing.

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
    the last message in the order of the query. It is None or empty on the last page.
    """

    status_code: int
    status_desc: str = ""
    messages: msgspec.Raw = msgspec.Raw(b"[]")
    pagination_cursor: str | None = None

    def page(self, requested_topic: str | None) -> StorePage:
        """Parse the messages of the answer.

        `requested_topic` is the query's pubsub topic: an answer with only hashes does
        not repeat it.

        Raises:
            ValueError: The cursor is not a hash, or the messages are not a list.
        """
        cursor = _hash_of(self.pagination_cursor) if self.pagination_cursor else None
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
    """Return the node's text about the status of a filter subscription."""
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
        return StoredMessage(_hash_of(stored.message_hash), topic, message)
    return StoredMessage(message.hash_on(topic), topic, message)


def _hash_of(text: str) -> bytes:
    """Decode a hash in hexadecimal or, from older nodes, in base64."""
    if _HEX_HASH.fullmatch(text):
        return bytes.fromhex(text[2:])
    try:
        decoded = b64decode(text, validate=True)
    except (BinasciiError, ValueError):
        decoded = b""
    if len(decoded) != _HASH_BYTES:
        message = f"{text!r:.80} is no hash of {_HASH_BYTES} bytes"
        raise ValueError(message)
    return decoded
