"""Reads the rights of a user and the settings of topics from Kafka; writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing
from typing import Any, NamedTuple

from kafka import KafkaAdminClient
from kafka.errors import (
    BrokerResponseError,
    GroupAuthorizationFailedError,
    KafkaError,
    TopicAuthorizationFailedError,
    for_code,
)

from connectors.kafka.clients import failure, kafka_python_options
from connectors.kafka.handshake import wait_until_listening
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import read_configuration


class TopicFacts(NamedTuple):
    """A topic as the brokers describe it to a user.

    Attributes:
        exists: Whether the topic is visible to the user.
        is_hidden: Whether the user is forbidden to describe the topic.
        operations: Kafka's names of the operations on the topic that the user may do,
            even if the topic is missing; empty for brokers before Kafka 2.3.
        configuration: Settings of the topic; empty if the user may not read them.
    """

    exists: bool
    is_hidden: bool
    operations: frozenset[str]
    configuration: Mapping[str, str]


class Survey(NamedTuple):
    """The requested topics by name, and the user's rights.

    `may_create` is whether the user may create topics with any name. `may_commit` is
    whether the user may commit offsets to the group; True if no group was requested.
    """

    topics: Mapping[str, TopicFacts]
    may_create: bool
    may_commit: bool


def survey(
    settings: KafkaSettings, topics: Collection[str], group: str | None
) -> Survey:
    """Describe topics, and the user's rights on the topics and on a group.

    The user is the one that `settings` names.

    Raises:
        KafkaUnreachable: No broker answered, or a broker refuses the request.
    """
    try:
        wait_until_listening(settings)
        admin = KafkaAdminClient(
            **kafka_python_options(settings),
            request_timeout_ms=int(settings.timeout_s * 1000),
        )
        with closing(admin):
            cluster = admin.describe_cluster().get("authorized_operations") or ()
            return Survey(
                {
                    topic["name"]: _facts(admin, topic)
                    for topic in admin.describe_topics(list(topics))
                },
                "CREATE" in cluster,
                group is None or _may_commit(admin, group),
            )
    except KafkaError as error:
        raise failure(settings, error) from error


def _facts(admin: KafkaAdminClient, topic: Mapping[str, Any]) -> TopicFacts:
    return TopicFacts(
        bool(topic["partitions"]),
        for_code(topic["error_code"]) is TopicAuthorizationFailedError,
        frozenset(topic.get("authorized_operations") or ()),
        read_configuration(admin, topic["name"]),
    )


def _may_commit(admin: KafkaAdminClient, group: str) -> bool:
    try:
        group_facts = admin.describe_groups([group])[group]
        operations = group_facts.get("authorized_operations")
    except GroupAuthorizationFailedError:
        return False
    except BrokerResponseError:
        # The right is unknown, so it is assumed: before the first commit in a cluster,
        # no broker coordinates groups.
        return True
    return not operations or "READ" in operations
