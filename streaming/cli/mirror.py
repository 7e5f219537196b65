"""``sds-monitor mirror``."""

from __future__ import annotations

import asyncio
import secrets
import signal
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import click

from connectors.files.importing import MAX_PARTITIONS, import_file
from connectors.files.record_file import UnreadableFile
from connectors.kafka.handshake import check_admission
from connectors.kafka.settings import InvalidTopic, KafkaSettings, KafkaUnreachable
from connectors.waku_rest.connection import BadSettings, NodeSettings
from connectors.waku_rest.mirror import Mirror
from connectors.waku_rest.pacing import Ending
from connectors.waku_rest.settings import Listen, MirrorSettings
from connectors.waku_rest.spool import (
    OtherObserver,
    StateInUse,
    StateUnusable,
    open_spool,
)
from connectors.waku_rest.writer import FrameWriter
from connectors.web.mirror_app import create_mirror_app
from connectors.web.server import AddressUnusable, PortInUse, WebServer
from sds_core.mirror.figures import MirrorFigures
from sds_core.waku import BadContentTopic, autosharded_topic
from streaming.cli.kafka_options import kafka_options, topic_option
from streaming.cli.log import logger
from streaming.cli.log_option import log_option
from streaming.cli.output import wall_ms
from streaming.cli.settings import config_option, secret_setting, setting
from streaming.cli.signals import end_requested, ending_signals

_DEFAULTS = MirrorSettings((), {})
_PARTITIONS = 4
_GREETING_S = 1.0
"""For each broker, before nodes are listened to."""


@click.command(
    "mirror",
    epilog="Example: sds-monitor mirror --rest http://127.0.0.1:8645 "
    "--pubsub-topic /waku/2/rs/1/0 --bootstrap localhost:9092 --state ./mirror",
)
@config_option
@kafka_options()
@topic_option
@setting(
    "--partitions",
    type=click.IntRange(1, MAX_PARTITIONS),
    help=f"Of the topic, if it is made; {_PARTITIONS}, or as a file has it, if left "
    "out.",
)
@setting(
    "--from-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Write the records of a file instead: exported ones, or saved answers of a "
    "node.",
)
@setting(
    "--speed",
    type=click.FloatRange(0),
    default=0.0,
    help="Of a file: seconds of record time per second; 0 for as fast as it can.",
)
@setting(
    "--restamp",
    is_flag=True,
    help="Of a file: move all times by the same, so that the last is written at its "
    "own.",
)
@setting(
    "--rest",
    multiple=True,
    metavar="URL",
    help="REST API of a Waku node; several hear more than one.",
)
@setting(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of what waits for Kafka and of what is known; the mirror goes on "
    "from there when started again.",
)
@setting(
    "--observer",
    help="Tap id in the records; one is made up for a new --state.",
)
@setting(
    "--pubsub-topic",
    "pubsub_topics",
    multiple=True,
    help="All SDS messages on it, or those of the content topics.",
)
@setting(
    "--content-topic",
    "content_topics",
    multiple=True,
    help="Everything on it; its shard follows from it unless --pubsub-topic is given.",
)
@setting(
    "--cluster", type=click.IntRange(0, 65_535), default=1, help="For autosharding."
)
@setting(
    "--shards",
    type=click.IntRange(1, 1_024),
    default=8,
    help="Of the cluster, for autosharding.",
)
@setting(
    "--listen",
    type=click.Choice([one.value for one in Listen]),
    default=Listen.RELAY.value,
    help="To what the node relays, to what it gets by filter, or not at all.",
)
@setting(
    "--store/--no-store",
    default=True,
    help="Read the node's store for what was not heard.",
)
@setting(
    "--cache-messages",
    type=click.IntRange(2),
    default=_DEFAULTS.cache_messages,
    help="Length of the node's relay cache, its --rest-relay-cache-capacity.",
)
@setting(
    "--poll-interval",
    type=click.FloatRange(0.01, 60),
    default=_DEFAULTS.poll_interval_s,
    help="Seconds from one page to the next; a cache that fills is read at once.",
)
@setting(
    "--store-interval",
    type=click.FloatRange(1, 3_600),
    default=_DEFAULTS.store_interval_s,
    help="Seconds from one reading of the store to the next.",
)
@setting(
    "--backfill",
    type=click.FloatRange(0),
    default=_DEFAULTS.backfill_s,
    help="Seconds of the past that a new --state reads from the store.",
)
@setting(
    "--spool-bytes",
    type=click.IntRange(1_000_000),
    default=_DEFAULTS.spool_bytes,
    help="While more than this waits for Kafka, nothing is read from nodes.",
)
@setting(
    "--rest-timeout",
    type=click.FloatRange(0.1),
    default=10.0,
    help="Seconds to wait for a node.",
)
@setting(
    "--rest-ca-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="PEM file of authorities to trust with nodes; well-known ones if left out.",
)
@secret_setting(
    "--rest-authorization", help="Header Authorization for the nodes' REST API."
)
@setting("--host", default="127.0.0.1", help="Address of the mirror's metrics.")
@setting(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    default=9109,
    help="Port of the mirror's metrics, 0 for any free one.",
)
@log_option()
def command(
    kafka: KafkaSettings,
    topic: str,
    partitions: int | None,
    from_file: Path | None,
    speed: float,
    restamp: bool,
    rest: tuple[str, ...],
    state: Path | None,
    observer: str | None,
    pubsub_topics: tuple[str, ...],
    content_topics: tuple[str, ...],
    cluster: int,
    shards: int,
    listen: str,
    store: bool,
    cache_messages: int,
    poll_interval: float,
    store_interval: float,
    backfill: float,
    spool_bytes: int,
    rest_timeout: float,
    rest_ca_file: Path | None,
    rest_authorization: str | None,
    host: str,
    metrics_port: int,
) -> None:
    """Copy SDS traffic from the REST API of Waku nodes, or from a file, into Kafka.

    What a node relays is read as it passes, and its store for what was missed. Kill it
    at any moment: started again on the same --state it goes on, and what may have been
    lost shows as a hole of the tap. While Kafka is away, records wait on disk.
    """
    if from_file is not None:
        if rest or state is not None:
            message = "--from-file needs neither --rest nor --state"
            raise click.UsageError(message)
        _import(from_file, kafka, partitions, speed, restamp)
        return
    if not rest or state is None:
        message = "give --rest and --state, or --from-file"
        raise click.UsageError(message)
    if listen == Listen.NONE and not store:
        message = "--listen none and --no-store leave nothing to be mirrored"
        raise click.UsageError(message)
    try:
        nodes = tuple(
            NodeSettings(url, rest_timeout, rest_authorization or "", rest_ca_file)
            for url in dict.fromkeys(url.rstrip("/") for url in rest)
        )
        settings = MirrorSettings(
            nodes,
            topics_of(pubsub_topics, content_topics, cluster, shards),
            Listen(listen),
            store,
            cache_messages,
            poll_interval,
            store_interval,
            backfill,
            spool_bytes,
        )
        if store and any("," in topic for topic in content_topics):
            message = (
                "a store cannot be asked for a content topic with a comma: use "
                "--no-store, or leave it out"
            )
            raise click.UsageError(message)
        if settings.listen is Listen.FILTER and not all(settings.topics.values()):
            message = "--listen filter needs --content-topic"
            raise click.UsageError(message)
        figures = MirrorFigures()
        new_observer = f"mirror-{secrets.token_hex(4)}"
        # That it is away now is no reason not to listen; a wrong password is one.
        away = check_admission(replace(kafka, timeout_s=_GREETING_S))
        if away is not None:
            logger.warning(
                "%s; mirroring all the same, records wait in --state",
                KafkaUnreachable(kafka.bootstrap, away),
            )
        with (
            open_spool(state.absolute(), observer, new_observer) as spool,
            WebServer(create_mirror_app(figures), host, metrics_port) as server,
        ):
            click.echo(f"observer {spool.observer}   metrics {server.url}/metrics")
            writer = FrameWriter(kafka, partitions or _PARTITIONS, spool.observer)
            try:
                mirror = Mirror(settings, spool, writer, figures, wall_ms)
                _run_until_signal(mirror)
            finally:
                writer.close()
    except (
        AddressUnusable,
        BadContentTopic,
        BadSettings,
        InvalidTopic,
        OtherObserver,
        PortInUse,
        StateInUse,
        StateUnusable,
    ) as error:
        raise click.UsageError(str(error)) from error
    except sqlite3.Error as error:
        message = f"the spool in {state} fails: {error}"
        raise click.ClickException(message) from error
    click.echo(
        f"{figures.written:,} frames written, {figures.spooled:,} still to write"
    )


def _import(
    path: Path,
    kafka: KafkaSettings,
    partitions: int | None,
    speed: float,
    restamp: bool,
) -> None:
    """Write the records of a file."""
    try:
        with end_requested() as ending:
            count = import_file(
                path,
                kafka,
                now_ms=wall_ms(),
                speed=speed,
                stop=ending,
                partitions=partitions,
                restamp=restamp,
            )
    except (InvalidTopic, UnreadableFile) as error:
        raise click.UsageError(str(error)) from error
    if not count:
        message = f"{path} holds no record"
        raise click.UsageError(message)
    click.echo(f"{count:,} records of {path} written to {kafka.topic}")


def topics_of(
    pubsub_topics: Sequence[str],
    content_topics: Sequence[str],
    cluster: int,
    shards: int,
) -> dict[str, tuple[str, ...]]:
    """What is to be mirrored: content topics by pubsub topic, none for all.

    Raises:
        BadContentTopic: The shard of a content topic cannot be told.
        click.UsageError: Nothing was named.
    """
    for topic in pubsub_topics:
        if not topic.startswith("/"):
            message = f"{topic!r} is no pubsub topic: they begin with a slash"
            raise click.UsageError(message)
    if pubsub_topics:
        return dict.fromkeys(pubsub_topics, tuple(dict.fromkeys(content_topics)))
    if not content_topics:
        message = "name what is to be mirrored, by --content-topic or --pubsub-topic"
        raise click.UsageError(message)
    topics: dict[str, tuple[str, ...]] = {}
    for topic in dict.fromkeys(content_topics):
        shard = autosharded_topic(topic, cluster, shards)
        topics[shard] = (*topics.get(shard, ()), topic)
    return topics


def _run_until_signal(mirror: Mirror) -> None:
    """Run the mirror until a signal is to end it: it then ends in order."""
    signals = ending_signals()
    # One that comes while asyncio starts would cut it in the middle.
    with end_requested() as early:
        asyncio.run(_until(signals, early, mirror))


async def _until(
    signals: Iterable[signal.Signals], early: threading.Event, mirror: Mirror
) -> None:
    ending = Ending()
    loop = asyncio.get_running_loop()
    for number in signals:
        loop.add_signal_handler(number, ending.set)
    if early.is_set():
        ending.set()
    await mirror.run(ending)
