"""``sds-monitor audit``."""

from __future__ import annotations

from pathlib import Path

import click

from connectors.kafka.settings import KafkaSettings
from connectors.sync_tcp.address import Address, parse_address
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
from streaming.cli.settings import (
    Number,
    Parsed,
    config_option,
    log_option,
    setting,
)
from streaming.cli.window_options import AuditSpan, span_options

SYNC_PORT = 9111
"""Port of `audit serve` by default."""

_COMPARE = "compare"


class _CompareByDefault(click.Group):
    """Options without a command are those of ``compare``."""

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

    If no command is given, the options are those of compare.
    """


@command.command(
    _COMPARE,
    epilog="Example: sds-monitor audit --peer mirror-2:9111 "
    "--bootstrap localhost:9092 --from 2026-11-24T00:00:00Z --fix",
)
@config_option
@kafka_options(topic_help="Topic of frames: the mirror.")
@node_options(required=False)
@setting(
    "--peer",
    type=Parsed("HOST:PORT", parse_address),
    help="Another mirror: where its `sds-monitor audit serve` listens.",
)
@peer_access_options
@traffic_options
@span_options
@setting("--fix", is_flag=True, help="Write what the mirror lacks to its topic.")
@setting("--json", "as_json", is_flag=True, help="Print one JSON object.")
@setting(
    "--every",
    type=Number(1),
    help="Seconds between two audits; by default there is one only.",
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
    """Say whether a mirror has all messages of a store, or of another mirror.

    Compares by sender's time and message hash, and prints each message that one side
    lacks. A store is listed, by the topics given; with another mirror, all messages
    with a hash are compared, by the hashes of trees. Exit code 1 if the mirror lacks a
    message in the end.
    """
    if bool(nodes.urls) == (peer is not None):
        message = "name the other side: --rest URL of a store, or --peer HOST:PORT"
        raise click.UsageError(message)
    if every is not None and not span.is_sliding:
        message = (
            "--every compares the newest messages: use --last, not --from and --to"
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


@command.command(
    "serve",
    epilog="Example: sds-monitor audit serve --bootstrap localhost:9092 "
    "--state ./audit --sync-host 0.0.0.0 --web-config mutual.yml",
)
@config_option
@kafka_options(topic_help="Topic of frames: the mirror.")
@setting(
    "--state",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of the tree; a server restarted with it reads only what is new in "
    "the topic.",
)
@setting(
    "--sync-host",
    default="127.0.0.1",
    help="Address for other mirrors. If it is not loopback, --web-config must require "
    "client certificates, or have a certificate and peer_tokens.",
)
@setting(
    "--sync-port",
    type=click.IntRange(0, 65535),
    default=SYNC_PORT,
    help="Port for other mirrors; 0 for any free one.",
)
@setting(
    "--keep-days",
    type=Number(0.01),
    default=7.0,
    help="Days of messages that are compared, by sender's time.",
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
    """Let other mirrors compare themselves with this one, and copy what they lack."""
    check_exposure(
        "--sync-host",
        sync_host,
        address.access.config().keeps_out_peers or insecure_web,
        "client_auth_type: RequireAndVerifyClientCert, with cert_file and peer_tokens",
    )

    from streaming.cli.actions.audit_serve import serve

    serve(kafka, state, Address(sync_host, sync_port), keep_days, address)
