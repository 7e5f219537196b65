"""Creates topics with the settings of docs/records.md.

Functions raise `InvalidTopic` if Kafka does not allow a topic of this name, and
`KafkaUnreachable` if no broker answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from types import MappingProxyType

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic
from kafka.errors import (
    BrokerResponseError,
    InvalidTopicError,
    KafkaError,
    TopicAlreadyExistsError,
)

from connectors.kafka.clients import failure, kafka_python_options
from connectors.kafka.handshake import wait_until_listening
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import MAX_MESSAGE_BYTES, InvalidTopic, KafkaSettings

KEEP_FOR_EVER = MappingProxyType({"retention.ms": "-1"})
"""Topic settings for records with old event times, such as those of replays and
recordings. With the default retention, the broker would soon delete these records."""


def ensure_frames_topic(settings: KafkaSettings, partitions: int) -> int:
    """Create the topic of frames, with unlimited retention, if it does not exist.

    Returns the number of partitions of the topic.
    """
    if ensure_topic(settings, settings.topic, partitions, KEEP_FOR_EVER):
        return partitions
    with closing(TopicOffsets(settings)) as offsets:
        return len(offsets.partitions())


def ensure_topic(
    settings: KafkaSettings,
    topic: str,
    partitions: int = 1,
    configuration: Mapping[str, str] = MappingProxyType({}),
) -> bool:
    """Create a topic if it does not exist; return whether it was created.

    The new topic has the settings of docs/records.md. `configuration` adds settings or
    overrides them.
    """
    configs = {
        "max.message.bytes": str(MAX_MESSAGE_BYTES),
        "message.timestamp.type": "CreateTime",
        **configuration,
    }
    try:
        wait_until_listening(settings)
        admin = KafkaAdminClient(**kafka_python_options(settings))
        with closing(admin):
            # Check first whether the topic exists, because a user who may write to it
            # may lack the right to create topics.
            if topic in admin.list_topics():
                return False
            new_topic = NewTopic(topic, partitions, -1, topic_configs=configs)
            admin.create_topics([new_topic])
    except TopicAlreadyExistsError:
        return False
    except InvalidTopicError as error:
        raise InvalidTopic(topic) from error
    except KafkaError as error:
        raise failure(settings, error) from error
    return True


def find_max_message_bytes(settings: KafkaSettings, topic: str) -> int | None:
    """Return the maximum size of a topic's batch, bytes; None if it is unknown."""
    try:
        with closing(KafkaAdminClient(**kafka_python_options(settings))) as admin:
            return int(read_configuration(admin, topic)["max.message.bytes"])
    except (LookupError, TypeError, ValueError):
        return None
    except KafkaError as error:
        raise failure(settings, error) from error


def read_configuration(admin: KafkaAdminClient, topic: str) -> dict[str, str]:
    """Return all settings of a topic.

    The result is empty if the topic is missing or its settings cannot be read.
    """
    try:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        answer = admin.describe_configs([resource], config_filter="all")
    except BrokerResponseError:
        return {}
    return {name: one["value"] for name, one in answer["topic"][topic].items()}
