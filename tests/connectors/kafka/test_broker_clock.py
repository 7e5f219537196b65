"""Kafka's time, on a real broker."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ResourcePattern,
    ResourceType,
)

from connectors.broker.broker import EmbeddedBroker
from connectors.broker.configuration import BrokerSecurity
from connectors.kafka.clients import kafka_python_options
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import (
    KafkaSecurity,
    KafkaSettings,
    KafkaUnreachable,
    Protocol,
)
from tests.support.kafka import NOBODY, TopicMaker, refused_sockets_stay_open
from tests.support.waiting import wait_for

pytestmark = pytest.mark.kafka


def test_broker_tells_its_time_to_a_client_that_only_reads(
    kafka_topic: TopicMaker,
) -> None:
    """It is that of the question; the topic stays as it was."""
    topic = kafka_topic()
    with closing(TopicOffsets(topic.settings)) as offsets:
        begin_ms = time.time_ns() // 1_000_000
        told_ms = offsets.broker_time_ms()
        end_ms = time.time_ns() // 1_000_000
        assert told_ms is not None
        assert begin_ms <= told_ms <= end_ms
        assert offsets.latest([0]) == {0: 0}


def test_user_without_the_right_learns_no_time() -> None:
    """That is no error, and everything else goes on."""
    users = {"alice": "secret"}
    security = BrokerSecurity(Protocol.SASL_PLAINTEXT, users=users)
    with EmbeddedBroker(security=security) as broker:
        settings = KafkaSettings(
            broker.bootstrap,
            security=KafkaSecurity(
                Protocol.SASL_PLAINTEXT, username="alice", password=users["alice"]
            ),
        )
        with closing(KafkaAdminClient(**kafka_python_options(settings))) as admin:
            cluster = ResourcePattern(ResourceType.CLUSTER, "kafka-cluster")
            operation, permission = ACLOperation.DESCRIBE, ACLPermissionType.ALLOW
            # Once somebody may describe the cluster, nobody else may.
            admin.create_acls([ACL("User:bob", "*", operation, permission, cluster)])
        with closing(TopicOffsets(settings)) as offsets:
            wait_for(lambda: offsets.broker_time_ms() is None)
            assert offsets.latest([]) == {}


@refused_sockets_stay_open
def test_broker_that_is_away_is_an_error() -> None:
    """Not to know the time would hide that it is away."""
    with (
        closing(TopicOffsets(NOBODY)) as offsets,
        pytest.raises(KafkaUnreachable),
    ):
        offsets.broker_time_ms()
