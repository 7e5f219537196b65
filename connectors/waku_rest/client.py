"""One Waku node's REST API: relay, filter and store (logos-delivery, rest_api).

When a node sends a page of its relay or filter cache, it deletes the page, so the page
cannot be requested again. The caller therefore gets every complete message, even if the
rest of the answer is invalid. The client retries no request.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from email.utils import parsedate_to_datetime
from itertools import count
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from connectors.untrusted_json import UNREADABLE
from connectors.waku_rest.answers import (
    Page,
    StorePage,
    read_page,
    read_store_answer,
    read_subscription_status,
)
from connectors.waku_rest.connection import ENCODINGS
from connectors.waku_rest.errors import (
    BadAnswer,
    NodeBusy,
    NodeRefused,
    NodeUnreachable,
    NodeUntrusted,
    NotSubscribed,
)
from connectors.waku_rest.store_query import StoreQuery
from sds_core.text import one_line, printable
from sds_core.waku import WakuMessage

MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""Size limit of one answer; the rest of a longer answer is not read.

The limit is enough for a relay cache of 300 messages of the maximum size (150 KiB, in
base64), or of 10,000 messages of 4 KiB.
"""

_LARGE_BYTES = 1024 * 1024
"""An answer that is larger than this size is parsed in a thread."""

_QUOTED_CHARACTERS = 200

_BUSY = frozenset({429, 503, 504})
"""HTTP statuses, also as `status_code` of a store's answer, that permit a retry."""

_TOTAL_TIMEOUTS = 6
"""A whole request and its answer may take this many times the timeout of a read."""

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")


class NodeClient:
    """Sends requests to one node; each method sends one request.

    Every method may raise `NodeUnreachable`, `NodeRefused` and `BadAnswer`. If a call
    of `relay_messages` or `filter_messages` is cancelled, the page that it reads is
    lost. The attribute `url` ends without a slash.
    """

    def __init__(self, url: str, http: httpx.AsyncClient) -> None:
        self.url = url.rstrip("/")
        self._http = http
        self._request_ids = count(1)

    async def subscribe_relay(self, pubsub_topics: Sequence[str]) -> None:
        """Let the node subscribe to pubsub topics and cache their messages.

        Repeated calls do no harm.
        """
        await self._ask("POST", "/relay/v1/subscriptions", json=list(pubsub_topics))

    async def relay_messages(self, pubsub_topic: str) -> Page:
        """Read the node's cache of a pubsub topic; the node empties this cache.

        Raises:
            NotSubscribed: The node does not subscribe to the topic.
        """
        path = f"/relay/v1/messages/{quote(pubsub_topic, safe='')}"
        return await self._take(path, pubsub_topic)

    async def publish(self, pubsub_topic: str, message: WakuMessage) -> None:
        """Let the node relay a message; the node adds a proof if the network uses RLN.

        Raises:
            NodeUnreachable: No complete answer arrived. If `may_have_arrived`, the node
                may have relayed the message.
        """
        path = f"/relay/v1/messages/{quote(pubsub_topic, safe='')}"
        body = {
            "payload": b64encode(message.payload).decode(),
            "contentTopic": message.content_topic,
            "version": message.version,
            "timestamp": message.timestamp_ns,
            "ephemeral": message.ephemeral,
        }
        if message.meta:
            body["meta"] = b64encode(message.meta).decode()
        await self._ask("POST", path, json=body)

    async def subscribe_filter(
        self, pubsub_topic: str, content_topics: Sequence[str]
    ) -> None:
        """Let the node's filter subscribe to content topics and cache their messages.

        Repeated calls do no harm.
        """
        answer = await self._ask(
            "POST",
            "/filter/v2/subscriptions",
            json={
                "requestId": f"sds-monitor-{next(self._request_ids)}",
                "pubsubTopic": pubsub_topic,
                "contentFilters": list(content_topics),
            },
        )
        with self._reading(answer):
            status = read_subscription_status(answer.body)
        # The node reports some errors with HTTP status 200.
        if status == "UNKNOWN":
            raise NodeRefused(self.url, answer.request, answer.status, status)

    async def filter_messages(self, content_topic: str) -> Page:
        """Read the node's filter cache of a content topic; the node empties this cache.

        Raises:
            NotSubscribed: The node does not subscribe to the topic.
        """
        path = f"/filter/v2/messages/{quote(content_topic, safe='')}"
        return await self._take(path, content_topic)

    async def store_page(
        self,
        query: StoreQuery,
        cursor: bytes | None = None,
        *,
        include_data: bool = True,
    ) -> StorePage:
        """Read a page of messages; without `include_data`, the page has only hashes.

        `cursor` is the cursor of the previous page; None for the first page.
        """
        parameters = _store_parameters(query, cursor, include_data)
        answer = await self._ask("GET", "/store/v3/messages", params=parameters)
        with self._reading(answer):
            parsed = await answer.made(read_store_answer, answer.body)
        if parsed.status_code != httpx.codes.OK:
            detail = _quoted(parsed.status_desc)
            raise self._refused(answer, parsed.status_code, detail)
        with self._reading(answer):
            page = await answer.made(parsed.page, query.pubsub_topic)
        if page.cursor is not None and page.cursor == cursor:
            raise BadAnswer(
                self.url,
                answer.request,
                "a page of the store has the same cursor as the previous page",
            )
        count = len(page.messages) + page.undecodable.count
        if count > query.page_size:
            raise BadAnswer(
                self.url,
                answer.request,
                f"a page of the store has {count} messages, but at most "
                f"{query.page_size} were requested",
            )
        return page

    async def _take(self, path: str, topic: str) -> Page:
        answer = await self._exchange("GET", path)
        if answer.status >= httpx.codes.BAD_REQUEST:
            detail = answer.detail
            # Relay answers 404, filter 400.
            if answer.status == httpx.codes.NOT_FOUND or (
                answer.status == httpx.codes.BAD_REQUEST
                and detail.startswith("Not subscribed")
            ):
                raise NotSubscribed(
                    self.url, answer.request, answer.status, detail, topic
                )
            raise self._refused(answer, answer.status, answer.detail)
        try:
            page = await answer.made(read_page, answer.body)
        except ValueError as error:
            if answer.broken_off:
                raise self._unreachable(answer) from error
            raise BadAnswer(self.url, answer.request, str(error)) from error
        return replace(page, broken_off=answer.broken_off or page.broken_off)

    async def _ask(self, method: str, path: str, **rest: Any) -> _Answer:
        """Send a request that empties no cache.

        If the answer is incomplete, raise an error; no messages are lost.
        """
        answer = await self._exchange(method, path, **rest)
        if answer.status >= httpx.codes.BAD_REQUEST:
            raise self._refused(answer, answer.status, answer.detail)
        if answer.broken_off:
            raise self._unreachable(answer)
        return answer

    async def _exchange(self, method: str, path: str, **rest: Any) -> _Answer:
        """Send a request; return the answer, even if its end is missing."""
        request = f"{method} {path}"
        body = bytearray()
        broken_off = ""
        response: httpx.Response | None = None
        step_s = self._http.timeout.read
        total_s = None if step_s is None else _TOTAL_TIMEOUTS * step_s
        try:
            async with (
                asyncio.timeout(total_s),
                self._http.stream(method, self.url + path, **rest) as response,
            ):
                self._check_encoding(request, response)
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > MAX_ANSWER_BYTES:
                        broken_off = (
                            f"the answer has more than {MAX_ANSWER_BYTES} bytes"
                        )
                        break
        # httpx passes on errors of TLS after the handshake (`OSError`), and of names in
        # redirects (`UnicodeError`).
        except (httpx.RequestError, OSError, UnicodeError) as error:
            broken_off = str(error) or type(error).__name__
            if untrusted := _certificate_error(error):
                cause = untrusted.verify_message.rstrip(".")
                raise NodeUntrusted(self.url, request, cause) from error
            if response is None:
                raise NodeUnreachable(
                    self.url,
                    request,
                    broken_off,
                    may_have_arrived=not isinstance(error, _NEVER_SENT),
                ) from error
        if response.status_code in range(300, 400):
            detail = f"it redirects with {response.status_code}"
            raise BadAnswer(self.url, request, detail)
        return _Answer(
            request=request,
            status=response.status_code,
            headers=response.headers,
            body=bytes(body),
            broken_off=broken_off,
        )

    def _check_encoding(self, request: str, response: httpx.Response) -> None:
        """Refuse an answer that is compressed more than once, or not as `ENCODINGS`.

        One decompression of these encodings may expand a received chunk a thousandfold,
        to at most `MAX_ANSWER_BYTES`. A second decompression, or another encoding that
        httpx supports if its package is installed, could exceed this limit by far.
        """
        encoding = response.headers.get("Content-Encoding", "")
        if "," in encoding:
            detail = f"the answer is compressed more than once: {_quoted(encoding)}"
            raise BadAnswer(self.url, request, detail)
        if encoding.strip().lower() not in ("", "identity", *ENCODINGS):
            detail = f"the answer has the encoding {_quoted(encoding)}"
            raise BadAnswer(self.url, request, detail)

    @contextmanager
    def _reading(self, answer: _Answer) -> Iterator[None]:
        try:
            yield
        except UNREADABLE as error:
            raise BadAnswer(self.url, answer.request, str(error)) from error

    def _refused(self, answer: _Answer, status: int, detail: str) -> NodeRefused:
        kind = NodeBusy if status in _BUSY else NodeRefused
        return kind(self.url, answer.request, status, detail, answer.retry_after_s)

    def _unreachable(self, answer: _Answer) -> NodeUnreachable:
        return NodeUnreachable(
            self.url, answer.request, answer.broken_off, may_have_arrived=True
        )


def _certificate_error(error: BaseException) -> ssl.SSLCertVerificationError | None:
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    return cause


_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


@dataclass(frozen=True, slots=True)
class _Answer:
    request: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    broken_off: str

    async def made(
        self, make: Callable[[_Argument], _Result], argument: _Argument
    ) -> _Result:
        """Return `make(argument)`; if the body is large, a thread computes it."""
        if len(self.body) > _LARGE_BYTES:
            return await asyncio.to_thread(make, argument)
        return make(argument)

    @property
    def detail(self) -> str:
        return _quoted(self.body[: 4 * _QUOTED_CHARACTERS].decode(errors="replace"))

    @property
    def retry_after_s(self) -> float | None:
        """Seconds to wait, from the header `Retry-After`; None if absent or invalid."""
        text = self.headers.get("Retry-After", "").strip()
        if re.fullmatch("[0-9]{1,9}", text):
            return float(text)
        try:
            # Both dates, in `Retry-After` and in `Date`, are from the node's clock, so
            # an error of this clock cancels out.
            until = parsedate_to_datetime(text)
            wait = until - parsedate_to_datetime(self.headers.get("Date", ""))
        except (OverflowError, TypeError, ValueError):
            return None
        return max(wait, timedelta()).total_seconds()


def _store_parameters(
    query: StoreQuery, cursor: bytes | None, include_data: bool
) -> dict[str, str]:
    parameters = {
        "includeData": "true" if include_data else "false",
        "pubsubTopic": _decoded_twice(query.pubsub_topic or ""),
        "contentTopics": ",".join(map(_decoded_twice, query.content_topics)),
        "startTime": query.start_ns,
        "endTime": query.end_ns,
        "hashes": ",".join(f"0x{one.hex()}" for one in query.hashes),
        "cursor": f"0x{cursor.hex()}" if cursor else None,
        "pageSize": query.page_size,
        "ascending": "true" if query.ascending else "false",
    }
    return {name: str(value) for name, value in parameters.items() if value}


def _decoded_twice(topic: str) -> str:
    """Escape a topic; httpx escapes it a second time.

    The node decodes it twice: in its HTTP server, and in its store API.
    """
    return topic.replace("%", "%25").replace("+", "%2B")


def _quoted(text: str) -> str:
    return printable(one_line(text))[:_QUOTED_CHARACTERS]
