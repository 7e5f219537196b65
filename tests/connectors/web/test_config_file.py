"""The web configuration file: what it may set, and how a wrong one is named."""

from __future__ import annotations

import hashlib
import logging
import re
import ssl
from pathlib import Path
from typing import Any

import bcrypt
import pytest

from connectors.web.config_file import BadWebConfig, WebConfigFile
from tests.support.deployment import ROOT
from tests.support.tls import Authority

HASH = "$2b$04$" + "a" * 21 + "O" + "a" * 31
TLS = "tls_server_config:\n  cert_file: localhost.pem\n  key_file: localhost.key\n"


def read(directory: Path, text: str) -> WebConfigFile:
    """The file with a text, beside the certificate of an authority."""
    file = directory / "web.yml"
    file.write_text(text)
    return WebConfigFile(file)


def test_file_of_the_toolkit_is_read(tmp_path: Path) -> None:
    """As its documentation has it; names of files are relative to its directory."""
    Authority(tmp_path).issue("localhost")
    config = read(
        tmp_path,
        f"""{TLS}  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: ca.pem
  min_version: TLS13
http_server_config:
  http2: false
  headers:
    X-Frame-Options: deny
basic_auth_users:
  alice: {HASH}
auth_excluded_paths: [/readyz]
""",
    )()
    assert config.tls is not None
    assert config.tls.minimum_version is ssl.TLSVersion.TLSv1_3
    assert config.needs_certificate
    assert config.needs_login
    assert config.users == {"alice": HASH}
    assert config.headers == {"X-Frame-Options": "deny"}
    assert config.open_paths == {"/readyz"}


def test_examples_of_the_page_are_read(tmp_path: Path) -> None:
    """What users copy from the page works; its tokens and passwords are `try-it`."""
    page = (ROOT / "docs" / "web-access.md").read_text(encoding="utf-8")
    (example, *_) = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    Authority(tmp_path).issue("server")
    config = read(tmp_path, example)()
    assert bcrypt.checkpw(b"try-it", config.users["alice"].encode())
    assert config.tokens["prometheus"] == hashlib.sha256(b"try-it").hexdigest()


def test_empty_file_protects_nothing(tmp_path: Path) -> None:
    """As with the toolkit."""
    config = read(tmp_path, "")()
    assert config.tls is None
    assert not config.needs_login


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: [", "web.yml: while parsing"),
        ("a: !!timestamp secret", "a value does not match the type in its YAML tag"),
        ("a: !!bool secret", "a value does not match the type in its YAML tag"),
        ("- a", "Expected `object`, got `array`"),
        ("basic_auth_user: {}", "unknown field `basic_auth_user`"),
        ("basic_auth_users: {alice: secret}", "'alice' must be a bcrypt hash of cost"),
        (f"basic_auth_users: {{'a:b': {HASH}}}", "'a:b' must not contain a colon"),
        (f"basic_auth_users: {{alice: {HASH.replace('04', '18')}}}", "of cost 4 to 15"),
        (f"basic_auth_users: {{alice: {HASH.replace('O', 'a')}}}", "a bcrypt hash"),
        ("bearer_tokens: {prometheus: secret}", "must be a SHA-256 hash"),
        ("rate_limit: {burst: 20}", "rate_limit is not supported: remove it"),
        (f"{TLS}  cipher_suites: [a]", "cipher_suites is not supported: remove it"),
        (f"{TLS}  client_auth_type: RequestClientCert", "Invalid enum value"),
        (
            f"{TLS}  client_ca_file: ca.pem",
            "set client_ca_file if, and only if, client_auth_type verifies clients",
        ),
        (
            f"{TLS}  client_allowed_sans: [a]",
            "client_allowed_sans needs client_auth_type: RequireAndVerifyClientCert",
        ),
        ("peer_tokens: {mirror-1: secret}", "peer_tokens: the value of 'mirror-1'"),
        (f"{TLS}  min_version: TLS10", "Invalid enum value 'TLS10'"),
        (
            f"{TLS}  min_version: TLS13\n  max_version: TLS12",
            "min_version is above max_version",
        ),
        (
            TLS.replace(".key", ".pem"),
            "check that both files are PEM and belong together",
        ),
        (TLS.replace(".key", ".none"), "cannot be used (No such file"),
        ("http_server_config: {http2: true}", "HTTP/2 is not supported"),
        (
            "http_server_config: {headers: {Server: x}}",
            "'Server' is not one of Content-Sec",
        ),
        (
            'http_server_config: {headers: {X-Frame-Options: "deny\\r\\nA: b"}}',
            "'X-Frame-Options' must be one line of printable ASCII",
        ),
    ],
)
def test_file_that_cannot_be_used_is_named_in_one_line(
    tmp_path: Path, text: str, why: str
) -> None:
    """With the option, and never with a password."""
    Authority(tmp_path).issue("localhost")
    with pytest.raises(BadWebConfig) as caught:
        read(tmp_path, text)
    message = str(caught.value)
    assert message.startswith(str(tmp_path / "web.yml"))
    assert why in message
    assert "\n" not in message
    assert "secret" not in message


def test_changed_file_is_read_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Also a certificate; a wrong file leaves what was before, and is logged once."""
    Authority(tmp_path).issue("localhost")
    file = read(tmp_path, TLS)
    first = file()
    assert file() is first
    Authority(tmp_path).issue("localhost")
    second = file()
    assert second is not first
    with caplog.at_level(logging.ERROR, "sds-monitor"):
        for text in ("basic_auth_users: {alice: secret}", ""):
            (tmp_path / "web.yml").write_text(text)
            assert file() is second
            assert file() is second
    refused = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert [
        one.getMessage().count("the previous settings remain in effect")
        for one in refused
    ] == [1, 1]
    assert "TLS can be switched on or off only with a restart" in caplog.text
    (tmp_path / "web.yml").write_text(f"{TLS}basic_auth_users: {{alice: {HASH}}}\n")
    assert file().needs_login


VERIFYING = (
    f"{TLS}  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.pem\n"
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"basic_auth_users: {{alice: {HASH}}}", ""),
        (f"bearer_tokens: {{prometheus: {'a' * 64}}}", "bearer_tokens: {}"),
        (VERIFYING, TLS),
        (
            VERIFYING,
            VERIFYING.replace("RequireAndVerify", "Verify").replace(
                "ClientCert\n", "ClientCertIfGiven\n"
            ),
        ),
        (f"{VERIFYING}  client_allowed_sans: [a]\n", VERIFYING),
        (f"peer_tokens: {{mirror-1: {'a' * 64}}}", "peer_tokens: {}"),
    ],
    ids=[
        *("emptied", "no-token", "no-certificate", "optional-certificate"),
        *("no-allowed-names", "no-peer-token"),
    ],
)
def test_change_of_the_file_removes_no_protection(
    tmp_path: Path, before: str, after: str, caplog: pytest.LogCaptureFixture
) -> None:
    """An editor empties a file before it writes it; only a restart opens a server."""
    Authority(tmp_path).issue("localhost")
    file = read(tmp_path, before)
    first = file()
    (tmp_path / "web.yml").write_text(after)
    assert file() is first
    assert "can be removed only with a restart" in caplog.text


def test_change_while_files_are_read_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate that is replaced after its use is used by the next call."""
    Authority(tmp_path).issue("localhost")
    load = ssl.SSLContext.load_cert_chain

    def load_and_replace(context: ssl.SSLContext, *files: Any) -> None:
        load(context, *files)
        monkeypatch.undo()
        Authority(tmp_path).issue("localhost")

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", load_and_replace)
    file = read(tmp_path, TLS)
    first = file._config  # noqa: SLF001 - a call would read the files
    assert file() is not first
    assert file() is file()


def test_change_that_names_a_missing_certificate_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The certificate that it names is watched from then."""
    Authority(tmp_path).issue("localhost")
    file = read(tmp_path, TLS)
    first = file()
    (tmp_path / "web.yml").write_text(TLS.replace("localhost", "renewed"))
    assert file() is file() is first
    assert caplog.text.count("the previous settings remain in effect") == 1
    Authority(tmp_path).issue("renewed")
    assert file() is not first
