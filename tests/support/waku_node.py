"""A Waku node for tests: the REST API of logos-delivery over real HTTP, with faults.

It behaves as that node does where a mirror can notice: pages that are cleared when they
are read, a cache of all topics that overflows silently, subscriptions that a restart
forgets, a store that takes neither ephemeral messages nor those of bad clocks. And it
keeps a log of what became of each message, for whoever judges a mirror.

Sources: logos-delivery rest_api/message_cache.nim, rest_api/endpoint/{relay,filter,
store}/handlers.nim, waku_archive/archive.nim.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from base64 import b64encode
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote_plus

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from connectors.web.server import WebServer
from sds_core.waku import WakuMessage
from tests.support.tls import Identity, TlsDoor

FILTER_CAPACITY = 50
MAX_DRIFT_NS = 20_000_000_000
"""How far a sender's clock may be off for the store to keep a live message."""

MAX_PAGE_SIZE = 100
DEFAULT_PAGE_SIZE = 20
MAX_CONTENT_TOPICS = 10

_STATIC_SHARD = re.compile("/waku/2/rs/[0-9]{1,5}/[0-9]{1,5}")
_MIN_NS, _MAX_NS = -(2**63), 2**63


class Endpoint(StrEnum):
    """Endpoints of the API."""

    SUBSCRIBE_RELAY = "POST /relay/v1/subscriptions"
    RELAY = "GET /relay/v1/messages"
    SUBSCRIBE_FILTER = "POST /filter/v2/subscriptions"
    FILTER = "GET /filter/v2/messages"
    STORE = "GET /store/v3/messages"


class Cause(StrEnum):
    """Why a cache dropped a message or never had it."""

    OVERFLOW = "overflow"
    RESTART = "restart"
    ANSWER = "answer"
    """It was taken for an answer that broke off, or that nobody waited for."""
    UNSUBSCRIBED = "unsubscribed"


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one answer.

    Attributes:
        status: HTTP status instead of the answer; nothing is cleared.
        retry_after: The header, of an answer with `status` or `store_status`.
        store_status: Status of the store inside an answer with 200.
        body: Instead of the answer, which is cleared all the same.
        delay_s: Between clearing and answering, seconds.
        extra: JSON put between the messages, good or bad.
        duplicated: Every message twice.
        reordered: Last message first.
        cut: The connection ends in the middle of the body.
        wrong_hash: The store says hashes that are none of its messages.
        base64_hashes: The store writes hashes as older versions did.
    """

    status: int | None = None
    retry_after: str | None = None
    store_status: int | None = None
    body: bytes | None = None
    delay_s: float = 0.0
    extra: Sequence[bytes] = ()
    duplicated: bool = False
    reordered: bool = False
    cut: bool = False
    wrong_hash: bool = False
    base64_hashes: bool = False


NO_FAULT = Fault()


@dataclass(frozen=True)
class Offer:
    """A message that the network brought to the node.

    Attributes:
        at_ns: When.
        hash: Its deterministic hash, 32 bytes.
        pubsub_topic, message: The message.
        arrived: Whether the node was up.
    """

    at_ns: int
    hash: bytes
    pubsub_topic: str
    message: WakuMessage
    arrived: bool


@dataclass(frozen=True)
class HandedOut:
    """A message in an answer that was sent completely to a connected client."""

    at_ns: int
    endpoint: Endpoint
    hash: bytes


@dataclass(frozen=True)
class Dropped:
    """A message that a cache held, or should have, and that nobody was given.

    Attributes:
        at_ns: When.
        endpoint: Whose cache; None if no cache ever had it.
        hash: Its hash.
        cause: Why.
    """

    at_ns: int
    endpoint: Endpoint | None
    hash: bytes
    cause: Cause


@dataclass(frozen=True)
class Call:
    """A request and the status of its answer."""

    at_ns: int
    endpoint: Endpoint
    status: int


class ConformanceNode:
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
        self._authorization = authorization
        self._certificate = certificate
        self._now_ns = now_ns
        self._lock = threading.Lock()
        self._relay_capacity = relay_capacity
        self.forget()
        self._app = Starlette(
            routes=[
                Route(
                    "/relay/v1/subscriptions", self._subscribe_relay, methods=["POST"]
                ),
                Route("/relay/v1/messages/{topic:path}", self._read_relay),
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
        """Base URL, also while the node is down."""
        plain, door = self._ports
        if self._certificate is not None:
            return f"https://127.0.0.1:{door}"
        return f"http://127.0.0.1:{plain}"

    def start(self) -> None:
        """Start the node, at its earlier address."""
        plain, door = self._ports
        server = WebServer(self._app, port=plain)
        server.start()
        plain = int(server.url.rpartition(":")[2])
        if self._certificate is not None:
            self._door = TlsDoor(self._certificate, door, plain)
            door = self._door.port
        self._ports = (plain, door)
        with self._lock:
            self._server = server

    def stop(self) -> None:
        """Stop the node: caches and subscriptions are lost, the store stays."""
        if self._door is not None:
            self._door.close()
            self._door = None
        if self._server is not None:
            # First, so that nobody can ask a node that has forgotten all.
            self._server.stop()
        with self._lock:
            self._server = None
            for endpoint, cache in self._caches():
                for one in cache.take():
                    self._drop(endpoint, one.hash, Cause.RESTART)
            self._relay_topics.clear()
            self._filter_topics.clear()

    def restart(self, down_s: float = 0.0) -> None:
        """Stop the node for this many seconds; connections are refused meanwhile."""
        self.stop()
        time.sleep(down_s)
        self.start()

    def __enter__(self) -> Self:
        """Start the node."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the node."""
        self.stop()

    def forget(self) -> None:
        """Reset the node: nothing subscribed, stored, logged or injected."""
        with self._lock:
            self._relay = _Cache(self._relay_capacity)
            self._filter = _Cache(FILTER_CAPACITY)
            self._relay_topics: set[str] = set()
            self._filter_topics: set[tuple[str, str]] = set()
            self._store = _Store()
            self._faults: defaultdict[Endpoint, deque[Fault]] = defaultdict(deque)
            self._lasting_faults: dict[Endpoint, Fault] = {}
            self._offers: list[Offer] = []
            self._handed: list[HandedOut] = []
            self._dropped: list[Dropped] = []
            self._calls: list[Call] = []

    # What reaches it

    def offer(self, message: WakuMessage, *, pubsub_topic: str) -> bytes:
        """Bring a message to the node, as its neighbours do; return the hash."""
        message_hash = message.hash_on(pubsub_topic)
        entry = _Entry(message_hash, pubsub_topic, message)
        with self._lock:
            at_ns, up = self._now_ns(), self._server is not None
            self._offers.append(Offer(at_ns, message_hash, pubsub_topic, message, up))
            if not up:
                return message_hash
            drift_ns = abs(at_ns - message.timestamp_ns)
            if not message.ephemeral and drift_ns <= MAX_DRIFT_NS:
                self._store.put(entry)
            wanted = {
                Endpoint.RELAY: pubsub_topic in self._relay_topics,
                Endpoint.FILTER: (pubsub_topic, message.content_topic)
                in self._filter_topics,
            }
            if not any(wanted.values()):
                self._drop(None, message_hash, Cause.UNSUBSCRIBED)
            for endpoint, cache in self._caches():
                evicted = cache.add(entry) if wanted[endpoint] else None
                if evicted is not None:
                    self._drop(endpoint, evicted.hash, Cause.OVERFLOW)
        return message_hash

    def store_late(self, message: WakuMessage, *, pubsub_topic: str) -> bytes:
        """Add a message to the store by its sync with others; return the hash."""
        message_hash = message.hash_on(pubsub_topic)
        with self._lock:
            self._store.put(_Entry(message_hash, pubsub_topic, message))
        return message_hash

    # What goes wrong

    def inject(self, endpoint: Endpoint, fault: Fault, calls: int = 1) -> None:
        """Let the next calls of an endpoint fail, after those injected before."""
        with self._lock:
            self._faults[endpoint].extend([fault] * calls)

    def spoil(self, endpoint: Endpoint, fault: Fault) -> None:
        """Let every call fail for which no other fault is injected."""
        with self._lock:
            self._lasting_faults[endpoint] = fault

    def heal(self) -> None:
        """Let all calls succeed from now on."""
        with self._lock:
            self._faults.clear()
            self._lasting_faults.clear()

    # For judges

    @property
    def offers(self) -> list[Offer]:
        """Every message given to `offer`, in order."""
        with self._lock:
            return self._offers.copy()

    @property
    def handed_out(self) -> list[HandedOut]:
        """Every message of every answer that was sent, in order; no bare hashes."""
        with self._lock:
            return self._handed.copy()

    @property
    def dropped(self) -> list[Dropped]:
        """Everything that a cache lost unread, in order."""
        with self._lock:
            return self._dropped.copy()

    @property
    def calls(self) -> list[Call]:
        """Every request, in order."""
        with self._lock:
            return self._calls.copy()

    @property
    def stored(self) -> dict[bytes, WakuMessage]:
        """The messages in the store, by hash."""
        with self._lock:
            return self._store.messages()

    @property
    def relay_backlog(self) -> int:
        """Number of messages in the relay cache."""
        with self._lock:
            return sum(1 for _ in self._relay)

    def offered_to_anyone(self) -> set[bytes]:
        """Hashes of what a perfect mirror has or can still get.

        These were handed out, or stand in a cache or in the store.
        """
        with self._lock:
            cached = {one.hash for _, cache in self._caches() for one in cache}
            handed = {one.hash for one in self._handed}
            return handed | cached | self._store.messages().keys()

    def only_in_pages(self) -> set[bytes]:
        """Hashes of what a cleared page held and the store does not: once is all."""
        with self._lock:
            handed = {
                one.hash for one in self._handed if one.endpoint is not Endpoint.STORE
            }
            return handed - self._store.messages().keys()

    def lost(self) -> set[bytes]:
        """Hashes of what reached the node and nobody can get any more."""
        obtainable = self.offered_to_anyone()
        return {one.hash for one in self.dropped} - obtainable

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

    async def _subscribe_filter(self, request: Request) -> Response:
        def subscribe(asked: _Subscription) -> Response:
            self._filter_topics.update(
                (asked.pubsub_topic, topic) for topic in asked.content_filters
            )
            told = {"requestId": asked.request_id, "statusDesc": "OK"}
            return _json(msgspec.json.encode(told))

        return await self._accept(
            Endpoint.SUBSCRIBE_FILTER, request, _Subscription, subscribe
        )

    async def _read_relay(self, request: Request) -> Response:
        def take(topic: str) -> list[_Entry] | Response:
            if topic not in self._relay_topics:
                return PlainTextResponse("", 404)
            return self._relay.take(lambda one: one.pubsub_topic == topic)

        return await self._give_page(Endpoint.RELAY, request, take)

    async def _read_filter(self, request: Request) -> Response:
        def take(topic: str) -> list[_Entry] | Response:
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
            response = accept(asked)
        if fault.body is not None:
            response = _json(fault.body)
        return self._done(endpoint, response)

    async def _give_page(
        self,
        endpoint: Endpoint,
        request: Request,
        take: Callable[[str], list[_Entry] | Response],
    ) -> Response:
        fault, refusal = self._begin(endpoint, request)
        if refusal is not None:
            return self._done(endpoint, refusal)
        # A topic is one percent-encoded segment: slashes within it are not seen.
        if request.scope["raw_path"].count(b"/") != endpoint.count("/") + 1:
            return self._done(endpoint, PlainTextResponse("", 404))
        with self._lock:
            taken = take(request.path_params["topic"])
        if isinstance(taken, Response):
            return self._done(endpoint, taken)
        sent: list[_Entry] = []
        try:
            await asyncio.sleep(fault.delay_s)
            items = [(one, _message_json(one.message)) for one in taken]
            response, held = _page(b"[", _disturb(items, fault), b"]", fault)
            if not await request.is_disconnected():
                sent = held
        finally:
            # Also when the node goes down meanwhile: what was taken is gone.
            self._note_taken(endpoint, taken, sent)
        return self._done(endpoint, response)

    def _note_taken(
        self, endpoint: Endpoint, taken: list[_Entry], sent: list[_Entry]
    ) -> None:
        arrived = {one.hash for one in sent}
        with self._lock:
            at_ns = self._now_ns()
            self._handed.extend(HandedOut(at_ns, endpoint, one.hash) for one in sent)
            for one in taken:
                if one.hash not in arrived:
                    self._drop(endpoint, one.hash, Cause.ANSWER)

    async def _read_store(self, request: Request) -> Response:
        endpoint = Endpoint.STORE
        fault, refusal = self._begin(endpoint, request)
        if refusal is not None:
            return self._done(endpoint, refusal)
        await asyncio.sleep(fault.delay_s)
        if fault.store_status is not None:
            told = _store_head(fault.store_status, "as injected") + b"[]}"
            return self._done(endpoint, _json(told, fault.retry_after))
        if fault.body is not None:
            return self._done(endpoint, _json(fault.body))
        try:
            query = _StoreQuery.read(request.query_params)
            with self._lock:
                rows, cursor = self._store.find(query)
        except _BadQuery as error:
            return self._done(endpoint, PlainTextResponse(str(error), error.status))
        items = _disturb(
            [(one, _stored_json(one, query.include_data, fault)) for one in rows], fault
        )
        tail = b"]"
        if cursor is not None:
            tail += b',"paginationCursor":"%s"' % _hash_text(cursor, fault).encode()
        response, sent = _page(_store_head(200, "OK") + b"[", items, tail + b"}", fault)
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
        """Return the fault of a call, and its answer if it fails at once."""
        with self._lock:
            waiting = self._faults[endpoint]
            lasting = self._lasting_faults.get(endpoint, NO_FAULT)
            fault = waiting.popleft() if waiting else lasting
        if self._authorization not in ("", request.headers.get("Authorization")):
            return fault, PlainTextResponse("unauthorized", 401)
        if fault.status is not None:
            response = PlainTextResponse("as injected", fault.status)
            return fault, _retry_after(response, fault.retry_after)
        return fault, None

    def _done(self, endpoint: Endpoint, response: Response) -> Response:
        with self._lock:
            self._calls.append(Call(self._now_ns(), endpoint, response.status_code))
        return response

    def _caches(self) -> list[tuple[Endpoint, _Cache]]:
        return [(Endpoint.RELAY, self._relay), (Endpoint.FILTER, self._filter)]

    def _drop(self, endpoint: Endpoint | None, message_hash: bytes, why: Cause) -> None:
        self._dropped.append(Dropped(self._now_ns(), endpoint, message_hash, why))


@dataclass(frozen=True)
class _Entry:
    hash: bytes
    pubsub_topic: str
    message: WakuMessage


class _Cache:
    """Messages of all topics, each once, up to a capacity."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: dict[WakuMessage, _Entry] = {}

    def __iter__(self) -> Iterator[_Entry]:
        return iter(self._entries.values())

    def add(self, entry: _Entry) -> _Entry | None:
        """Add a message; return the one that was dropped for it, or None."""
        if entry.message in self._entries:
            return None
        evicted = None
        if len(self._entries) >= self._capacity:
            oldest = min(self._entries, key=lambda one: one.timestamp_ns)
            evicted = self._entries.pop(oldest)
        self._entries[entry.message] = entry
        return evicted

    def take(self, wanted: Callable[[_Entry], bool] = lambda _: True) -> list[_Entry]:
        """Remove messages and return them."""
        taken = [one for one in self if wanted(one)]
        for one in taken:
            del self._entries[one.message]
        return taken


class _BadQuery(ValueError):
    """A store refuses a query, with an HTTP status."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class _StoreQuery:
    include_data: bool
    pubsub_topic: str
    content_topics: frozenset[str]
    start_ns: int
    end_ns: int
    hashes: frozenset[bytes]
    cursor: bytes | None
    page_size: int
    ascending: bool

    @classmethod
    def read(cls, given: QueryParams) -> Self:
        cursor = given.get("cursor")
        page_size = _integer(given, "pageSize", DEFAULT_PAGE_SIZE)
        return cls(
            include_data=given.get("includeData", "false") == "true",
            # The handler decodes what the server has decoded before.
            pubsub_topic=unquote_plus(given.get("pubsubTopic", "")),
            content_topics=frozenset(
                text
                for text in unquote_plus(given.get("contentTopics", "")).split(",")
                if text
            ),
            start_ns=max(_integer(given, "startTime", 0), 0) or _MIN_NS,
            end_ns=max(_integer(given, "endTime", 0), 0) or _MAX_NS,
            hashes=frozenset(
                _read_hash(text) for text in given.get("hashes", "").split(",") if text
            ),
            cursor=_read_hash(cursor) if cursor else None,
            page_size=min(page_size, MAX_PAGE_SIZE) or DEFAULT_PAGE_SIZE,
            ascending=given.get("ascending", "true") == "true",
        )

    def wants(self, entry: _Entry) -> bool:
        return (
            self.pubsub_topic in ("", entry.pubsub_topic)
            and (
                not self.content_topics
                or entry.message.content_topic in self.content_topics
            )
            and (not self.hashes or entry.hash in self.hashes)
        )


class _Store:
    """Messages ordered by sender's time and hash."""

    def __init__(self) -> None:
        self._entries: dict[bytes, _Entry] = {}
        self._order: list[tuple[int, bytes]] = []

    def messages(self) -> dict[bytes, WakuMessage]:
        return {one.hash: one.message for one in self._entries.values()}

    def put(self, entry: _Entry) -> None:
        if entry.hash not in self._entries:
            self._entries[entry.hash] = entry
            insort(self._order, _position(entry))

    def find(self, query: _StoreQuery) -> tuple[list[_Entry], bytes | None]:
        """A page, oldest first, and the cursor to the next."""
        begin = bisect_left(self._order, (query.start_ns, b""))
        end = bisect_left(self._order, (query.end_ns + 1, b""))
        if query.cursor is not None:
            if len(query.content_topics) > MAX_CONTENT_TOPICS:
                raise _BadQuery("too many content topics", 500)
            last = self._entries.get(query.cursor)
            if last is None:
                raise _BadQuery("cursor not found", 500)
            if query.ascending:
                begin = max(begin, bisect_right(self._order, _position(last)))
            else:
                end = min(end, bisect_left(self._order, _position(last)))
        along: Iterable[int] = range(begin, end)
        if not query.ascending:
            along = reversed(range(begin, end))
        entries = (self._entries[self._order[index][1]] for index in along)
        wanted = (one for one in entries if query.wants(one))
        rows = list(islice(wanted, query.page_size + 1))
        page = rows[: query.page_size]
        cursor = page[-1].hash if len(rows) > len(page) else None
        return page if query.ascending else page[::-1], cursor


def _position(entry: _Entry) -> tuple[int, bytes]:
    return entry.message.timestamp_ns, entry.hash


class _Subscription(msgspec.Struct, rename="camel"):
    request_id: str
    content_filters: list[str]
    pubsub_topic: str = ""


_Item = tuple[_Entry | None, bytes]
"""A message and its JSON; None for what only a fault put there."""


def _disturb(items: Sequence[_Item], fault: Fault) -> list[_Item]:
    if fault.reordered:
        items = items[::-1]
    if fault.duplicated:
        items = [*items, *items]
    middle = len(items) // 2
    extra: list[_Item] = [(None, raw) for raw in fault.extra]
    return [*items[:middle], *extra, *items[middle:]]


def _page(
    head: bytes, items: Sequence[_Item], tail: bytes, fault: Fault
) -> tuple[Response, list[_Entry]]:
    """Return the answer, and the messages that it contains completely."""
    if fault.body is not None:
        return _json(fault.body), []
    body = head + b",".join(raw for _, raw in items) + tail
    if not fault.cut:
        return _json(body), [one for one, _ in items if one is not None]
    whole = items[: len(items) // 2]
    kept = len(head) + sum(len(raw) + 1 for _, raw in whole)
    if len(whole) < len(items):
        kept += len(items[len(whole)][1]) // 2
    return _CutResponse(body, kept), [one for one, _ in whole if one is not None]


class _CutResponse(Response):
    """Announces a complete body and sends only its beginning."""

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


def _json(body: bytes, retry_after: str | None = None) -> Response:
    return _retry_after(Response(body, media_type="application/json"), retry_after)


def _retry_after(response: Response, value: str | None) -> Response:
    if value is not None:
        response.headers["Retry-After"] = value
    return response


def _message_json(message: WakuMessage) -> bytes:
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


def _stored_json(entry: _Entry, include_data: bool, fault: Fault) -> bytes:
    told: dict[str, Any] = {"messageHash": _hash_text(entry.hash, fault)}
    if fault.wrong_hash:
        told["messageHash"] = _hash_text(entry.hash[::-1], fault)
    if include_data:
        told["message"] = msgspec.Raw(_message_json(entry.message))
        told["pubsubTopic"] = entry.pubsub_topic
    return msgspec.json.encode(told)


def _store_head(status: int, text: str) -> bytes:
    told = {"requestId": "", "statusCode": status, "statusDesc": text}
    return msgspec.json.encode(told)[:-1] + b',"messages":'


def _hash_text(message_hash: bytes, fault: Fault) -> str:
    if fault.base64_hashes:
        return b64encode(message_hash).decode()
    return f"0x{message_hash.hex()}"


def _read_hash(text: str) -> bytes:
    try:
        decoded = bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        decoded = b""
    if len(decoded) != 32:
        message = f"waku message hash parsing error: {text}"
        raise _BadQuery(message)
    return decoded


def _integer(given: QueryParams, name: str, default: int) -> int:
    text = given.get(name, "")
    try:
        return int(text) if text else default
    except ValueError:
        message = f"{name} parsing error: {text}"
        raise _BadQuery(message) from None
