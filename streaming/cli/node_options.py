"""Options: Waku nodes, access to another mirror, and what traffic to read and how."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import click

from connectors.waku_rest.settings import Listen, MirrorSettings
from streaming.cli.settings import (
    Decorator,
    Panel,
    option_group,
    secret_setting,
    setting,
)
from streaming.cli.values import EXISTING_FILE, FILE, Duration, Integer, MemberOf

_DEFAULTS = MirrorSettings((), {})


class NodeOptions(NamedTuple):
    """The Waku nodes to read from, and how to access their REST APIs."""

    urls: tuple[str, ...]
    timeout_s: float
    ca_file: Path | None
    authorization: str | None


class TrafficOptions(NamedTuple):
    """The topics whose traffic a command reads.

    If `content_topics` is empty, the command reads all content topics of
    `pubsub_topics`. If `pubsub_topics` is empty, autosharding computes the pubsub topic
    of each content topic.
    """

    pubsub_topics: tuple[str, ...]
    content_topics: tuple[str, ...]
    cluster: int
    shards: int


class PeerAccess(NamedTuple):
    """PEM files and token for the connection to another mirror.

    If `peer_ca_file` is None, the connection does not use TLS.
    """

    peer_ca_file: Path | None = None
    peer_certificate_file: Path | None = None
    peer_key_file: Path | None = None
    peer_token: str | None = None


def _mirroring(listen: Listen, store: bool, **others: Any) -> MirrorSettings:
    if listen is Listen.NONE and not store:
        message = (
            "--listen none and --no-store leave nothing to mirror: omit one of them"
        )
        raise click.UsageError(message)
    return MirrorSettings((), {}, listen, store, **others)


def node_options(*, required: bool = True) -> Decorator:
    """Add the options for Waku nodes; the command gets ``nodes``, a `NodeOptions`."""
    options = (
        setting(
            "--rest",
            "urls",
            required=required,
            multiple=True,
            metavar="URL",
            help="REST API of a Waku node. A mirror that reads several nodes misses "
            "fewer messages. Repeatable.",
        ),
        setting(
            "--rest-timeout",
            "timeout_s",
            type=Duration("s", 0.1),
            default=10.0,
            panel=Panel.TIME,
            help="Maximum time to wait for each part of a node's answer. The whole "
            "answer can take at most six times as long.",
        ),
        setting(
            "--rest-ca-file",
            "ca_file",
            type=EXISTING_FILE,
            help="PEM file of the certificate authorities to trust; by default, the "
            "file that SSL_CERT_FILE names, or the authorities of the Python package "
            "certifi.",
        ),
        secret_setting(
            "--rest-authorization",
            "authorization",
            help="Value of the HTTP header Authorization in requests to the nodes.",
        ),
    )
    return option_group("nodes", options, NodeOptions, panel=Panel.NODES)


peer_access_options = option_group(
    "peer_access",
    [
        *(
            setting(
                f"--peer-{name}-file",
                type=FILE,
                help=f"PEM file of {content}.",
            )
            for name, content in (
                (
                    "ca",
                    "the authority that signed the other mirror's certificate; the "
                    "other mirror must use TLS",
                ),
                ("certificate", "this mirror's certificate"),
                ("key", "the key of this mirror's certificate"),
            )
        ),
        secret_setting(
            "--peer-token",
            help="Token to send to the other mirror. In the other mirror's "
            "--web-config, peer_tokens must contain the hash of the token.",
        ),
    ],
    PeerAccess,
    panel=Panel.PEER,
)
"""Adds the options for access to another mirror.

The command gets ``peer_access``, a `PeerAccess`.
"""


traffic_options = option_group(
    "traffic",
    (
        setting(
            "--pubsub-topic",
            "pubsub_topics",
            multiple=True,
            help="Pubsub topic whose SDS messages are mirrored. If --content-topic "
            "is also given, the mirror copies every message (SDS or not) that has a "
            "given pubsub topic and a given content topic. Repeatable.",
        ),
        setting(
            "--content-topic",
            "content_topics",
            multiple=True,
            help="Content topic whose messages are mirrored. If --pubsub-topic is "
            "omitted, autosharding computes the pubsub topic. Repeatable.",
        ),
        setting(
            "--cluster",
            type=click.IntRange(0, 65_535),
            default=1,
            help="Cluster id that autosharding uses.",
        ),
        setting(
            "--shards",
            type=click.IntRange(1, 1_024),
            default=8,
            help="Number of shards in the cluster; autosharding uses this number.",
        ),
    ),
    TrafficOptions,
    panel=Panel.TRAFFIC,
)
"""Adds the options that select the topics to read.

The command gets ``traffic``, a `TrafficOptions`.
"""

mirroring_options = option_group(
    "mirroring",
    (
        setting(
            "--listen",
            type=MemberOf(Listen),
            default=Listen.RELAY.value,
            panel=Panel.NODES,
            help="Source of live messages: the node's relay, a filter subscription "
            "at the node, or none.",
        ),
        setting(
            "--store/--no-store",
            default=_DEFAULTS.store,
            panel=Panel.NODES,
            help="If the mirror missed messages, read them from the node's store.",
        ),
        setting(
            "--cache-messages",
            type=Integer(2),
            default=_DEFAULTS.cache_messages,
            help="Capacity of the node's relay cache, in messages (the node's option "
            "--rest-relay-cache-capacity).",
        ),
        setting(
            "--poll-interval",
            "poll_interval_s",
            type=Duration("s", 0.01, 60),
            default=_DEFAULTS.poll_interval_s,
            panel=Panel.TIME,
            help="Time between two reads of a relay cache. If a cache was at "
            "least half full, the mirror immediately reads the cache again.",
        ),
        setting(
            "--store-interval",
            "store_interval_s",
            type=Duration("s", 1, 3_600),
            default=_DEFAULTS.store_interval_s,
            panel=Panel.TIME,
            help="Time between two reads of a store.",
        ),
        setting(
            "--backfill",
            "backfill_s",
            type=Duration("s", 0),
            default=_DEFAULTS.backfill_s,
            panel=Panel.TIME,
            help="How far back the mirror reads the store when it starts with a new "
            "--state.",
        ),
        setting(
            "--spool-bytes",
            type=Integer(1_000_000),
            default=_DEFAULTS.spool_bytes,
            help="Maximum size, in bytes, of the records that wait on disk for Kafka. "
            "While the maximum is reached, the mirror does not read from the nodes.",
        ),
    ),
    _mirroring,
    panel=Panel.LIMITS,
)
"""Adds the options that set how the mirror reads from nodes.

The command gets ``mirroring``, a `MirrorSettings` with empty `nodes` and `topics`.
"""
