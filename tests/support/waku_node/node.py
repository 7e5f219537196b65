"""The node: how it starts and stops, and its endpoints.

Sources: logos-delivery rest_api/endpoint/{relay,filter,store}/handlers.nim.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from connectors.web.server import WebServer
from sds_core.waku import WakuMessage
from tests.support.tls import Identity, TlsDoor
from tests.support.waku_node.answers import (
    disturb,
    hash_text,
    json_answer,
    message_json,
    page_answer,
    store_head,
    stored_json,
    with_retry_after,
)
from tests.support.waku_node.cache import Entry
from tests.support.waku_node.faults import NO_FAULT, Fault
from tests.support.waku_node.log import Call, Cause, Endpoint, HandedOut
from tests.support.waku_node.state import NodeState
from tests.support.waku_node.store import BadQuery, StoreQuery

MAX_MESSAGE_BYTES = 150 * 1024
"""Of the routing layer (64/WAKU2-NETWORK); the payload alone is measured here."""

_STATIC_SHARD = re.compile("/waku/2/rs/[0-9]{1,5}/[0-9]{1,5}")


class _Publication(msgspec.Struct, rename="camel"):
    payload: bytes
    content_topic: str
    version: int = 0
    timestamp: int | None = None
    meta: bytes = b""
    ephemeral: bool = False


class _Subscription(msgspec.Struct, rename="camel"):
    request_id: str
    content_filters: list[str]
    pubsub_topic: str = ""


class ConformanceNode(NodeState):
    """A node that listens on 127.0.0.1; a context manager, and usable from any thread.

    Args:
        relay_capacity: Messages in the relay cache (`--rest-relay-cache-capacity`).
        authorization: The header that every request must have; empty for none.
        certificate: To be reached by HTTPS; None for HTTP.
        now_ns: The node's clock, Unix ns.
    """

    def __init__(
        self,
        *,
        relay_capacity: int = 50,
        authorization: str = "",
        certificate: Identity | None = None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        super().__init__(relay_capacity, now_ns)
        self._authorization = authorization
        self._certificate = certificate
        self._app = Starlette(
            routes=[
                Route(
                    "/relay/v1/subscriptions", self._subscribe_relay, methods=["POST"]
                ),
                Route("/relay/v1/messages/{topic:path}", self._read_relay),
                Route(
                    "/relay/v1/messages/{topic:path}", self._publish, methods=["POST"]
                ),
                Route(
                    "/filter/v2/subscriptions", self._subscribe_filter, methods=["POST"]
                ),
                Route("/filter/v2/messages/{topic:path}", self._read_filter),
                Route("/store/v3/messages", self._read_store),
            ]
        )
        self._ports = (0, 0)
        self._server: WebServer | None = None
        self._door: TlsDoor | None = None

    # Life

    @property
    def url(self) -> str:
        """Where it is reached, also while it is down."""
        plain, door = self._ports
        if self._certificate is not None:
            return f"https://127.0.0.1:{door}"
        return f"http://127.0.0.1:{plain}"

    def start(self) -> None:
        """Come up, where it was before."""
        plain, door = self._ports
        server = WebServer(self._app, port=plain)
        server.start()
        plain = int(server.url.rpartition(":")[2])
        if self._certificate is not None:
            self._door = TlsDoor(self._certificate, door, plain)
            door = self._door.port
        self._ports = (plain, door)
        self._server = server
        with self._lock:
            self._is_up = True

    def stop(self) -> None:
        """Go down: caches and subscriptions are gone, the store is kept."""
        if self._door is not None:
            self._door.close()
            self._door = None
        if self._server is not None:
            # First, so that nobody can ask a node that has forgotten all.
            self._server.stop()
            self._server = None
        with self._lock:
            self._is_up = False
            for endpoint, cache in self._caches():
                for one in cache.take():
                    self._drop(endpoint, one.hash, Cause.RESTART)
            self._relay_topics.clear()
            self._filter_topics.clear()

    def restart(self, down_s: float = 0.0) -> None:
        """Go down for so many seconds; connections are refused meanwhile."""
        self.stop()
        time.sleep(down_s)
        self.start()

    def __enter__(self) -> Self:
        """Come up."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Go down."""
        self.stop()

    # Endpoints

    async def _subscribe_relay(self, request: Request) -> Response:
        def subscribe(topics: list[str]) -> Response:
            if not all(_STATIC_SHARD.fullmatch(topic) for topic in topics):
                return PlainTextResponse("Invalid pubsub topic(s)", 400)
            self._relay_topics.update(topics)
            return PlainTextResponse("OK")

        return await self._accept(
            Endpoint.SUBSCRIBE_RELAY, request, list[str], subscribe
        )

    async def _publish(self, request: Request) -> Response:
        topic = request.path_params["topic"]

        def relay(sent: _Publication) -> Response:
            if topic not in self._relay_topics:
                detail = f"Failed to publish: Node not subscribed to topic: {topic}"
                return PlainTextResponse(detail, 400)
            timestamp_ns = self._now_ns() if sent.timestamp is None else sent.timestamp
            message = WakuMessage(
                sent.payload,
                sent.content_topic,
                timestamp_ns,
                sent.version,
                sent.meta,
                sent.ephemeral,
            )
            if len(message.payload) > MAX_MESSAGE_BYTES:
                detail = (
                    "Failed to publish: Message size exceeded maximum of "
                    f"{MAX_MESSAGE_BYTES} bytes"
                )
                return PlainTextResponse(detail, 400)
            published.append(message)
            return PlainTextResponse("OK")

        published: list[WakuMessage] = []
        response = await self._accept(Endpoint.PUBLISH, request, _Publication, relay)
        # The node's own messages come into its caches as well.
        for message in published:
            self.offer(message, pubsub_topic=topic)
        return response

    async def _subscribe_filter(self, request: Request) -> Response:
        def subscribe(asked: _Subscription) -> Response:
            self._filter_topics.update(
                (asked.pubsub_topic, topic) for topic in asked.content_filters
            )
            told = {"requestId": asked.request_id, "statusDesc": "OK"}
            return json_answer(msgspec.json.encode(told))

        return await self._accept(
            Endpoint.SUBSCRIBE_FILTER, request, _Subscription, subscribe
        )

    async def _read_relay(self, request: Request) -> Response:
        def take(topic: str) -> list[Entry] | Response:
            if topic not in self._relay_topics:
                return PlainTextResponse("", 404)
            return self._relay.take(lambda one: one.pubsub_topic == topic)

        return await self._give_page(Endpoint.RELAY, request, take)

    async def _read_filter(self, request: Request) -> Response:
        def take(topic: str) -> list[Entry] | Response:
            if topic not in {content for _, content in self._filter_topics}:
                return PlainTextResponse(f"Not subscribed to topic: {topic}", 400)
            return self._filter.take(lambda one: one.message.content_topic == topic)

        return await self._give_page(Endpoint.FILTER, request, take)

    async def _accept(
        self,
        endpoint: Endpoint,
        request: Request,
        kind: Any,
        accept: Callable[[Any], Response],
    ) -> Response:
        fault, refusal = self._begin(endpoint, request)
        if refusal is not None:
            return self._done(endpoint, refusal)
        body = await request.body()
        await asyncio.sleep(fault.delay_s)
        try:
            asked = msgspec.json.decode(body, type=kind)
        except ValueError:
            return self._done(endpoint, PlainTextResponse("", 400))
        if request.headers.get("Content-Type") != "application/json":
            return self._done(endpoint, PlainTextResponse("", 400))
        with self._lock:
            at_ns = self._now_ns()
            response = accept(asked)
        if fault.body is not None:
            response = json_answer(fault.body)
        arrived = not await request.is_disconnected()
        return self._done(endpoint, response, at_ns, arrived=arrived)

    async def _give_page(
        self,
        endpoint: Endpoint,
        request: Request,
        take: Callable[[str], list[Entry] | Response],
    ) -> Response:
        fault, refusal = self._begin(endpoint, request)
        if refusal is not None:
            return self._done(endpoint, refusal)
        # A topic is one percent-encoded segment: slashes within it are not seen.
        if request.scope["raw_path"].count(b"/") != endpoint.count("/") + 1:
            return self._done(endpoint, PlainTextResponse("", 404))
        with self._lock:
            at_ns = self._now_ns()
            taken = take(request.path_params["topic"])
        if isinstance(taken, Response):
            return self._done(endpoint, taken, at_ns)
        sent: list[Entry] = []
        try:
            await asyncio.sleep(fault.delay_s)
            items = [(one, message_json(one.message)) for one in taken]
            response, held = page_answer(b"[", disturb(items, fault), b"]", fault)
            arrived = not await request.is_disconnected()
            if arrived:
                sent = held
        finally:
            # Also when the node goes down meanwhile: what was taken is gone.
            self._note_taken(endpoint, at_ns, taken, sent)
        return self._done(endpoint, response, at_ns, arrived=arrived)

    async def _read_store(self, request: Request) -> Response:
        endpoint = Endpoint.STORE
        fault, refusal = self._begin(endpoint, request)
        if refusal is not None:
            return self._done(endpoint, refusal)
        await asyncio.sleep(fault.delay_s)
        if fault.store_status is not None:
            told = store_head(fault.store_status, "as injected") + b"[]}"
            return self._done(endpoint, json_answer(told, fault.retry_after))
        if fault.body is not None:
            return self._done(endpoint, json_answer(fault.body))
        try:
            query = StoreQuery.read(request.query_params)
            with self._lock:
                rows, cursor = self._store.find(query)
        except BadQuery as error:
            return self._done(endpoint, PlainTextResponse(str(error), error.status))
        items = disturb(
            [(one, stored_json(one, query.include_data, fault)) for one in rows], fault
        )
        tail = b"]"
        if cursor is not None:
            tail += b',"paginationCursor":"%s"' % hash_text(cursor, fault).encode()
        response, sent = page_answer(
            store_head(200, "OK") + b"[", items, tail + b"}", fault
        )
        if query.include_data and not await request.is_disconnected():
            with self._lock:
                at_ns = self._now_ns()
                self._handed.extend(
                    HandedOut(at_ns, endpoint, one.hash) for one in sent
                )
        return self._done(endpoint, response)

    def _begin(
        self, endpoint: Endpoint, request: Request
    ) -> tuple[Fault, Response | None]:
        """What goes wrong with a call, and its answer if it gets no further."""
        with self._lock:
            waiting = self._faults[endpoint]
            lasting = self._lasting_faults.get(endpoint, NO_FAULT)
            fault = waiting.popleft() if waiting else lasting
        if self._authorization not in ("", request.headers.get("Authorization")):
            return fault, PlainTextResponse("unauthorized", 401)
        if fault.status is not None:
            response = PlainTextResponse("as injected", fault.status)
            return fault, with_retry_after(response, fault.retry_after)
        return fault, None

    def _done(
        self,
        endpoint: Endpoint,
        response: Response,
        at_ns: int | None = None,
        *,
        arrived: bool = True,
    ) -> Response:
        """Log a call, which had its effect now if no other time is given."""
        at_ns = self._now_ns() if at_ns is None else at_ns
        call = Call(at_ns, endpoint, response.status_code, arrived)
        with self._lock:
            self._calls.append(call)
        return response
