"""Requests to other programs, with the logins of ``.netrc``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import bcrypt
import certifi
import httpx
import pytest

from connectors.http_client import get
from connectors.web.access import Access, WebConfig
from connectors.web.server import WebServer
from connectors.web.side_apps import create_mirror_app
from sds_core.mirror.figures import MirrorFigures


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server that alice may read."""
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    config = WebConfig(users={"alice": hashed})
    app = create_mirror_app(MirrorFigures())
    with WebServer(app, port=0, access=Access(lambda: config)) as server:
        yield f"{server.url}/metrics"


@pytest.mark.parametrize(
    ("logins", "status"),
    [
        ("machine 127.0.0.1 login alice password secret", 200),
        ("machine 127.0.0.1 login bob password secret", 401),
        ("machine elsewhere login alice password secret", 401),
        (None, 401),
    ],
)
def test_login_is_that_of_the_users_file(
    url: str,
    logins: str | None,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a file, or another host's, there is none."""
    file = tmp_path / "netrc"
    if logins is not None:
        file.write_text(logins)
        file.chmod(0o600)
    monkeypatch.setenv("NETRC", str(file))
    answer = get(url, params={"name[]": "sds_mirror_paused", "x": None}, timeout=30)
    # An address waits after a wrong password.
    assert answer.status_code in (status, 429 if status == 401 else status)


def test_file_that_is_none_is_named(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an error of the request, which every caller prints in one line."""
    (tmp_path / "netrc").write_text("machine")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with pytest.raises(httpx.RequestError, match="that NETRC names, cannot be read"):
        get(url, timeout=30)


def test_certificates_that_are_missing_are_named(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request reads them again; they may be missing while they are replaced."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    with pytest.raises(httpx.RequestError, match=r"No such file.*SSL_CERT_FILE"):
        get(url, timeout=30)
    (tmp_path / "ca.pem").write_bytes(b"")
    with pytest.raises(httpx.RequestError, match="SSL_CERT_FILE"):
        get(url, timeout=30)
    (tmp_path / "ca.pem").write_bytes(Path(certifi.where()).read_bytes())
    assert get(url, timeout=30).status_code == 401


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "gopher://h", "http://[::1"])
def test_proxy_that_cannot_be_used_is_named(
    url: str, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For SOCKS, httpx needs a package that is not installed."""
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(httpx.RequestError, match=r"cannot be used.*ALL_PROXY"):
        get(url, timeout=30)
