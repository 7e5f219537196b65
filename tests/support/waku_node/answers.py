"""The JSON of answers, with the faults that damage it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sds_core.waku import WakuMessage
from tests.support.waku_node.cache import Entry
from tests.support.waku_node.faults import Fault

Item = tuple[Entry | None, bytes]
"""A message and its JSON; None for what only a fault put there."""


def disturb(items: Sequence[Item], fault: Fault) -> list[Item]:
    """The items with what the fault repeats, reorders and adds."""
    if fault.reordered:
        items = items[::-1]
    if fault.duplicated:
        items = [*items, *items]
    middle = len(items) // 2
    extra: list[Item] = [(None, raw) for raw in fault.extra]
    return [*items[:middle], *extra, *items[middle:]]


def page_answer(
    head: bytes, items: Sequence[Item], tail: bytes, fault: Fault
) -> tuple[Response, list[Entry]]:
    """The answer, and the messages that it holds whole."""
    if fault.body is not None:
        return json_answer(fault.body), []
    body = head + b",".join(raw for _, raw in items) + tail
    if not fault.cut:
        return json_answer(body), [one for one, _ in items if one is not None]
    whole = items[: len(items) // 2]
    kept = len(head) + sum(len(raw) + 1 for _, raw in whole)
    if len(whole) < len(items):
        kept += len(items[len(whole)][1]) // 2
    return _CutResponse(body, kept), [one for one, _ in whole if one is not None]


class _CutResponse(Response):
    """Announces a whole body and sends only its beginning."""

    media_type = "application/json"

    def __init__(self, body: bytes, kept_bytes: int) -> None:
        super().__init__(body)
        self._kept_bytes = kept_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": self.status_code,
                "headers": self.raw_headers,
            }
        )
        kept = bytes(self.body[: self._kept_bytes])
        # The server closes the connection of an answer that does not come to its end.
        await send({"type": "http.response.body", "body": kept, "more_body": True})


def json_answer(body: bytes, retry_after: str | None = None) -> Response:
    """An answer with JSON, and a `Retry-After` header if one is given."""
    return with_retry_after(Response(body, media_type="application/json"), retry_after)


def with_retry_after(response: Response, value: str | None) -> Response:
    """The same answer; it gets a `Retry-After` header if there is a value."""
    if value is not None:
        response.headers["Retry-After"] = value
    return response


def message_json(message: WakuMessage) -> bytes:
    """A message as relay and filter return it."""
    told: dict[str, Any] = {
        "payload": message.payload,
        "contentTopic": message.content_topic,
        "version": message.version,
        "timestamp": message.timestamp_ns,
        "ephemeral": message.ephemeral,
    }
    if message.meta:
        told["meta"] = message.meta
    return msgspec.json.encode(told)


def stored_json(entry: Entry, include_data: bool, fault: Fault) -> bytes:
    """A message as the store returns it; without data only its hash."""
    told: dict[str, Any] = {"messageHash": hash_text(entry.hash, fault)}
    if fault.wrong_hash:
        told["messageHash"] = hash_text(entry.hash[::-1], fault)
    if include_data:
        told["message"] = msgspec.Raw(message_json(entry.message))
        told["pubsubTopic"] = entry.pubsub_topic
    return msgspec.json.encode(told)


def store_head(status: int, text: str) -> bytes:
    """The beginning of the store's answer, up to the list of messages."""
    told = {"requestId": "", "statusCode": status, "statusDesc": text}
    return msgspec.json.encode(told)[:-1] + b',"messages":'


def hash_text(message_hash: bytes, fault: Fault) -> str:
    """A hash in hex, or in base64 if the fault says so."""
    if fault.base64_hashes:
        return b64encode(message_hash).decode()
    return f"0x{message_hash.hex()}"
