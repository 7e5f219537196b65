"""``sds-monitor audit``."""

from __future__ import annotations

from typing import Any

import click

from connectors.sync_tcp.address import Address, parse_address
from streaming.cli import commands
from streaming.cli.commands import Group
from streaming.cli.kafka_options import kafka_options
from streaming.cli.node_options import (
    node_options,
    peer_access_options,
    traffic_options,
)
from streaming.cli.serving_options import WebAddress, check_exposure, serving_options
from streaming.cli.settings import Panel, json_option, log_option, setting
from streaming.cli.values import DIRECTORY, Duration, Parsed
from streaming.cli.window_options import span_options

_COMPARE = "compare"


class _CompareByDefault(Group):
    """A group that runs ``compare`` if no command is given.

    All settings of ``compare`` may be in the environment, so options need not follow.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args:
            first = args[0]
            names_none = first.startswith("-") and first not in ctx.help_option_names
        else:
            # Completion in a shell proposes the commands.
            names_none = not ctx.resilient_parsing
        if names_none:
            args = [_COMPARE, *args]
        return super().parse_args(ctx, args)


@click.group(
    "audit",
    cls=_CompareByDefault,
    epilog="Example: sds-monitor audit --rest http://127.0.0.1:8645 "
    "--pubsub-topic /waku/2/rs/1/0 --bootstrap localhost:9092 --last 3600",
)
def command() -> None:
    """Compare a mirror with a Waku store or with another mirror.

    If no command is given, `sds-monitor audit` runs `compare`.
    """


@commands.command(
    _COMPARE,
    "sds-monitor audit --peer mirror-2:9111 "
    "--bootstrap localhost:9092 --from 2026-11-24T00:00:00Z --fix",
    command,
)
@kafka_options(topic_help="Topic that the mirror writes to.")
@node_options(required=False)
@setting(
    "--peer",
    type=Parsed("HOST:PORT", parse_address),
    panel=Panel.PEER,
    help="Address on which `sds-monitor audit serve` of another mirror listens.",
)
@peer_access_options
@traffic_options
@span_options
@setting(
    "--fix",
    is_flag=True,
    panel=Panel.OUTPUT,
    help="Write the missing messages to the mirror's topic.",
)
@json_option
@setting(
    "--every",
    type=Duration("s", 1),
    panel=Panel.TIME,
    help="Time from the end of an audit to the start of the next audit; by default, "
    "the audit runs once.",
)
@serving_options("the audit's metrics, if --every is given", 9110)
@log_option()
def compare_command(**options: Any) -> None:
    """Check that a mirror has all messages of a store or of another mirror.

    The command compares the hash and the sender's time of each message. It prints each
    message that is missing on one of the two sides. If --rest names a store, the
    command compares the messages on the given topics. If --peer names another mirror,
    the command compares all messages whose records contain the message hash.

    If the mirror lacks a message when the command ends, the exit code is 1.
    """
    from streaming.cli.actions.audit import compare

    compare(**options)


@commands.command(
    "serve",
    "sds-monitor audit serve --bootstrap localhost:9092 "
    "--state ./audit --sync-host 0.0.0.0 --web-config mutual.yml",
    command,
)
@kafka_options(topic_help="Topic that the mirror writes to.")
@setting(
    "--state",
    required=True,
    type=DIRECTORY,
    panel=Panel.STORAGE,
    help="State directory. If the server restarts with the same directory, the "
    "server reads only new records.",
)
@setting(
    "--sync-host",
    default="127.0.0.1",
    panel=Panel.PEER,
    help="Address on which the server listens for other mirrors. If other machines "
    "can reach the address, give a --web-config that requires client certificates or "
    "has peer_tokens.",
)
@setting(
    "--sync-port",
    type=click.IntRange(0, 65535),
    default=9111,
    panel=Panel.PEER,
    help="Port for other mirrors; 0 selects a free port.",
)
@setting(
    "--keep-days",
    type=Duration("d", 0.01),
    default=7.0,
    panel=Panel.TIME,
    help="Maximum age of the messages to compare, counted from the sender's time.",
)
@serving_options("the server's metrics", 9112, shared=("insecure_web",))
@log_option()
def serve_command(
    sync_host: str,
    sync_port: int,
    address: WebAddress,
    insecure_web: bool,
    **options: Any,
) -> None:
    """Let other mirrors find and copy the messages that they lack."""
    check_exposure(
        "--sync-host",
        sync_host,
        address.access.config().keeps_out_peers or insecure_web,
        "client_auth_type: RequireAndVerifyClientCert, with cert_file and peer_tokens",
    )

    from streaming.cli.actions.audit_serve import serve

    serve(address=Address(sync_host, sync_port), web=address, **options)
