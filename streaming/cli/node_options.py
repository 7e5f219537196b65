"""Options for which Waku nodes or peers are read, which traffic, and how."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import click

from connectors.waku_rest.settings import Listen, MirrorSettings
from streaming.cli.settings import (
    Decorator,
    MemberOf,
    Number,
    option_group,
    secret_setting,
    setting,
)

_DEFAULTS = MirrorSettings((), {})


class NodeOptions(NamedTuple):
    """Which Waku nodes to read from, by the URLs of their REST APIs.

    Without a file of authorities, well-known ones are trusted.
    """

    urls: tuple[str, ...]
    timeout_s: float
    ca_file: Path | None
    authorization: str | None


class TrafficOptions(NamedTuple):
    """Which traffic to mirror.

    Without pubsub topics they are computed from the content topics, by autosharding;
    without content topics, all of the pubsub topics are mirrored.
    """

    pubsub_topics: tuple[str, ...]
    content_topics: tuple[str, ...]
    cluster: int
    shards: int


class PeerAccess(NamedTuple):
    """PEM files for a peer that speaks TLS, and a token that opens it.

    No authority means no TLS.
    """

    peer_ca_file: Path | None = None
    peer_certificate_file: Path | None = None
    peer_key_file: Path | None = None
    peer_token: str | None = None


def _mirroring(listen: Listen, store: bool, **others: Any) -> MirrorSettings:
    if listen is Listen.NONE and not store:
        message = "--listen none and --no-store leave nothing to be mirrored"
        raise click.UsageError(message)
    return MirrorSettings((), {}, listen, store, **others)


def node_options(*, required: bool = True) -> Decorator:
    """Add the options of Waku nodes; the command gets ``nodes``, a `NodeOptions`."""
    options = (
        setting(
            "--rest",
            "urls",
            required=required,
            multiple=True,
            metavar="URL",
            help="REST API of a Waku node; may be repeated, so that less is missed.",
        ),
        setting(
            "--rest-timeout",
            "timeout_s",
            type=Number(0.1),
            default=10.0,
            help="Seconds to wait for a node.",
        ),
        setting(
            "--rest-ca-file",
            "ca_file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="PEM file of the authorities to trust; by default well-known ones.",
        ),
        secret_setting(
            "--rest-authorization",
            "authorization",
            help="Header Authorization for the REST API of the nodes.",
        ),
    )
    return option_group("nodes", options, NodeOptions)


peer_access_options = option_group(
    "peer_access",
    [
        *(
            setting(
                f"--peer-{name}-file",
                type=click.Path(dir_okay=False, path_type=Path),
                help=f"PEM file of {content}.",
            )
            for name, content in (
                (
                    "ca",
                    "the authority of the peer's certificate; the peer must speak TLS",
                ),
                ("certificate", "this side's certificate"),
                ("key", "the key of this side's certificate"),
            )
        ),
        secret_setting(
            "--peer-token",
            help="Token that opens the peer, which has its hash in peer_tokens.",
        ),
    ],
    PeerAccess,
)
"""Adds the options; the command gets ``peer_access``, a `PeerAccess`."""


traffic_options = option_group(
    "traffic",
    (
        setting(
            "--pubsub-topic",
            "pubsub_topics",
            multiple=True,
            help="Mirror SDS messages on this pubsub topic, or with --content-topic "
            "all messages of those content topics on it; may be repeated.",
        ),
        setting(
            "--content-topic",
            "content_topics",
            multiple=True,
            help="Mirror all messages on this content topic; may be repeated. If "
            "--pubsub-topic is omitted, its shard is computed from its name.",
        ),
        setting(
            "--cluster",
            type=click.IntRange(0, 65_535),
            default=1,
            help="Cluster id, for autosharding.",
        ),
        setting(
            "--shards",
            type=click.IntRange(1, 1_024),
            default=8,
            help="Number of shards of the cluster, for autosharding.",
        ),
    ),
    TrafficOptions,
)
"""Adds the options; the command gets ``traffic``, a `TrafficOptions`."""

mirroring_options = option_group(
    "mirroring",
    (
        setting(
            "--listen",
            type=MemberOf(Listen),
            default=Listen.RELAY.value,
            help="Read live messages from the node's relay, from its filter "
            "subscription, or not at all.",
        ),
        setting(
            "--store/--no-store",
            default=_DEFAULTS.store,
            help="Read missed messages from the node's store.",
        ),
        setting(
            "--cache-messages",
            type=click.IntRange(2),
            default=_DEFAULTS.cache_messages,
            help="Length of the node's relay cache, its --rest-relay-cache-capacity.",
        ),
        setting(
            "--poll-interval",
            "poll_interval_s",
            type=Number(0.01, 60),
            default=_DEFAULTS.poll_interval_s,
            help="Seconds between two reads of a cache; a cache that fills up is read "
            "again at once.",
        ),
        setting(
            "--store-interval",
            "store_interval_s",
            type=Number(1, 3_600),
            default=_DEFAULTS.store_interval_s,
            help="Seconds between two reads of a store.",
        ),
        setting(
            "--backfill",
            "backfill_s",
            type=Number(0),
            default=_DEFAULTS.backfill_s,
            help="Seconds of the past that a mirror with a new --state reads from the "
            "store.",
        ),
        setting(
            "--spool-bytes",
            type=click.IntRange(1_000_000),
            default=_DEFAULTS.spool_bytes,
            help="Maximum bytes that wait for Kafka on disk; above it the mirror reads "
            "nothing from nodes.",
        ),
    ),
    _mirroring,
)
"""Adds the options; the command gets ``mirroring``, a `MirrorSettings` without nodes
and topics, which other options give."""
