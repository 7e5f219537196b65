"""Options that set where a command serves page and metrics, and who may read them."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

import click

from connectors.web.access import OPEN, UNPROTECTED, Access, WebConfig
from sds_core.text import shown
from streaming.cli.exit_codes import wrong_use
from streaming.cli.settings import Decorator, Panel, option_group, setting
from streaming.cli.values import FILE

LOOPBACK = "127.0.0.1"

_NAME = re.compile(r"[\w-]+(\.[\w-]+)*", re.ASCII)
"""Pattern of a host name. It allows underscores, because container names have them."""


class WebAddress(NamedTuple):
    """Host and port on which a server listens; port 0 selects a free port."""

    host: str
    port: int
    access: Access = OPEN


def port_option(content: str, port: int) -> Decorator:
    """Add ``--metrics-port``; the command gets ``port``.

    In the help text, `content` describes what the port serves.
    """
    return setting(
        "--metrics-port",
        "port",
        type=click.IntRange(0, 65535),
        default=port,
        panel=Panel.WEB,
        help=f"Port of {content}; 0 selects a free port.",
    )


def serving_options(
    content: str, port: int, *, shared: Collection[str] = ()
) -> Decorator:
    """Add the options of a server; the command gets ``address``, a `WebAddress`.

    In the help texts, `content` describes what the server serves. `shared` contains the
    names of options whose own values the command also gets.
    """
    return option_group(
        "address",
        (
            setting(
                "--host",
                default=LOOPBACK,
                help=f"Address on which the command serves {content}.",
            ),
            port_option(content, port),
            setting(
                "--web-config",
                type=FILE,
                help="YAML file with TLS and logins, in the format of the Prometheus "
                "exporter toolkit. If the file changes, the command reads it again.",
            ),
            setting(
                "--allowed-host",
                "allowed_hosts",
                multiple=True,
                metavar="NAME",
                help="Host name to accept in requests, besides localhost, --host and "
                "IP addresses. Repeatable.",
            ),
            setting(
                "--insecure-web",
                is_flag=True,
                help="Let other machines send requests without a login.",
            ),
        ),
        _address,
        panel=Panel.WEB,
        shared=shared,
    )


def _address(
    host: str,
    port: int,
    web_config: Path | None,
    allowed_hosts: tuple[str, ...],
    insecure_web: bool,
) -> WebAddress:
    names = tuple(name.removesuffix(".") for name in allowed_hosts)
    for name in names:
        if not _NAME.fullmatch(name):
            message = (
                f"--allowed-host {shown(name)} is not a host name: use a name without "
                "a scheme, port or wildcard, such as monitor.example.org"
            )
            raise click.UsageError(message)
    access = Access(_config(web_config), names)
    config = access.config()
    check_exposure(
        "--host",
        host,
        config.needs_login or config.needs_certificate or insecure_web,
        "basic_auth_users or bearer_tokens",
    )
    return WebAddress(host, port, access)


def check_exposure(flag: str, host: str, is_allowed: bool, remedy: str) -> None:
    """Refuse an address that other machines can reach, unless `is_allowed`.

    Raises:
        click.UsageError: Other machines can reach `host`, and `is_allowed` is false.
            The message names the option `flag`, and, as `remedy`, the settings that
            the web configuration file must have.
    """
    if not (is_allowed or is_loopback(host)):
        message = (
            f"other machines can reach {flag} {host} without a login: give "
            f"--web-config with {remedy}, or --insecure-web"
        )
        raise click.UsageError(message)


def _config(path: Path | None) -> Callable[[], WebConfig]:
    if path is None:
        return lambda: UNPROTECTED
    # Imported here, because the import takes a tenth of a second, and users rarely give
    # --web-config.
    from connectors.web.config_file import BadWebConfig, WebConfigFile

    with wrong_use(BadWebConfig, where="--web-config: "):
        return WebConfigFile(path.absolute())


def is_loopback(host: str) -> bool:
    """Whether other machines cannot reach `host`, an IP address or a name."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
