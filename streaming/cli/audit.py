"""``sds-monitor audit``."""

from __future__ import annotations

from pathlib import Path

import click

from connectors.kafka.settings import KafkaSettings
from connectors.sync_tcp.address import Address, parse_address
from streaming.cli import commands
from streaming.cli.commands import Group
from streaming.cli.kafka_options import kafka_options
from streaming.cli.node_options import (
    NodeOptions,
    PeerAccess,
    TrafficOptions,
    node_options,
    peer_access_options,
    traffic_options,
)
from streaming.cli.serving_options import Address as WebAddress
from streaming.cli.serving_options import check_exposure, serving_options
from streaming.cli.settings import Panel, json_option, log_option, setting
from streaming.cli.values import DIRECTORY, Duration, Parsed
from streaming.cli.window_options import AuditSpan, span_options

SYNC_PORT = 9111
"""Default port of `audit serve`."""

_COMPARE = "compare"


class _CompareByDefault(Group):
    """Options without a command are options of ``compare``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0].startswith("-") and args[0] not in ctx.help_option_names:
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

    If you omit the command, sds-monitor runs `compare`.
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
    help="Address of `sds-monitor audit serve` of another mirror.",
)
@peer_access_options
@traffic_options
@span_options
@setting(
    "--fix",
    is_flag=True,
    panel=Panel.OUTPUT,
    help="Write the missing messages to the topic of the mirror.",
)
@json_option
@setting(
    "--every",
    type=Duration("s", 1),
    panel=Panel.TIME,
    help="Repeat the audit after this time; by default it runs once.",
)
@serving_options("the metrics of an audit with --every", 9110)
@log_option()
def compare_command(
    kafka: KafkaSettings,
    nodes: NodeOptions,
    peer: Address | None,
    peer_access: PeerAccess,
    traffic: TrafficOptions,
    span: AuditSpan,
    fix: bool,
    as_json: bool,
    every: float | None,
    address: WebAddress,
) -> None:
    """Check that a mirror has all messages of a store, or of another mirror.

    The command compares the hash and the sender's time of each message, and prints each
    message that one side lacks. If the other side is a store, the command compares the
    messages of the given topics. If the other side is a mirror, the command compares
    all messages that have a hash.

    If the mirror still lacks a message at the end, the exit code is 1.
    """
    if bool(nodes.urls) == (peer is not None):
        message = "give either --rest URL for a store, or --peer HOST:PORT for a mirror"
        raise click.UsageError(message)
    if every is not None and not span.is_sliding:
        message = (
            "--every compares the newest messages: give --last, not --from or --to"
        )
        raise click.UsageError(message)

    from streaming.cli.actions.audit import Audit, peer_side, store_side

    side = (
        store_side(nodes, traffic)
        if peer is None
        else peer_side(peer, peer_access, traffic)
    )
    audit = Audit(kafka, side, span, fix)
    if every is None:
        audit.once(as_json)
    else:
        audit.repeat(every, address)


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
    help="State directory. If the server restarts with the same directory, it reads "
    "only new records.",
)
@setting(
    "--sync-host",
    default="127.0.0.1",
    panel=Panel.PEER,
    help="Address on which to listen for other mirrors. If the address is not "
    "loopback, --web-config must require client certificates, or contain "
    "peer_tokens.",
)
@setting(
    "--sync-port",
    type=click.IntRange(0, 65535),
    default=SYNC_PORT,
    panel=Panel.PEER,
    help="Port for other mirrors; 0 selects a free one.",
)
@setting(
    "--keep-days",
    type=Duration("d", 0.01),
    default=7.0,
    panel=Panel.TIME,
    help="Maximum age of compared messages, by sender's time.",
)
@serving_options("the server's metrics", 9112, shared=("insecure_web",))
@log_option()
def serve_command(
    kafka: KafkaSettings,
    state: Path,
    sync_host: str,
    sync_port: int,
    keep_days: float,
    address: WebAddress,
    insecure_web: bool,
) -> None:
    """Let other mirrors compare messages with this mirror and copy missing ones."""
    check_exposure(
        "--sync-host",
        sync_host,
        address.access.config().keeps_out_peers or insecure_web,
        "client_auth_type: RequireAndVerifyClientCert, with cert_file and peer_tokens",
    )

    from streaming.cli.actions.audit_serve import serve

    serve(kafka, state, Address(sync_host, sync_port), keep_days, address)
