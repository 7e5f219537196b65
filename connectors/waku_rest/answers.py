"""Parses answers of a node's REST API (JSON; logos-delivery, rest_api).

A message that cannot be parsed does not affect the others of its page. All are counted,
but only the first ones are stored.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as BinasciiError
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from sds_core.waku import WakuMessage

UNREADABLE = (ValueError, RecursionError)
"""What reading a stranger's JSON raises: `msgspec.DecodeError` and `UnicodeDecodeError`
are the first, too deep nesting is the second."""

MAX_ELEMENTS = 100_000
"""Of one list: a cache holds some thousands at most, and a page of a store 100."""

_KEPT = 10
_KEPT_BYTES = 200

_HASH_BYTES = 32
_HEX_HASH = re.compile("0x[0-9a-fA-F]{64}")


@dataclass(frozen=True, slots=True)
class Undecodable:
    """One message of a page that cannot be read.

    Attributes:
        raw: Its JSON as the node gave it, 200 bytes at most.
        reason: What is wrong with it.
    """

    raw: bytes
    reason: str


@dataclass(slots=True)
class Undecodables:
    """The messages of a page that cannot be read.

    Attributes:
        count: How many.
        first: The first 10 of them.
    """

    count: int = 0
    first: list[Undecodable] = field(default_factory=list)

    def add(self, raw: bytes, error: Exception) -> None:
        """Count one more."""
        self.count += 1
        if len(self.first) < _KEPT:
            self.first.append(Undecodable(raw[:_KEPT_BYTES], str(error)))


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the node's cache for a topic; reading it has emptied the cache.

    Attributes:
        messages: Messages in no particular order.
        undecodable: Messages that cannot be parsed.
        broken_off: Why the end of the page is missing; empty if it is complete.
    """

    messages: list[WakuMessage]
    undecodable: Undecodables
    broken_off: str = ""


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message of a store.

    Attributes:
        hash: Its deterministic hash, 32 bytes: computed here if pubsub topic and
            message are known, else as the node says.
        pubsub_topic: Where it was relayed; None if the node does not say.
        message: The message; None if only hashes were asked for.
    """

    hash: bytes
    pubsub_topic: str | None
    message: WakuMessage | None


@dataclass(frozen=True, slots=True)
class StorePage:
    """One page of a store's answer.

    Attributes:
        messages: Oldest first.
        cursor: Where the next page begins, 32 bytes; None after the last one.
        bad: How many of the messages do not have the hash that the node says.
        undecodable: Those that cannot be read.
    """

    messages: list[StoredMessage]
    cursor: bytes | None
    bad: int
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
        for raw in _elements(body):
            try:
                messages.append(_MESSAGE.decode(raw).message())
            except UNREADABLE as error:
                undecodable.add(raw, error)
    except ValueError as error:
        if not (messages or undecodable.count):
            raise
        broken_off = str(error)
    return Page(messages, undecodable, broken_off)


class StoreAnswer(msgspec.Struct, rename="camel"):
    """The answer of a store, whose messages have not been read yet.

    Attributes:
        status_code: As of HTTP; 200 is fine.
        status_desc: The same in words.
        messages: The JSON of their list.
        pagination_cursor: Hash of the last message in the order of the query; None
            or empty on the last page.
    """

    status_code: int
    status_desc: str = ""
    messages: msgspec.Raw = msgspec.Raw(b"[]")
    pagination_cursor: str | None = None

    def page(self, asked_topic: str | None) -> StorePage:
        """Read its messages.

        Args:
            asked_topic: The pubsub topic that was asked for, which the answer does
                not repeat where only hashes are given.

        Raises:
            ValueError: The cursor is no hash, or the messages are no list.
        """
        cursor = _hash_of(self.pagination_cursor) if self.pagination_cursor else None
        messages: list[StoredMessage] = []
        undecodable = Undecodables()
        bad = 0
        for raw in _elements(bytes(self.messages)):
            try:
                stored, is_bad = _stored_message(raw, asked_topic)
            except UNREADABLE as error:
                undecodable.add(raw, error)
            else:
                messages.append(stored)
                bad += is_bad
        return StorePage(messages, cursor, bad, undecodable)


def read_store_answer(body: bytes) -> StoreAnswer:
    """Parse the answer of a store, without its messages.

    Raises:
        ValueError, RecursionError: The bytes are not an answer of a store.
    """
    return _STORE_ANSWER.decode(body)


def read_subscription_status(body: bytes) -> str:
    """Parse the status of a filter subscription, a text of the node.

    Raises:
        ValueError, RecursionError: The bytes are not such an answer.
    """
    return _FILTER_ANSWER.decode(body).status_desc


class _Message(msgspec.Struct, rename="camel"):
    """A message of relay, filter or store; absent and null are the same."""

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

_LIST_BEGIN = re.compile(rb"\s*\[")
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)
"""A string, which may break off, or what separates."""


def _elements(body: bytes) -> Iterator[bytes]:
    """Yield the elements of a JSON list as raw bytes; they may be invalid JSON.

    Raises:
        ValueError: The bytes are not a list, have too many elements, or end too early;
            raised after the complete elements.
    """
    if not _LIST_BEGIN.match(body):
        message = f"it is no list but {body[:_KEPT_BYTES]!r:.80}"
        raise ValueError(message)
    count = depth = begin = 0
    for token in _TOKEN.finditer(body):
        mark = body[token.start()]
        if mark in b"[{":
            depth += 1
            if depth == 1:
                begin = token.end()
            continue
        if depth == 1 and mark in b",]":
            if element := body[begin : token.start()].strip():
                count += 1
                if count > MAX_ELEMENTS:
                    message = f"the list has more than {MAX_ELEMENTS} elements"
                    raise ValueError(message)
                yield element
            begin = token.end()
        if mark in b"]}":
            depth -= 1
            if depth == 0:
                if mark in b"]" and not body[token.end() :].strip():
                    return
                break
    message = "the list is not closed, or not the whole answer"
    raise ValueError(message)


def _stored_message(raw: bytes, asked_topic: str | None) -> tuple[StoredMessage, bool]:
    """A message of a store, and whether it has another hash than the node says.

    Args:
        raw: Its JSON.
        asked_topic: The pubsub topic that was asked for.

    Raises:
        ValueError, RecursionError: It cannot be read.
    """
    stored = _STORED.decode(raw)
    topic = stored.pubsub_topic or asked_topic
    if stored.message is None or topic is None:
        message = stored.message.message() if stored.message else None
        return StoredMessage(_hash_of(stored.message_hash), topic, message), False
    message = stored.message.message()
    own_hash = message.hash_on(topic)
    try:
        is_bad = _hash_of(stored.message_hash) != own_hash
    except ValueError:
        is_bad = True
    return StoredMessage(own_hash, topic, message), is_bad


def _hash_of(text: str) -> bytes:
    """The bytes of a hash, in hexadecimal or, as older nodes write it, in base64.

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
