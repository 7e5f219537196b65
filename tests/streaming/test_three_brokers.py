"""A job on a cluster whose brokers end and come back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.brokers import Cluster, cluster
from tests.support.kafka import refused_sockets_stay_open
from tests.support.streaming.supervised import Monitor, monitor, write_messages
from tests.support.waiting import wait_for

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers that all run between tests."""
    with cluster(tmp_path_factory.mktemp("cluster")) as three:
        yield three


def reads(job: Monitor, messages: int) -> None:
    """Wait until a job has so many messages, and is ready."""
    wait_for(lambda: job.messages() == messages)
    wait_for(lambda: job.probe()[0] == 200)


@refused_sockets_stay_open
def test_change_of_the_leader_and_fewer_replicas_change_no_figure(
    brokers: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    """Each broker but the controller ends in turn, and comes back."""
    kafka = brokers.make_topic("led", [2, 3, 1])
    write_messages(kafka, "before", 3)
    with monitor(spark, kafka, tmp_path / "a") as job:
        reads(job, 3)
        brokers.stop(2)
        brokers.wait_for_leader("led", 3)
        write_messages(kafka, "second leader", 4)
        reads(job, 7)
        brokers.stop(3)
        brokers.wait_for_leader("led", 1)
        write_messages(kafka, "one replica", 5)
        reads(job, 12)
        for node in (2, 3):
            brokers.start(node)
        brokers.wait_for_leader("led", 1, in_sync=3)
        write_messages(kafka, "all", 6)
        reads(job, 18)


@refused_sockets_stay_open
def test_records_that_an_unclean_election_takes_are_named(
    brokers: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    """The job ends, and names the offsets; its figures have these records."""
    kafka = brokers.make_topic("unclean", [2, 3], unclean_leader_election_enable="true")
    write_messages(kafka, "both", 3)
    brokers.wait_for_leader("unclean", 2, in_sync=2)
    with monitor(spark, kafka, tmp_path / "a") as job:
        reads(job, 3)
        brokers.stop(3)
        write_messages(kafka, "on one", 4)
        reads(job, 7)
        brokers.stop(2)
        brokers.start(3)
        brokers.wait_for_leader("unclean", 3)
        failure = job.end.exception(120)
    brokers.start(2)
    assert "no longer has the unread offsets 3 to 6" in str(failure)
