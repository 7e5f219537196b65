"""Options for the address of a command's page and metrics."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import click

from streaming.cli.settings import Decorator, option_group, setting

LOOPBACK = "127.0.0.1"


class Address(NamedTuple):
    """Host and port on which a server listens; port 0 for any free one."""

    host: str
    port: int


def serving_options(content: str, port: int, *, with_host: bool = True) -> Decorator:
    """Add the options of a server; the command gets ``address``, an `Address`.

    Args:
        content: Content that is served, for the help text.
        port: Port by default.
        with_host: Whether there is an option for the host; else it is loopback.
    """
    host_option = setting("--host", default=LOOPBACK, help=f"Address for {content}.")
    port_option = setting(
        "--metrics-port",
        "port",
        type=click.IntRange(0, 65535),
        default=port,
        help=f"Port for {content}; 0 for any free one.",
    )
    if with_host:
        return option_group("address", (host_option, port_option), Address)
    return option_group("address", (port_option,), partial(Address, LOOPBACK))
