"""The client of a node's REST API over real HTTP: all but the store."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.utils import formatdate
from pathlib import Path

import msgspec
import pytest
from httpx._decoders import SUPPORTED_DECODERS, ContentDecoder

from connectors.waku_rest.answers import Page, Undecodables
from connectors.waku_rest.client import MAX_ANSWER_BYTES, NodeClient
from connectors.waku_rest.connection import BadSettings, NodeSettings, open_client
from connectors.waku_rest.errors import (
    BadAnswer,
    NodeRefused,
    NodeUnreachable,
    NotSubscribed,
)
from sds_core.waku import RELIABLE_CHANNEL_META, WakuMessage
from tests.support.tls import Authority
from tests.support.waku_node import ConformanceNode, Endpoint, Fault
from tests.support.waku_rest.asking import (
    SHARD,
    TOPIC,
    ask,
    look,
    message,
    offer,
    subscribe,
    take,
)

AUTHORIZATION = "Bearer b0nd"


# Relay


def test_relay_page_has_all_messages_and_is_read_once(node: ConformanceNode) -> None:
    """Every field is read; the second read returns nothing."""
    full = WakuMessage(b"\0\xff", TOPIC, -5, 1, RELIABLE_CHANNEL_META, True)
    bare = WakuMessage(b"", TOPIC)
    subscribe(node)
    for one in (full, bare):
        node.offer(one, pubsub_topic=SHARD)
    assert take(node) == Page([full, bare], Undecodables())
    assert take(node) == Page([], Undecodables())


def test_restarted_node_answers_that_it_is_not_subscribed() -> None:
    """The error names the topic, and subscribing again helps."""
    with ConformanceNode() as node:
        subscribe(node)
        node.restart()
        with pytest.raises(NotSubscribed) as caught:
            take(node)
        assert (caught.value.topic, caught.value.status) == (SHARD, 404)
        subscribe(node)
        assert take(node) == Page([], Undecodables())


def test_invalid_pubsub_topic_is_refused(node: ConformanceNode) -> None:
    """The error has the node's message."""
    with pytest.raises(NodeRefused, match="Invalid pubsub topic") as caught:
        ask(node, lambda client: client.subscribe_relay(["/waku/2/default"]))
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b'{"contentTopic":"/a/1/b/c"}', "payload"),
        (b'{"payload":"AQ=="}', "contentTopic"),
        (b'{"payload":"!","contentTopic":"/a/1/b/c"}', "base64"),
        (b'{"payload":"AQ==","contentTopic":7}', "str"),
        (b'{"payload":"AQ==","contentTopic":"","timestamp":9223372036854775808}', "<="),
        (b'{"payload":"AQ==","contentTopic":"","timestamp":"1"}', "int"),
        (b'{"payload":"AQ==","contentTopic":"\xff"}', "utf-8"),
        (b'{"payload":"AQ==","contentTopic":x}', "malformed"),
        (b'"[{\\"], {"', "object"),
        (b"null", "null"),
        (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "recursion"),
    ],
)
def test_bad_message_does_not_lose_the_others_of_its_page(
    node: ConformanceNode, bad: bytes, reason: str
) -> None:
    """The node has cleared the page, so good ones are returned, bad ones counted."""
    subscribe(node)
    offered = offer(node, 4)
    node.inject(Endpoint.RELAY, Fault(extra=[bad]))
    page = take(node)
    assert page.messages == offered
    assert page.broken_off == ""
    assert page.undecodable.count == 1
    assert reason in page.undecodable.reason


def test_absent_fields_and_null_are_the_same(node: ConformanceNode) -> None:
    """Only payload and content topic are required."""
    nulls = ",".join(
        f'"{name}":null' for name in ("version", "timestamp", "meta", "ephemeral")
    )
    subscribe(node)
    node.inject(
        Endpoint.RELAY,
        Fault(
            extra=[
                b'{"payload":"AQ==","contentTopic":"t","proof":"AA=="}',
                b'{"payload":"AQ==","contentTopic":"t",%s}' % nulls.encode(),
            ]
        ),
    )
    assert take(node) == Page([WakuMessage(b"\1", "t")] * 2, Undecodables())


def test_incomplete_page_gives_the_messages_that_arrived(node: ConformanceNode) -> None:
    """It says that some are missing; the node has cleared them."""
    subscribe(node)
    offered = offer(node, 5)
    node.inject(Endpoint.RELAY, Fault(cut=True))
    page = take(node)
    assert page.messages == offered[:2]
    assert page.undecodable.count == 0
    assert "closed" in page.broken_off
    assert take(node) == Page([], Undecodables())


def test_page_without_any_message_may_be_lost(node: ConformanceNode) -> None:
    """The error says that the node may have cleared a page."""
    subscribe(node)
    offer(node, 1)
    node.inject(Endpoint.RELAY, Fault(cut=True))
    with pytest.raises(NodeUnreachable) as caught:
        take(node)
    assert caught.value.may_have_arrived


@pytest.mark.parametrize(
    ("body", "count"), [(b'[{"payload":"","contentTopic":"t"},{"pay', 1), (b"[", None)]
)
def test_damaged_json_gives_the_complete_messages(
    node: ConformanceNode, body: bytes, count: int | None
) -> None:
    """Even if the connection did not break."""
    subscribe(node)
    node.inject(Endpoint.RELAY, Fault(body=body))
    if count is None:
        with pytest.raises(BadAnswer):
            take(node)
    else:
        page = take(node)
        assert len(page.messages) == count
        assert page.broken_off


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b'{"payload":[1,2]}', b"\xff", b"[]]"]
)
def test_answer_of_another_server_is_an_error(
    node: ConformanceNode, body: bytes
) -> None:
    """One line names node and request, and says what to check."""
    subscribe(node)
    node.inject(Endpoint.RELAY, Fault(body=body))
    with pytest.raises(BadAnswer, match="check the URL") as caught:
        take(node)
    assert caught.value.node == node.url
    assert node.url in str(caught.value)
    assert "GET /relay/v1/messages/%2Fwaku%2F2" in str(caught.value)
    assert "\n" not in str(caught.value)


# Filter


def test_filter_gives_the_messages_of_a_content_topic(node: ConformanceNode) -> None:
    """Topics may have spaces, percent signs and non-ASCII letters."""
    ask(node, lambda client: client.subscribe_filter(SHARD, [TOPIC]))
    offered = offer(node, 2)
    node.offer(message(9, "/app/1/other/proto"), pubsub_topic=SHARD)
    page = ask(node, lambda client: client.filter_messages(TOPIC))
    assert page == Page(offered, Undecodables())


def test_filter_that_lost_its_subscription_is_recognised(node: ConformanceNode) -> None:
    """It answers 400 where relay answers 404."""
    with pytest.raises(NotSubscribed) as caught:
        ask(node, lambda client: client.filter_messages(TOPIC))
    assert (caught.value.topic, caught.value.status) == (TOPIC, 400)


def test_filter_subscription_that_failed_with_status_200_is_refused(
    node: ConformanceNode,
) -> None:
    """For some errors only the answer's text says that it failed."""
    answer = b'{"requestId":"1","statusDesc":"UNKNOWN"}'
    node.inject(Endpoint.SUBSCRIBE_FILTER, Fault(body=answer))
    with pytest.raises(NodeRefused, match="UNKNOWN"):
        ask(node, lambda client: client.subscribe_filter(SHARD, [TOPIC]))


# Errors of any endpoint


@pytest.mark.parametrize(
    ("retry_after", "expected"),
    [
        ("12", 12.0),
        (None, None),
        ("soon", None),
        ("-5", None),
        ("9" * 40, None),
        ("Mon, 01 Jan 2024 00:00:00 +99999999999999", None),
    ],
)
def test_refusal_has_the_time_until_a_retry(
    node: ConformanceNode, retry_after: str | None, expected: float | None
) -> None:
    """In seconds; anything that is no number is ignored."""
    node.inject(Endpoint.RELAY, Fault(status=429, retry_after=retry_after))
    with pytest.raises(NodeRefused, match="ask less often") as caught:
        take(node)
    assert (caught.value.status, caught.value.retry_after_s) == (429, expected)


@pytest.mark.parametrize(("ahead_s", "least", "most"), [(60, 55, 61), (-60, 0, 0)])
def test_retry_date_is_relative_to_the_nodes_clock(
    node: ConformanceNode, ahead_s: int, least: float, most: float
) -> None:
    """An HTTP date, compared with the `Date` of the same answer."""
    until = formatdate(time.time_ns() / 1e9 + ahead_s, usegmt=True)
    node.inject(Endpoint.STORE, Fault(status=503, retry_after=until))
    with pytest.raises(NodeRefused) as caught:
        look(node)
    assert caught.value.retry_after_s is not None
    assert least <= caught.value.retry_after_s <= most


def test_request_succeeds_after_the_failure_ended(node: ConformanceNode) -> None:
    """Refused reads clear no page."""
    subscribe(node)
    offered = offer(node, 1)
    node.inject(Endpoint.RELAY, Fault(status=500), calls=2)
    for _ in range(2):
        with pytest.raises(NodeRefused, match="see the node's log"):
            take(node)
    assert take(node).messages == offered


def test_node_that_is_down_is_unreachable() -> None:
    """No request was sent, so no page is lost."""
    with ConformanceNode() as node:
        pass
    with pytest.raises(NodeUnreachable, match="check the URL") as caught:
        take(node)
    assert not caught.value.may_have_arrived
    assert isinstance(caught.value, ConnectionError)
    assert str(caught.value).startswith(f"node {node.url}: GET /relay/v1/messages/")


def test_node_that_does_not_answer_in_time_is_unreachable(
    node: ConformanceNode,
) -> None:
    """It may have cleared its page."""
    subscribe(node)
    offer(node, 1)
    node.inject(Endpoint.RELAY, Fault(delay_s=0.8))
    with pytest.raises(NodeUnreachable, match="ReadTimeout") as caught:
        take(node, timeout_s=0.5)
    assert caught.value.may_have_arrived
    assert take(node) == Page([], Undecodables())


def test_server_that_speaks_no_http_is_unreachable() -> None:
    """It closes every connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"

        async def run() -> None:
            async with open_client(NodeSettings(url)) as http:
                asking = asyncio.create_task(NodeClient(url, http).relay_messages("t"))
                door, _ = await asyncio.to_thread(listener.accept)
                await asyncio.to_thread(door.recv, 1)
                door.close()
                await asking

        with pytest.raises(NodeUnreachable) as caught:
            asyncio.run(run())
    assert caught.value.may_have_arrived


# Settings


def test_authorization_is_sent_and_never_printed() -> None:
    """Neither in the settings' repr nor in an error."""
    with ConformanceNode(authorization=AUTHORIZATION) as node:
        with pytest.raises(NodeRefused, match="check the authorization") as caught:
            take(node, authorization=f"{AUTHORIZATION}?")
        assert caught.value.status == 401
        assert AUTHORIZATION not in str(caught.value) + repr(caught.value)
        with pytest.raises(NotSubscribed):
            take(node, authorization=AUTHORIZATION)
        assert AUTHORIZATION not in repr(
            NodeSettings(node.url, authorization=AUTHORIZATION)
        )


def test_certificate_must_be_trusted(tmp_path: Path) -> None:
    """A self-signed certificate needs its file in the settings."""
    authority = Authority(tmp_path)
    with ConformanceNode(certificate=authority.issue("127.0.0.1")) as node:
        assert node.url.startswith("https://")
        with pytest.raises(NodeUnreachable, match=r"(?i)certificate") as caught:
            take(node)
        assert not caught.value.may_have_arrived
        with pytest.raises(NotSubscribed):
            take(node, ca_file=authority.ca_file)


def test_certificate_must_be_for_the_name_in_the_url(tmp_path: Path) -> None:
    """Nothing is sent to a node of another name; the line says what to do."""
    authority = Authority(tmp_path)
    with ConformanceNode(certificate=authority.issue("node.example.org")) as node:
        with pytest.raises(NodeUnreachable) as caught:
            take(node, ca_file=authority.ca_file, authorization=AUTHORIZATION)
        assert not caught.value.may_have_arrived
        assert node.calls == []
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(f"node {node.url}: GET /relay/v1/messages/")
    assert "not valid for '127.0.0.1'" in text
    assert "in --rest, use a name from the certificate" in text
    assert AUTHORIZATION not in text


@contextmanager
def answered_by(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that answers one connection; yields its host and port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                answer(connection)

        server = threading.Thread(target=serve)
        server.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        server.join()


def take_from(url: str, ca_file: Path | None = None) -> Page:
    """Read a page of the relay."""

    async def run() -> Page:
        async with open_client(NodeSettings(url, ca_file=ca_file)) as http:
            return await NodeClient(url, http).relay_messages(SHARD)

    return asyncio.run(run())


@pytest.mark.parametrize("demands_certificate", [True, False])
def test_tls_that_fails_after_the_handshake_is_an_unreachable_node(
    tmp_path: Path, demands_certificate: bool
) -> None:
    """In TLS 1.3, the demand for a client's certificate arrives with the answer."""
    authority = Authority(tmp_path)
    identity = authority.issue("127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate_file, identity.key_file)
    if demands_certificate:
        context.verify_mode = ssl.CERT_REQUIRED

    def answer(connection: socket.socket) -> None:
        with connection.dup() as raw:
            try:
                with context.wrap_socket(connection, server_side=True) as stream:
                    stream.recv(65_536)
                    # A record with a wrong checksum.
                    raw.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))
            finally:
                # The client must read the answer before the connection is reset.
                while raw.recv(65_536):
                    pass

    with (
        answered_by(answer) as place,
        pytest.raises(NodeUnreachable, match="SSL") as caught,
    ):
        take_from(f"https://{place}", authority.ca_file)
    assert caught.value.may_have_arrived


@pytest.mark.parametrize("target", ["http://xn--a/", "http://a:99999/", "http://[::1/"])
def test_redirect_to_an_invalid_address_is_an_error_of_the_node(target: str) -> None:
    """The client reads the address, although it never follows it."""

    def answer(connection: socket.socket) -> None:
        connection.recv(65_536)
        head = f"HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n"
        connection.sendall(head.encode())

    with answered_by(answer) as place, pytest.raises((NodeUnreachable, BadAnswer)):
        take_from(f"http://{place}")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"url": "127.0.0.1:8645"}, "is not the URL of a node"),
        ({"url": "http://127.0.0.1:86450"}, "is not the URL of a node"),
        ({"url": "http://127.0.0.1:0"}, "is not the URL of a node"),
        ({"url": "http://xn--a/"}, "is not the URL of a node"),
        ({"url": "ftp://127.0.0.1"}, "is not the URL of a node"),
        ({"url": "http://"}, "is not the URL of a node"),
        ({"url": "http://[::1"}, "is not the URL of a node"),
        ({"url": "http://127.0.0.1/?a=1"}, "is not the URL of a node"),
        (
            {"url": "http://me:s3cret@127.0.0.1"},
            "give user and password as authorization",
        ),
        ({"url": "http://h", "authorization": "s3cret\nX: y"}, "one line"),
        ({"url": "http://h", "ca_file": Path("/nowhere/ca.pem")}, "/nowhere/ca.pem"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    settings: dict[str, object], text: str
) -> None:
    """When a command starts, without printing a secret."""
    with pytest.raises(BadSettings, match=text) as caught:
        NodeSettings(**settings)
    assert "s3cret" not in str(caught.value)


def test_proxy_that_cannot_be_used_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """When a command starts, and later, when a repeated audit makes a new client."""
    settings = NodeSettings("http://h")
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    for use in (lambda: NodeSettings("http://h"), lambda: open_client(settings)):
        with pytest.raises(BadSettings, match="ALL_PROXY"):
            use()


def test_certificates_may_become_unreadable_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repeated audit makes a new client each time; the error names the file."""
    given = NodeSettings("http://h", ca_file=Authority(tmp_path).ca_file)
    default = NodeSettings("http://h")
    (tmp_path / "ca.pem").write_bytes(b"")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    for settings, text in ((given, "ca.pem"), (default, "SSL_CERT_FILE")):
        with pytest.raises(BadSettings, match=text):
            open_client(settings)


def test_cookies_are_neither_kept_nor_sent() -> None:
    """A node that sets new ones in each answer would fill the memory."""

    async def run() -> None:
        seen: list[bytes] = []

        async def answer(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            seen.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(
                b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n"
                b"Set-Cookie: a%d=x; Max-Age=999\r\n\r\n[]" % len(seen)
            )
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server, open_client(NodeSettings(url)) as http:
            for _ in range(3):
                await NodeClient(url, http).relay_messages(SHARD)
            assert len(http.cookies) == 0
        assert len(seen) == 3
        assert not any(b"cookie" in one.lower() for one in seen)

    asyncio.run(run())


def test_message_keeps_its_hash_through_json(node: ConformanceNode) -> None:
    """All 64 bits of time, and bytes of any value."""
    subscribe(node)
    odd = WakuMessage(bytes(range(256)), '/ü/1/\U0001f600\n"\\/x', 2**63 - 1)
    twin = msgspec.structs.replace(odd, timestamp_ns=-(2**63))
    told = {node.offer(one, pubsub_topic=SHARD) for one in (odd, twin)}
    assert {one.hash_on(SHARD) for one in take(node).messages} == told


def test_slow_answer_is_not_awaited_for_ever() -> None:
    """Each byte comes in time, but the whole answer has six times the timeout."""

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n[")
        try:
            while not reader.at_eof():
                writer.write(b" ")
                await asyncio.sleep(0.02)
        finally:
            writer.close()

    async def ask() -> None:
        server = await asyncio.start_server(drip, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        settings = NodeSettings(f"http://127.0.0.1:{port}", timeout_s=0.2)
        async with server, open_client(settings) as http:
            await NodeClient(settings.url, http).relay_messages("/waku/2/rs/1/0")

    with pytest.raises(NodeUnreachable) as caught:
        asyncio.run(asyncio.wait_for(ask(), 60))
    assert caught.value.may_have_arrived


def answered(body: bytes, encoding: str) -> Page:
    """Return a relay page that a server answers with, encoded as a header says."""
    head = (
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        f"Content-Encoding: {encoding}\r\nContent-Length: {len(body)}\r\n\r\n"
    )

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    async def ask() -> Page:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        settings = NodeSettings(f"http://127.0.0.1:{port}")
        async with server, open_client(settings) as http:
            return await NodeClient(settings.url, http).relay_messages(SHARD)

    return asyncio.run(ask())


def test_compressed_page_is_read() -> None:
    """A proxy before the node may compress."""
    body = gzip.compress(b'[{"payload":"AQ==","contentTopic":"t"}]')
    assert answered(body, "gzip").messages == [WakuMessage(b"\1", "t")]


def test_compressed_page_is_unpacked_up_to_a_limit() -> None:
    """A hundred kilobytes may hold a hundred megabytes."""
    message_json = b'{"payload":"AQ==","contentTopic":"t"}'
    spaces = b" " * (MAX_ANSWER_BYTES + 1)
    page = answered(gzip.compress(b"[%b,%b]" % (message_json, spaces)), "gzip")
    assert page.messages == [WakuMessage(b"\1", "t")]
    assert page.broken_off == f"the answer has more than {MAX_ANSWER_BYTES} bytes"


def test_page_that_is_compressed_twice_is_refused_unread() -> None:
    """Each encoding multiplies the size by up to a thousand."""
    body = gzip.compress(gzip.compress(b'[{"payload":"AQ==","contentTopic":"t"}]'))
    with pytest.raises(BadAnswer, match="compressed more than once: gzip, gzip"):
        answered(body, "gzip, gzip")


class Bomb(ContentDecoder):
    """A decoder that expands one received byte to megabytes, as brotli can."""

    def decode(self, data: bytes) -> bytes:
        """Expand."""
        return bytes(len(data) * 2**20)

    def flush(self) -> bytes:
        """Return nothing more."""
        return b""


@pytest.mark.parametrize("encoding", ["br", "zstd", "BR"])
def test_page_of_an_unasked_compression_is_refused_unread(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If their packages are installed, httpx expands them without a useful limit."""
    monkeypatch.setitem(SUPPORTED_DECODERS, encoding.lower(), Bomb)
    with pytest.raises(BadAnswer, match=f"has the encoding {encoding}"):
        answered(bytes(200), encoding)
