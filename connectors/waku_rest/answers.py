"""What a node's REST API answers, from its JSON (logos-delivery, rest_api).

A message that cannot be read does not take the others of its page with it.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as BinasciiError
from dataclasses import dataclass
from typing import Annotated

import msgspec

from sds_core.waku import WakuMessage

UNREADABLE = (ValueError, RecursionError)
"""What reading a stranger's JSON raises: `msgspec.DecodeError` and `UnicodeDecodeError`
are the first, too deep nesting is the second."""

_HASH_BYTES = 32
_HEX_HASH = re.compile("0x[0-9a-fA-F]{64}")


@dataclass(frozen=True, slots=True)
class Undecodable:
    """One message of a page that cannot be read.

    Attributes:
        raw: Its JSON as the node gave it.
        reason: What is wrong with it.
    """

    raw: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class Page:
    """What the node had cached for a topic, and has forgotten now.

    Attributes:
        messages: In the order of the node, which is none.
        undecodable: Those that cannot be read.
        broken_off: Why the end is missing, if it is; empty otherwise.
    """

    messages: list[WakuMessage]
    undecodable: list[Undecodable]
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
    undecodable: list[Undecodable]


def read_page(body: bytes) -> Page:
    """Read a page of relay or filter, of which the end may be missing.

    Raises:
        ValueError: It is none, or breaks off within its first message.
    """
    try:
        elements, broken_off = [bytes(raw) for raw in _LIST.decode(body)], ""
    except UNREADABLE as error:
        elements, is_closed = _split(body)
        broken_off = "" if is_closed else str(error)
        if not elements:
            raise ValueError(str(error)) from error
    page = Page([], [], broken_off)
    for raw in elements:
        try:
            page.messages.append(_MESSAGE.decode(raw).message())
        except UNREADABLE as error:
            page.undecodable.append(Undecodable(raw, str(error)))
    return page


class StoreAnswer(msgspec.Struct, rename="camel"):
    """The answer of a store, whose messages have not been read yet.

    Attributes:
        status_code: As of HTTP; 200 is fine.
        status_desc: The same in words.
        messages: The JSON of each.
        pagination_cursor: Hash of the last message in the order of the query; None
            or empty on the last page.
    """

    status_code: int
    status_desc: str = ""
    messages: list[msgspec.Raw] = []
    pagination_cursor: str | None = None

    def page(self, asked_topic: str | None) -> StorePage:
        """Read its messages.

        Args:
            asked_topic: The pubsub topic that was asked for, which the answer does
                not repeat where only hashes are given.

        Raises:
            ValueError: The cursor is no hash.
        """
        cursor = _hash_of(self.pagination_cursor) if self.pagination_cursor else None
        messages: list[StoredMessage] = []
        undecodable: list[Undecodable] = []
        bad = 0
        for raw in self.messages:
            try:
                stored, is_bad = _stored_message(bytes(raw), asked_topic)
            except UNREADABLE as error:
                undecodable.append(Undecodable(bytes(raw), str(error)))
            else:
                messages.append(stored)
                bad += is_bad
        return StorePage(messages, cursor, bad, undecodable)


def read_store_answer(body: bytes) -> StoreAnswer:
    """Read the answer of a store, but for its messages.

    Raises:
        ValueError, RecursionError: It is none.
    """
    return _STORE_ANSWER.decode(body)


def read_subscription_status(body: bytes) -> str:
    """Read what became of a subscription to a filter, in the node's words.

    Raises:
        ValueError, RecursionError: It is no such answer.
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
_LIST = msgspec.json.Decoder(list[msgspec.Raw])

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)
"""A string, which may break off, or what separates."""


def _split(body: bytes) -> tuple[list[bytes], bool]:
    """Split a damaged list into elements that were whole, and whether it was closed."""
    found: list[bytes] = []
    if not body.lstrip().startswith(b"["):
        return found, False
    depth = begin = 0
    for token in _TOKEN.finditer(body):
        if token[0] in (b"[", b"{"):
            depth += 1
            if depth == 1:
                begin = token.end()
            continue
        if depth == 1 and token[0] in (b",", b"]"):
            if element := body[begin : token.start()].strip():
                found.append(element)
            begin = token.end()
        if token[0] in (b"]", b"}"):
            depth -= 1
            if depth == 0:
                return found, token[0] == b"]"
    return found, False


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
