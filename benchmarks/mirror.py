"""Measures how many frames per second the mirror writes from a node to Kafka.

    python -m benchmarks.mirror --help

Runs a node with many small SDS messages in its relay cache, the embedded broker, and
the `mirror` command as a process of its own that is bound to one core; node and broker
use the other cores.

Limits of the result: the node is that of the tests, which returns long pages if it is
polled late; the broker runs on the same machine; no store is queried. The figure by CPU
time does not include the time in which the mirror waits for node and broker.
"""

from __future__ import annotations

import itertools
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time

import click
import psutil

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from sds_core.waku import WakuMessage
from sds_core.wire import Dialect, Frame, encode
from tests.support.waku_node import ConformanceNode

_PUBSUB_TOPIC = "/waku/2/rs/1/0"
_PARTITIONS = 4


def messages(number: int, channels: int) -> list[WakuMessage]:
    """Return small SDS messages, spread over the channels in turn."""
    now_ns = time.time_ns()
    return [
        WakuMessage(
            encode(
                Frame.build(
                    dialect=Dialect.SPEC,
                    sender_id=f"sender-{n % 7}",
                    message_id=f"{n:032x}",
                    channel_id=f"channel-{n % channels}",
                    lamport=now_ns // 1_000_000 + n,
                    content=b"x" * 150,
                )
            ),
            f"/bench/1/channel-{n % channels}/proto",
            now_ns + n,
        )
        for n in range(number)
    ]


def _feed(node: ConformanceNode, traffic: list[WakuMessage], page: int) -> None:
    """Offer a page of messages each time the node's relay cache is empty."""
    rest = iter(traffic)
    while batch := list(itertools.islice(rest, page)):
        while node.relay_backlog:
            time.sleep(0.001)
        for message in batch:
            node.offer(message, pubsub_topic=_PUBSUB_TOPIC)


@click.command(help=__doc__)
@click.option("--frames", default=30_000, help="Frames to mirror.")
@click.option("--channels", default=100)
@click.option("--page", default=500, help="Messages in a page.")
def main(frames: int, channels: int, page: int) -> None:
    """Mirror the frames and print frames per second."""
    traffic = messages(frames, channels)
    with (
        tempfile.TemporaryDirectory() as directory,
        EmbeddedBroker() as broker,
        ConformanceNode(relay_capacity=2 * page) as node,
    ):
        kafka = KafkaSettings(broker.bootstrap)
        ensure_frames_topic(kafka, _PARTITIONS)
        offsets = TopicOffsets(kafka)
        command = [sys.executable, "-m", "streaming.cli", "mirror"]
        options = {
            "--bootstrap": broker.bootstrap,
            "--rest": node.url,
            "--pubsub-topic": _PUBSUB_TOPIC,
            "--state": directory,
            "--poll-interval": "0.01",
            "--cache-messages": str(2 * page),
            "--metrics-port": "0",
        }
        words = [word for option in options.items() for word in option]
        with subprocess.Popen([*command, *words, "--no-store"]) as process:  # noqa: S603 - fixed words
            mirror = psutil.Process(process.pid)
            mirror.cpu_affinity([0])
            while not node.calls:
                time.sleep(0.05)
            before_s, started_s = sum(mirror.cpu_times()[:2]), time.monotonic()
            threading.Thread(
                target=_feed, args=(node, traffic, page), daemon=True
            ).start()
            while sum(offsets.latest(range(_PARTITIONS)).values()) < frames:
                time.sleep(0.05)
            took_s = time.monotonic() - started_s
            busy_s = sum(mirror.cpu_times()[:2]) - before_s
            process.terminate()
        offsets.close()
    click.echo(
        f"{frames:,} frames of about {len(traffic[0].payload)} B: "
        f"{frames / took_s:,.0f} frames/s, {frames / busy_s:,.0f} per second of "
        f"CPU time ({busy_s / took_s:.0%} of one core); "
        f"{platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}"
    )


if __name__ == "__main__":
    main()
