"""Parses answers of a node's REST API (JSON; logos-delivery, rest_api).

A message that cannot be parsed does not affect the others of its page. Functions raise
`UNREADABLE` if the bytes are not such an answer.
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
"""Errors of reading untrusted JSON. `msgspec.DecodeError` and `UnicodeDecodeError` are
ValueErrors; JSON that is nested too deeply raises RecursionError."""

_HASH_BYTES = 32
_HEX_HASH = re.compile("0x[0-9a-fA-F]{64}")


@dataclass(slots=True)
class Undecodables:
    """Messages of a page that cannot be read: how many, and why the first one."""

    count: int = 0
    reason: str = ""

    def add(self, error: Exception) -> None:
        """Count one more message."""
        self.count += 1
        self.reason = self.reason or str(error)


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the node's cache for a topic; reading it has emptied the cache.

    Messages are in no particular order.

    Attributes:
        broken_off: Why the end of the page is missing; empty if it is complete.
    """

    messages: list[WakuMessage]
    undecodable: Undecodables
    broken_off: str = ""


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message of a store.

    Attributes:
        hash: Deterministic Waku message hash, 32 bytes: computed here if pubsub topic
            and message are known, else the one that the node states.
        pubsub_topic: Pubsub topic that it was relayed on; None if the node does not
            say.
        message: The message; None if only hashes were requested.
    """

    hash: bytes
    pubsub_topic: str | None
    message: WakuMessage | None


@dataclass(frozen=True, slots=True)
class StorePage:
    """One page of a store's answer, oldest message first.

    Attributes:
        cursor: Cursor for the next page, 32 bytes; None on the last page.
    """

    messages: list[StoredMessage]
    cursor: bytes | None
    undecodable: Undecodables


def read_page(body: bytes) -> Page:
    """Parse a page of relay or filter, of which the end may be missing.

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
    """The answer of a store, whose messages have not been read yet.

    Attributes:
        status_code: Status with the meaning of an HTTP status; 200 is success.
        status_desc: The same in words.
        messages: JSON of the list of messages.
        pagination_cursor: Hash of the last message in the order of the query; None
            or empty on the last page.
    """

    status_code: int
    status_desc: str = ""
    messages: msgspec.Raw = msgspec.Raw(b"[]")
    pagination_cursor: str | None = None

    def page(self, requested_topic: str | None) -> StorePage:
        """Read the messages of the answer.

        The answer does not repeat the pubsub topic of the query if it has only hashes.

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
    """Parse the answer of a store, without its messages."""
    return _STORE_ANSWER.decode(body)


def read_subscription_status(body: bytes) -> str:
    """Return the status of a filter subscription, a text that the node chooses."""
    return _FILTER_ANSWER.decode(body).status_desc


class _Message(msgspec.Struct, rename="camel"):
    """A message of relay, filter or store; an absent field is the same as null."""

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
    """Return a message of a store, as an answer has it in JSON."""
    stored = _STORED.decode(check_length(raw))
    topic = stored.pubsub_topic or requested_topic
    message = stored.message.message() if stored.message else None
    if message is None or topic is None:
        return StoredMessage(_hash_of(stored.message_hash), topic, message)
    return StoredMessage(message.hash_on(topic), topic, message)


def _hash_of(text: str) -> bytes:
    """Return the bytes of a hash in hexadecimal or, as older nodes write it, in base64.

    Raises:
        ValueError: They are not 32 bytes.
    """
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
