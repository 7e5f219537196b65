"""A network between job and broker that is slow, loses connections, or falls silent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from tests.support.brokers import options
from tests.support.kafka import free_port
from tests.support.proxy import Direction, Network, network
from tests.support.streaming.command import is_ready, page_of, started
from tests.support.streaming.supervised import write_messages
from tests.support.waiting import wait_for

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.timeout(900),
]


class Far(NamedTuple):
    """A job, and the network between it and its broker.

    Attributes:
        network: How bytes travel.
        kafka: The topic, beyond the network.
        url: The job's page.
        log: Its log.
    """

    network: Network
    kafka: KafkaSettings
    url: str
    log: Path

    def messages(self) -> int:
        """Messages of all channels."""
        channels = httpx.get(f"{self.url}api/v1/channels").json()["channels"]
        return sum(one["messages"] for one in channels)


@pytest.fixture
def far(tmp_path: Path) -> Iterator[Far]:
    """A job that has read three messages."""
    port, near = free_port(), free_port()
    with (
        network(near, port) as between,
        options(advertised_listeners=f"CLIENTS://127.0.0.1:{near}"),
        EmbeddedBroker(tmp_path / "kafka", port=port),
    ):
        kafka = KafkaSettings(f"127.0.0.1:{near}", "frames")
        ensure_frames_topic(kafka, 2)
        write_messages(kafka, "before", 3)
        with started(kafka, tmp_path, "--kafka-timeout", "15") as process:
            job = Far(between, kafka, page_of(process), tmp_path / "stderr")
            wait_for(lambda: is_ready(job.url))
            wait_for(lambda: job.messages() == 3)
            yield job
            between.silent = Direction.NONE
            assert process.poll() is None
            assert "Traceback" not in job.log.read_text()
            assert "made no progress" not in job.log.read_text()


def test_slow_network_changes_no_figure(far: Far) -> None:
    """A quarter of a second in each direction, and for each 64 KiB."""
    far.network.delay_s = 0.25
    for number in range(5):
        write_messages(far.kafka, f"slow-{number}", 10)
    wait_for(lambda: far.messages() == 53)
    assert is_ready(far.url)


def test_connections_that_are_lost_change_no_figure(far: Far) -> None:
    """In the middle of answers, again and again."""
    far.network.cut_after_bytes = 6_000
    for number in range(10):
        write_messages(far.kafka, f"lost-{number}", 20)
    wait_for(lambda: far.network.cuts > 10)
    far.network.cut_after_bytes = None
    wait_for(lambda: far.messages() == 203)


@pytest.mark.parametrize(
    "silent",
    [Direction.TO_CLIENT, Direction.TO_BROKER, Direction.BOTH],
    ids=["no answers", "no requests", "nothing"],
)
def test_network_that_falls_silent_is_noticed_and_survived(
    far: Far, silent: Direction
) -> None:
    """Connections stay open, and new ones are accepted; nothing arrives."""
    far.network.silent = silent
    wait_for(lambda: not is_ready(far.url))
    wait_for(lambda: "Kafka has not answered since" in far.log.read_text())
    # The query waits no longer than --kafka-timeout, and is started again.
    wait_for(lambda: "the query restarts" in far.log.read_text())
    assert far.messages() == 3
    far.network.silent = Direction.NONE
    wait_for(lambda: is_ready(far.url))
    write_messages(far.kafka, "after", 4)
    wait_for(lambda: far.messages() == 7)
