"""TLS: certificates of the server and of clients, handshakes, a real Prometheus."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import bcrypt
import httpx
import pytest
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from connectors.web.access import Access
from connectors.web.config_file import WebConfigFile
from connectors.web.connection import DEFAULT_LIMITS, ClientLimits
from connectors.web.server import WebServer
from connectors.web.side_apps import create_mirror_app
from sds_core.mirror.figures import MirrorFigures
from tests.support.prometheus import running_prometheus
from tests.support.tls import Authority
from tests.support.waiting import wait_for
from tests.support.web.connections import connecting, is_closed

TLS = "tls_server_config: {cert_file: 127.0.0.1.pem, key_file: 127.0.0.1.key"
USERS = (
    f"basic_auth_users: {{alice: '{bcrypt.hashpw(b'pw', bcrypt.gensalt(4)).decode()}'}}"
)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """An authority that has issued the server's certificate."""
    made = Authority(tmp_path)
    made.issue("127.0.0.1")
    return made


@contextmanager
def served(
    app: ASGIApp, directory: Path, config: str, limits: ClientLimits = DEFAULT_LIMITS
) -> Iterator[str]:
    """Serve an application with a web configuration; gives the URL."""
    file = directory / "web.yml"
    file.write_text(config)
    with WebServer(app, port=0, access=Access(WebConfigFile(file)), limits=limits) as s:
        yield s.url


def trusting(authority: Authority) -> ssl.SSLContext:
    """What a client trusts."""
    return ssl.create_default_context(cafile=authority.ca_file)


@pytest.mark.needs("prometheus")
def test_a_prometheus_scrapes_over_tls_with_a_password(
    tmp_path: Path, authority: Authority
) -> None:
    """As its own documentation configures it."""
    app = create_mirror_app(MirrorFigures())
    config = f"{TLS}, min_version: TLS13}}\n{USERS}\n"
    with served(app, tmp_path, config) as url:
        scrape = {
            "job_name": "mirror",
            "scheme": "https",
            "scrape_interval": "100ms",
            "scrape_timeout": "100ms",
            "tls_config": {"ca_file": str(authority.ca_file)},
            "basic_auth": {"username": "alice", "password": "pw"},
            "static_configs": [{"targets": [url.removeprefix("https://")]}],
        }
        with running_prometheus(
            tmp_path / "prometheus", {"scrape_configs": [scrape]}, {}, 300
        ) as prometheus:
            wait_for(prometheus.is_scraping)


def test_plain_requests_and_old_versions_are_refused(
    tmp_path: Path, authority: Authority, stage: object
) -> None:
    """TLS is not optional once there is a certificate."""
    app = create_mirror_app(MirrorFigures())
    with served(app, tmp_path, f"{TLS}, min_version: TLS13}}") as url:
        assert url.startswith("https://127.0.0.1:")
        old = trusting(authority)
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/healthz", verify=old)
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(f"{url}/healthz".replace("https", "http"))
        assert httpx.get(f"{url}/healthz", verify=trusting(authority)).is_success


def test_replaced_certificate_is_used_for_new_connections(
    tmp_path: Path, authority: Authority
) -> None:
    """Without a restart; connections that exist continue."""
    app = create_mirror_app(MirrorFigures())
    with (
        served(app, tmp_path, f"{TLS}}}") as url,
        httpx.Client(base_url=url, verify=trusting(authority)) as old,
    ):
        assert old.get("/healthz").is_success
        renewed = Authority(tmp_path)
        renewed.issue("127.0.0.1")
        assert httpx.get(f"{url}/healthz", verify=trusting(renewed)).is_success
        assert old.get("/healthz").is_success


def test_client_certificate_can_be_required(
    tmp_path: Path, authority: Authority
) -> None:
    """Without one there is no answer, not even of the probe."""
    config = (
        f"{TLS}, client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.pem}}"
    )
    known = authority.issue("client")
    with served(create_mirror_app(MirrorFigures()), tmp_path, config) as url:
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{url}/healthz", verify=trusting(authority))
        context = trusting(authority)
        context.load_cert_chain(known.certificate_file, known.key_file)
        assert httpx.get(f"{url}/healthz", verify=context).is_success


@pytest.mark.parametrize(
    "name", ["client", "192.0.2.7", "2001:db8::7", "a@example.org"]
)
def test_client_certificate_needs_an_allowed_name(
    tmp_path: Path, authority: Authority, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Of each kind, as the exporter toolkit compares it; others have no answer."""
    config = (
        f"{TLS}, client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.pem, "
        f"client_allowed_sans: [other, {name!r}]}}"
    )
    with served(create_mirror_app(MirrorFigures()), tmp_path, config) as url:
        answers = []
        for each in (name, "client-2"):
            known = authority.issue(each)
            context = trusting(authority)
            context.load_cert_chain(known.certificate_file, known.key_file)
            try:
                answers.append(httpx.get(f"{url}/healthz", verify=context).status_code)
            except httpx.TransportError:
                answers.append(0)
    assert answers == [200, 0]
    told = (
        "client_allowed_sans contains none of the names in the certificate (client-2)"
    )
    assert told in caplog.text


def test_handshakes_that_never_end_keep_nobody_out(
    tmp_path: Path, authority: Authority
) -> None:
    """The event loop has no connection before: the oldest are ended all the same."""
    limits = replace(DEFAULT_LIMITS, connections=3)
    app = create_mirror_app(MirrorFigures())
    with served(app, tmp_path, f"{TLS}}}", limits) as url, connecting(url) as connect:
        silent = [connect() for _ in range(20)]
        assert httpx.get(f"{url}/healthz", verify=trusting(authority)).is_success
        # A minute later the time limit of a handshake would end them.
        wait_for(lambda: sum(not is_closed(one) for one in silent) <= 3, 30)


def test_client_that_does_not_read_is_cut_off_with_tls_too(
    tmp_path: Path, authority: Authority
) -> None:
    """What it has not read waits below TLS, where the transport does not show it."""

    async def large(scope: Scope, receive: Receive, send: Send) -> None:
        await Response(b"x" * 50_000_000)(scope, receive, send)

    limits = replace(DEFAULT_LIMITS, request_s=0.2, unread_s=0.2, idle_s=3_600)
    with (
        served(large, tmp_path, f"{TLS}}}", limits) as url,
        connecting(url) as connect,
        trusting(authority).wrap_socket(connect(), server_hostname="127.0.0.1") as deaf,
    ):
        deaf.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_for(lambda: is_closed(deaf))
