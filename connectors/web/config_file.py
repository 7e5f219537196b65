"""The web configuration file: TLS, users and headers of all servers.

The format follows Prometheus' exporter toolkit
(prometheus/exporter-toolkit:docs/web-configuration.md), but has two more keys:
`bearer_tokens` and `peer_tokens`.
"""

from __future__ import annotations

import logging
import re
import ssl
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from connectors.sockets.tls import ChosenClientsContext, reason_of
from connectors.web.access import WebConfig
from sds_core.text import one_line, printable, shown

_log = logging.getLogger("sds-monitor")

_UNSUPPORTED = (
    *("cert", "key", "client_ca", "cipher_suites"),
    *("prefer_server_cipher_suites", "curve_preferences", "rate_limit"),
)

_BCRYPT = re.compile(
    r"\$2[aby]\$(0[4-9]|1[0-5])\$[./A-Za-z0-9]{21}[.Oeu][./A-Za-z0-9]{31}"
)
"""A bcrypt hash of cost 4 to 15. With cost 15, the check of a password takes seconds.
With a greater cost, one login could block all other logins. The last character of the
salt is one of four, because it encodes only the last two bits of 16 bytes."""
_PRINTABLE = re.compile("[ -~]*")
_SHA256 = re.compile("[0-9a-f]{64}")
_SHA256_RULE = (
    "a SHA-256 hash in lower-case hexadecimal digits: to create a hash, run `sha256sum`"
)

_VERIFY_MODES = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}

_Version = Literal["TLS12", "TLS13"]
_HEADERS = (
    *("Content-Security-Policy", "Strict-Transport-Security"),
    *("X-Content-Type-Options", "X-Frame-Options", "X-XSS-Protection"),
)


class BadWebConfig(ValueError):
    """The configuration file, or a file it names, is unusable; the message says why."""


class _Tls(msgspec.Struct, forbid_unknown_fields=True):
    cert_file: str
    key_file: str
    client_auth_type: Literal[
        "NoClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert"
    ] = "NoClientCert"
    client_ca_file: str = ""
    client_allowed_sans: list[str] | None = None
    min_version: _Version = "TLS12"
    max_version: _Version = "TLS13"

    def __post_init__(self) -> None:
        if _VERSIONS[self.min_version] > _VERSIONS[self.max_version]:
            raise ValueError("min_version is above max_version: lower min_version")
        if (
            self.client_allowed_sans is not None
            and _VERIFY_MODES[self.client_auth_type] is not ssl.CERT_REQUIRED
        ):
            raise ValueError(
                "client_allowed_sans needs client_auth_type: RequireAndVerifyClientCert"
            )


class _Http(msgspec.Struct, forbid_unknown_fields=True):
    http2: bool = False
    headers: dict[str, str] = {}

    def __post_init__(self) -> None:
        if self.http2:
            raise ValueError("HTTP/2 is not supported: set http2 to false")
        for name in self.headers:
            if name not in _HEADERS:
                message = f"headers: {shown(name)} is not one of {', '.join(_HEADERS)}"
                raise ValueError(message)
        _check("headers", self.headers, _PRINTABLE, "one line of printable ASCII")


class _File(msgspec.Struct, forbid_unknown_fields=True):
    tls_server_config: _Tls | None = None
    http_server_config: _Http = msgspec.field(default_factory=_Http)
    basic_auth_users: dict[str, str] = {}
    bearer_tokens: dict[str, str] = {}
    peer_tokens: dict[str, str] = {}
    auth_excluded_paths: list[str] = []

    def __post_init__(self) -> None:
        for user in self.basic_auth_users:
            # A login is sent as USER:PASSWORD (RFC 7617, 2).
            if ":" in user:
                message = f"basic_auth_users: {shown(user)} must not contain a colon"
                raise ValueError(message)
        _check(
            "basic_auth_users",
            self.basic_auth_users,
            _BCRYPT,
            "a bcrypt hash of cost 4 to 15: to create a hash, run `htpasswd -nBC 10 "
            "USER`",
        )
        _check("bearer_tokens", self.bearer_tokens, _SHA256, _SHA256_RULE)
        _check("peer_tokens", self.peer_tokens, _SHA256, _SHA256_RULE)


class WebConfigFile:
    """A web configuration file, which is reloaded when it has changed.

    If a changed file cannot be used, the previous settings stay in effect, and one line
    of the log gives the reason.

    Args:
        path: The file. Relative paths in the file start at the file's directory.

    Raises:
        BadWebConfig: The file cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._stamp: dict[Path, bytes | None] = {}
        self._certificates: dict[str, Path] = {}
        self._config = self._read()

    def __call__(self) -> WebConfig:
        """Return the current settings; if a file has changed, reload them first."""
        with self._lock:
            # Compare contents, not modification times: after two quick changes, both
            # versions of a file may have the same time.
            if _contents(self._stamp) == self._stamp:
                return self._config
            try:
                config = self._read()
                self._check_change(config)
            except BadWebConfig as error:
                _log.error("%s; the previous settings remain in effect", error)
                return self._config
            self._config = config
            _log.info("%s was read again", self._path)
            return config

    def _check_change(self, new: WebConfig) -> None:
        """Refuse a change that removes protection.

        An editor may empty a file before it writes the new content.
        """
        old = self._config
        if (new.tls is None) != (old.tls is None):
            message = f"{self._path}: TLS can be switched on or off only with a restart"
            raise BadWebConfig(message)
        for what, before, after in (
            ("the last remaining login", old.needs_login, new.needs_login),
            ("the last remaining peer token", old.peer_tokens, new.peer_tokens),
            (
                "the requirement of a client certificate",
                old.needs_certificate,
                new.needs_certificate,
            ),
            ("client_allowed_sans", old.chooses_clients, new.chooses_clients),
        ):
            if before and not after:
                message = f"{self._path}: {what} can be removed only with a restart"
                raise BadWebConfig(message)

    def _read(self) -> WebConfig:
        # Read each file for the stamp before the file is used. If the file changes in
        # between, the next call finds a difference and reloads the file.
        self._stamp = {self._path: None}
        try:
            content = self._path.read_bytes()
            self._stamp = {self._path: content}
            file = _decoded(content)
            return WebConfig(
                None if file.tls_server_config is None else self._tls(file),
                file.basic_auth_users,
                file.bearer_tokens,
                file.peer_tokens,
                frozenset(file.auth_excluded_paths),
                file.http_server_config.headers,
                self._certificates,
            )
        except OSError as error:
            message = f"{self._path} cannot be read: {error.strerror or error}"
            raise BadWebConfig(message) from error
        except ValueError as error:
            message = f"{self._path}: {printable(one_line(str(error)))}"
            raise BadWebConfig(message) from error

    def _tls(self, file: _File) -> ssl.SSLContext:
        tls = file.tls_server_config
        assert tls is not None  # noqa: S101 - the caller has checked
        directory = self._path.parent
        names = (tls.cert_file, tls.key_file, tls.client_ca_file)
        certificate, key, authority = (directory / name for name in names)
        self._stamp |= _contents((certificate, key))
        self._certificates = {"cert_file": certificate}
        mode = _VERIFY_MODES[tls.client_auth_type]
        if bool(tls.client_ca_file) != (mode is not ssl.CERT_NONE):
            raise ValueError(
                "set client_ca_file if, and only if, client_auth_type verifies clients"
            )
        allowed = tls.client_allowed_sans
        context = (
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            if allowed is None
            else ChosenClientsContext(allowed)
        )
        context.minimum_version = _VERSIONS[tls.min_version]
        context.maximum_version = _VERSIONS[tls.max_version]
        try:
            # Pass an empty password. Otherwise, OpenSSL would ask for the password of
            # an encrypted key at the terminal.
            context.load_cert_chain(certificate, key, "")
        except OSError as error:
            message = (
                f"{certificate} and {key} cannot be used ({reason_of(error)}): check "
                "that both files are PEM and belong together, and that the key has no "
                "password"
            )
            raise ValueError(message) from error
        if tls.client_ca_file:
            self._stamp |= _contents((authority,))
            self._certificates["client_ca_file"] = authority
            try:
                context.load_verify_locations(authority)
            except OSError as error:
                message = f"{authority} cannot be used ({reason_of(error)})"
                raise ValueError(message) from error
        context.verify_mode = mode
        return context


def _contents(files: Iterable[Path]) -> dict[Path, bytes | None]:
    return {file: _content(file) for file in files}


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None


def _decoded(content: bytes) -> _File:
    try:
        raw = msgspec.yaml.decode(content) or {}
        if isinstance(raw, dict):
            tls = raw.get("tls_server_config")
            options = {*raw, *(tls if isinstance(tls, dict) else ())}
            for option in _UNSUPPORTED:
                if option in options:
                    message = f"{option} is not supported: remove it"
                    raise ValueError(message)
        return msgspec.convert(raw, _File)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error
    except (AttributeError, LookupError) as error:
        raise ValueError(
            "a value does not match the type in its YAML tag (!!): remove the tag"
        ) from error


def _check(
    name: str, values: Mapping[str, str], form: re.Pattern[str], rule: str
) -> None:
    for key, value in values.items():
        if not form.fullmatch(value):
            message = f"{name}: the value of {shown(key)} must be {rule}"
            raise ValueError(message)
