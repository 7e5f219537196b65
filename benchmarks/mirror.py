"""How many frames per second the mirror takes from a node to Kafka on one core.

    python -m benchmarks.mirror --help

A node with many small SDS messages in its relay cache, the embedded broker, and the
command as a process of its own, bound to one core; node and broker share the rest.

What to doubt: the node is the one of the tests, which gives long pages when it is asked
late; the broker is on the same machine; nothing is swept from a store. The figure by
processor time leaves out what the mirror waits for node and broker.
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
    """Small SDS messages, one after another in turn of the channels."""
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


def _feed(node: ConformanceNode, what: list[WakuMessage], at_once: int) -> None:
    """Keep the node's cache filled, and never over its capacity."""
    waiting = iter(what)
    while some := list(itertools.islice(waiting, at_once)):
        while node.relay_backlog:
            time.sleep(0.001)
        for message in some:
            node.offer(message, pubsub_topic=_PUBSUB_TOPIC)


@click.command(help=__doc__)
@click.option("--frames", default=30_000, help="Frames to mirror.")
@click.option("--channels", default=100)
@click.option("--page", default=500, help="Messages in a page.")
def main(frames: int, channels: int, page: int) -> None:
    """Measure."""
    what = messages(frames, channels)
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
            before_s, begun_s = sum(mirror.cpu_times()[:2]), time.monotonic()
            threading.Thread(target=_feed, args=(node, what, page), daemon=True).start()
            while sum(offsets.latest(range(_PARTITIONS)).values()) < frames:
                time.sleep(0.05)
            took_s = time.monotonic() - begun_s
            busy_s = sum(mirror.cpu_times()[:2]) - before_s
            process.terminate()
        offsets.close()
    click.echo(
        f"{frames:,} frames of about {len(what[0].payload)} B: "
        f"{frames / took_s:,.0f} frames/s, {frames / busy_s:,.0f} a second of "
        f"processor time ({busy_s / took_s:.0%} of one core); "
        f"{platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}"
    )


if __name__ == "__main__":
    main()
