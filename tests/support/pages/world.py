"""What the commands of the pages talk to: Kafka, a Waku node and a monitor."""

from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from connectors.broker.broker import EmbeddedBroker
from connectors.history.schema import tables_of
from connectors.kafka.producer import TopicRecord, write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.simulator.records import simulation_of
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.planning.channel import ChannelPlan
from sds_core.planning.hours import HOUR_MS
from sds_core.simulation.scenario import Scenario
from sds_core.wire import decode
from tests.support.kafka import free_port
from tests.support.planning.stored import store
from tests.support.planning.watched import START_MS, rows_of
from tests.support.soak.commands import Command, sample
from tests.support.waiting import wait_for
from tests.support.waku_node import ConformanceNode

_PARTITIONS = 3
_BEGIN_MS = 1_000 * int(datetime(2026, 11, 21, 8, tzinfo=UTC).timestamp())
"""The pages export and replay the hour that begins then."""
_HISTORY_DAYS = 30
"""Days before the traffic; the history goes on until now."""
_SCENARIO = """
name = "pages"
description = "Two channels for the commands of the pages."
duration_s = 900
participants = 4
channels = [
    { name = "my-channel", traffic = { mean_interval_s = 5 } },
    { name = "old-channel", traffic = { mean_interval_s = 20 } },
]
network = { loss = 0.05 }
taps = [{ name = "tap" }]
"""


@dataclass
class World:
    """Addresses and files with which the commands of the pages run.

    Attributes:
        bootstrap: Address of Kafka.
        secured_port: Port for a Kafka with TLS and a login.
        node: URL of the REST API of a Waku node.
        monitor: URL of a monitor that follows the topic.
        sync_port: Port of the mirror that answers others.
        checkpoint: Checkpoint of the monitor.
        history: Directory with a history of 30 days and more.
        message_id: Id of a message of `my-channel`.
        frame: Place of a frame in the topic.
        dead_letter: Place of a record that could not be decoded.
    """

    bootstrap: str
    node: str
    monitor: str
    checkpoint: Path
    history: Path
    message_id: str
    frame: str
    dead_letter: str
    sync_port: int
    secured_port: int

    def here(self, text: str) -> str:
        """Return a command or file of a page with addresses and paths of this world."""
        opened = re.search(r"sds-monitor (forget|doctor) ", text)
        checkpoint = str(self.checkpoint) if opened else "var/checkpoint"
        shown = self.dead_letter if "dead-letter show" in text else self.frame
        secured = f"127.0.0.1:{self.secured_port}"
        places = {
            "sds.frames:2:1714": shown,
            "kafka-1.example.org:9093,kafka-2.example.org:9093": secured,
            "127.0.0.1:9093": secured,
            "kafka-1:9092,kafka-2:9092": self.bootstrap,
            "kafka-1:9092": self.bootstrap,
            "localhost:9092": self.bootstrap,
            "127.0.0.1:9092": self.bootstrap,
            "--port 9092": "--port 0",
            "http://127.0.0.1:8645": self.node,
            "http://node-1.example.org:8645": self.node,
            "http://node-2.example.org:8645": self.node.replace(
                "127.0.0.1", "localhost"
            ),
            "http://127.0.0.1:9108": self.monitor,
            "metrics-port = 9108": "metrics-port = 0",
            "mirror-2:9111": f"127.0.0.1:{self.sync_port}",
            "mirror-2.example.org:9111": f"127.0.0.1:{self.sync_port}",
            "0.0.0.0": "127.0.0.1",  # noqa: S104 - a text of the pages
            "server 8000": "server 0",
            "0x3f2a": self.message_id,
            "after=…": "after=my-channel",
            "--history ./state/history": f"--history {self.history}",
            "incidents --history ./history": f"incidents --history {self.history}",
            "/var/lib/sds-monitor/checkpoint": checkpoint,
            "/var/lib/sds-monitor": "var",
            "/etc/sds-monitor": "etc",
            "/tmp/": "",  # noqa: S108 - a text of the pages
        }
        longest_first = sorted(places, key=len, reverse=True)
        pattern = "|".join(map(re.escape, longest_first))
        return re.sub(pattern, lambda found: places[found[0]], text)


@contextmanager
def world_in(directory: Path) -> Iterator[World]:
    """Run Kafka, a node and a monitor until the block ends."""
    with EmbeddedBroker(directory / "kafka") as broker, ConformanceNode() as node:
        kafka = KafkaSettings(broker.bootstrap)
        ensure_frames_topic(kafka, _PARTITIONS)
        bad = TopicRecord(2, _BEGIN_MS, b"x", b"x", (("source", b"nowhere"),))
        scenario = Scenario.from_mapping(tomllib.loads(_SCENARIO))
        simulation = simulation_of(scenario, 1, _BEGIN_MS, _PARTITIONS)
        records = list(chain([bad], simulation.records))
        write(records, kafka)
        named = next(one for one in records if one.key == b"my-channel")
        in_partition = [one for one in records if one.partition == named.partition]
        checkpoint = directory / "checkpoint"
        history = _history(checkpoint / "history")
        with Command(
            "run",
            directory / "run.log",
            bootstrap=broker.bootstrap,
            checkpoint=checkpoint,
            metrics_port=0,
        ) as job:
            url = job.metrics_url()
            wait_for(lambda: sample(url, "sds_monitor_records_total"))
            wait_for(lambda: sample(url, "sds_monitor_records_behind") == 0)
            yield World(
                bootstrap=broker.bootstrap,
                node=node.url,
                monitor=url.removesuffix("/metrics"),
                checkpoint=checkpoint,
                history=history,
                message_id=str(decode(named.value).message_id),
                frame=f"sds.frames:{named.partition}:{in_partition.index(named)}",
                dead_letter="sds.frames:2:0",
                sync_port=free_port(),
                secured_port=free_port(),
            )


def _history(directory: Path) -> Path:
    """Make a history that begins before the traffic and has just ended."""
    now_ms = time.time_ns() // 1_000_000
    hours = 24 * _HISTORY_DAYS + (now_ms - _BEGIN_MS) // HOUR_MS
    plan = ChannelPlan(participants=3, messages_per_day=150, loss=0.05)
    shift_ms = now_ms // HOUR_MS * HOUR_MS - START_MS
    shift_ms -= hours * HOUR_MS
    rows = rows_of(plan, hours, seed=1)
    for row in rows:
        row |= {"channel": "my-channel", "minute": row["minute"] + shift_ms}
    groups = [
        {"minute": row["minute"], "messages": row["messages"], "bytes_offer": 300}
        for row in rows
    ]
    tables = tables_of(kinds_of(PROTOCOLS).of("mvds"))
    store(directory, {"0123456789abcdef": groups}, tables.minutes)
    return store(directory, {"my-channel": rows})
