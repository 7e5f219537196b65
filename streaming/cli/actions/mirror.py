"""Mirrors Waku nodes into Kafka until a signal ends it."""

from __future__ import annotations

import secrets
import sqlite3
from dataclasses import replace
from pathlib import Path

import click

from connectors.kafka.handshake import check_admission
from connectors.kafka.settings import InvalidTopic, KafkaSettings, KafkaUnreachable
from connectors.sockets.listener import AddressUnusable, PortInUse
from connectors.storage.disk import cause_of
from connectors.waku_rest.connection import BadSettings, NodeSettings
from connectors.waku_rest.mirror import Mirror
from connectors.waku_rest.pacing import Ending
from connectors.waku_rest.settings import Listen, MirrorSettings
from connectors.waku_rest.spool import StateUnusable, open_spool
from connectors.waku_rest.writer import FrameWriter
from connectors.web.server import WebServer
from connectors.web.side_apps import create_mirror_app
from sds_core.mirror.figures import MirrorFigures
from sds_core.waku import BadContentTopic, autosharded_topic
from sds_core.wire import MAX_ID_CHARACTERS
from streaming.cli.exit_codes import Failed, wrong_use
from streaming.cli.log import logger
from streaming.cli.node_options import NodeOptions, TrafficOptions
from streaming.cli.output import wall_ms
from streaming.cli.serving_options import WebAddress
from streaming.cli.signals import run_until_signal

_FIRST_CONTACT_S = 1.0
"""Maximum time to wait for each broker before the mirror starts, seconds."""


def _mirror_settings(
    nodes: NodeOptions, traffic: TrafficOptions, mirroring: MirrorSettings
) -> MirrorSettings:
    settings = replace(
        mirroring, nodes=node_settings(nodes), topics=topics_to_mirror(traffic)
    )
    if settings.store and any("," in topic for topic in traffic.content_topics):
        message = (
            "a store cannot filter by a content topic that contains a comma: use "
            "--no-store, or omit the topic"
        )
        raise click.UsageError(message)
    if settings.listen is Listen.FILTER and not all(settings.topics.values()):
        message = "--listen filter needs --content-topic"
        raise click.UsageError(message)
    return settings


@wrong_use(BadSettings)
def node_settings(nodes: NodeOptions) -> tuple[NodeSettings, ...]:
    """Return the settings of the nodes; a node that is given twice counts once.

    Raises:
        click.UsageError: A URL or the authorization is invalid.
    """
    return tuple(
        NodeSettings(url, nodes.timeout_s, nodes.authorization or "", nodes.ca_file)
        for url in dict.fromkeys(url.rstrip("/") for url in nodes.urls)
    )


@wrong_use(BadContentTopic)
def topics_to_mirror(traffic: TrafficOptions) -> dict[str, tuple[str, ...]]:
    """Return the content topics by pubsub topic; an empty tuple means all of them.

    Raises:
        click.UsageError: No topic is given, a pubsub topic does not begin with a slash,
            or the shard of a content topic cannot be computed.
    """
    pubsub_topics, content_topics, cluster, shards = traffic
    for topic in pubsub_topics:
        if not topic.startswith("/"):
            message = (
                f"{topic!r} is not a pubsub topic: a pubsub topic begins with a slash"
            )
            raise click.UsageError(message)
    if pubsub_topics:
        return dict.fromkeys(pubsub_topics, tuple(dict.fromkeys(content_topics)))
    if not content_topics:
        message = "give --content-topic or --pubsub-topic, to select what to mirror"
        raise click.UsageError(message)
    topics: dict[str, tuple[str, ...]] = {}
    for topic in dict.fromkeys(content_topics):
        shard = autosharded_topic(topic, cluster, shards)
        topics[shard] = (*topics.get(shard, ()), topic)
    return topics


@wrong_use(AddressUnusable, BadSettings, InvalidTopic, PortInUse, StateUnusable)
def mirror(
    kafka: KafkaSettings,
    partitions: int,
    nodes: NodeOptions,
    traffic: TrafficOptions,
    mirroring: MirrorSettings,
    state: Path,
    observer: str | None,
    address: WebAddress,
) -> None:
    """Mirror until a signal comes.

    `observer` is the tap id. If None, the mirror uses the tap id that `state` contains;
    for a new directory, the mirror makes up a tap id.
    """
    if observer is not None and not 0 < len(observer) <= MAX_ID_CHARACTERS:
        message = (
            f"--observer has {len(observer):,} characters, but 1 to "
            f"{MAX_ID_CHARACTERS} are allowed"
        )
        raise click.UsageError(message)
    settings = _mirror_settings(nodes, traffic, mirroring)
    figures, ending = MirrorFigures(), Ending()
    new_observer = f"mirror-{secrets.token_hex(4)}"
    try:
        _check_kafka(kafka)
        with open_spool(state.absolute(), observer, new_observer, wall_ms()) as spool:
            # If the first scrape showed 0, Prometheus would take this for a reset of
            # the counter, and count all earlier losses again.
            figures.losses |= spool.losses
            with WebServer(create_mirror_app(figures), *address) as server:
                click.echo(f"observer {spool.observer}   metrics {server.url}/metrics")
                writer = FrameWriter(kafka, partitions, spool.observer)
                made = Mirror(settings, spool, writer, figures, wall_ms)
                try:
                    # A signal only sets `ending`, so that the mirror finishes its work.
                    run_until_signal(ending, made.run(ending))
                finally:
                    writer.close()
    except sqlite3.Error as error:
        message = (
            f"the spool in {state} cannot be used: {cause_of(error, state / 'mirror')}"
        )
        raise Failed(message) from error
    click.echo(
        f"{figures.written:,} frames written, {figures.spooled:,} still to write"
    )


def _check_kafka(kafka: KafkaSettings) -> None:
    """Log a warning if Kafka is unreachable; raise an error if Kafka refuses access."""
    problem = check_admission(replace(kafka, timeout_s=_FIRST_CONTACT_S))
    if problem is not None:
        logger.warning(
            "%s; the mirror starts, and keeps its records in --state until Kafka is "
            "reachable",
            KafkaUnreachable(kafka.bootstrap, problem),
        )
