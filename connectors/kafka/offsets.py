"""Looks up offsets of a topic's partitions: at the start, at the end, or by time."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import (
    AuthorizationError,
    InvalidTopicError,
    KafkaError,
    NoError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafka.protocol.consumer import IsolationLevel
from kafka.structs import OffsetAndMetadata
from tenacity import RetryCallState, Retrying, stop_after_delay, wait_random_exponential

from connectors.kafka.clients import failure, kafka_python_options
from connectors.kafka.handshake import wait_until_listening
from connectors.kafka.settings import KafkaSettings, TopicMissing

_Result = TypeVar("_Result")

_TOPIC_MISSING = (UnknownTopicOrPartitionError, InvalidTopicError)
_FINAL = (*_TOPIC_MISSING, AuthorizationError)
_NEWLY_MADE_S = 2.0
"""Time after which a missing topic or partition is an error, seconds. Until then, a
broker may not yet know a partition that another broker already reports."""
_REQUEST_TIMEOUT_MS = 30_000
"""Default of kafka-python."""

_NO_ID = "0" * 32


class Topic(NamedTuple):
    """Ids and partitions of the topics in `KafkaSettings`, as brokers describe them.

    `id` has the ids of all topics, separated by commas, in the form that Kafka's tools
    print. If a topic is recreated, it gets another id. Brokers before Kafka 2.8 report
    no id. `partitions` has the numbers of the partitions in ascending order.
    """

    id: str | None
    partitions: list[int]


def find_replaced(known: str | None, found: str | None) -> dict[int, tuple[str, str]]:
    """For each topic whose id changed, return the old and the new id.

    Keys are the topics' indexes in the settings. `known` has the old ids and `found`
    the new ids, in the form of `Topic.id`. A missing id counts as unchanged.
    """
    pairs = zip((known or "").split(","), (found or "").split(","), strict=False)
    return {
        index: pair
        for index, pair in enumerate(pairs)
        if all(pair) and pair[0] != pair[1]
    }


class TimedOffset(NamedTuple):
    """A record's offset and its time in Unix ms."""

    offset: int
    timestamp_ms: int


class TopicOffsets:
    """Looks up offsets of the topics in `settings`; retries while brokers restart.

    All methods may raise `TopicMissing`, `KafkaRefused` if a broker refuses the client,
    and `KafkaUnreachable` if no broker answers within the settings' timeout.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._admin: KafkaAdminClient | None = None

    def describe(self) -> Topic:
        """Return the ids and the present partitions of the topics."""
        settings = self._settings

        def ask(admin: KafkaAdminClient) -> Topic:
            described = {
                topic["name"]: topic
                for topic in admin.describe_topics(list(settings.topics))
            }
            ids, partitions = [], []
            for name in settings.topics:
                topic = described[name]
                error = for_code(topic["error_code"])
                if error is not NoError:
                    raise error(name)
                ids.append(_printed(topic.get("topic_id")))
                partitions += [
                    settings.number_of(name, one["partition_index"])
                    for one in topic["partitions"]
                ]
            return Topic(",".join(ids) or None, sorted(partitions))

        return self._retried(ask)

    def partitions(self) -> list[int]:
        """Return the numbers of the topics' present partitions in ascending order."""
        return self.describe().partitions

    def earliest(self, partitions: Collection[int]) -> dict[int, int]:
        """For each partition, return the offset of its first existing record."""
        found = self._list(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
        return {partition: at.offset for partition, at in found.items()}

    def latest(self, partitions: Collection[int]) -> dict[int, int]:
        """For each partition, return the offset after its last committed record."""
        found = self._list(dict.fromkeys(partitions, OffsetSpec.LATEST))
        return {partition: at.offset for partition, at in found.items()}

    def written(self, partitions: Collection[int]) -> dict[int, int]:
        """For each partition, return the offset after its last record.

        Unlike `latest`, uncommitted records are included.
        """
        specs = dict.fromkeys(partitions, OffsetSpec.LATEST)
        found = self._list(specs, IsolationLevel.READ_UNCOMMITTED)
        return {partition: at.offset for partition, at in found.items()}

    def newest(self, partitions: Collection[int]) -> dict[int, TimedOffset]:
        """For each non-empty partition, return the first record with its maximum time.

        Retention may already have deleted this record. Instead of a record, the result
        may be a transaction marker, whose time is the time of the commit.
        """
        return self._list(dict.fromkeys(partitions, OffsetSpec.MAX_TIMESTAMP))

    def first_at_or_after(
        self, partitions: Collection[int], timestamp_ms: int
    ) -> dict[int, TimedOffset]:
        """For each partition, return the first record at or after `timestamp_ms`.

        Partitions that have no such record are omitted.
        """
        return self._list(dict.fromkeys(partitions, timestamp_ms))

    def commit(self, group: str, offsets: Mapping[int, int]) -> None:
        """Commit offsets to a group without members, so tools show the group's lag."""
        committed = {
            self._place_of(number): OffsetAndMetadata(offset, "", -1)
            for number, offset in offsets.items()
        }

        def ask(admin: KafkaAdminClient) -> None:
            errors = admin.alter_group_offsets(group, committed)
            for error in errors.values():
                # A permanent error is ignored, for example if the group has members.
                if error.retriable:
                    raise error

        self._retried(ask)

    def broker_time_ms(self) -> int | None:
        """Return the result of `controller_time_ms`; retry while brokers restart."""
        return self._retried(controller_time_ms)

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    def _list(
        self,
        specs: Mapping[int, OffsetSpec | int],
        isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> dict[int, TimedOffset]:
        asked = {self._place_of(number): spec for number, spec in specs.items()}
        found = self._retried(
            lambda admin: admin.list_partition_offsets(asked, isolation_level=isolation)
        )
        return {
            self._settings.number_of(*place): TimedOffset(at.offset, at.timestamp)
            for place, at in found.items()
            if at.offset >= 0
        }

    def _place_of(self, number: int) -> TopicPartition:
        return TopicPartition(*self._settings.place_of(number))

    def _retried(self, ask: Callable[[KafkaAdminClient], _Result]) -> _Result:
        retrying = Retrying(
            retry=_may_pass,
            stop=stop_after_delay(self._settings.timeout_s),
            wait=wait_random_exponential(multiplier=0.2, max=2),
            reraise=True,
        )
        try:
            return retrying(lambda: self._query(ask))
        except _TOPIC_MISSING as error:
            settings = self._settings
            named = (one for one in settings.topics if one in error.args)
            topic = next(named, settings.topic)
            raise TopicMissing(topic, settings.bootstrap) from error
        except KafkaError as error:
            raise failure(self._settings, error) from error

    def _query(self, ask: Callable[[KafkaAdminClient], _Result]) -> _Result:
        if self._admin is None:
            wait_until_listening(self._settings)
            timeout_ms = int(self._settings.timeout_s * 1000)
            self._admin = KafkaAdminClient(
                **kafka_python_options(self._settings),
                bootstrap_timeout_ms=timeout_ms,
                request_timeout_ms=min(_REQUEST_TIMEOUT_MS, timeout_ms),
            )
        try:
            return ask(self._admin)
        except KafkaError:
            # The next query uses a new client, because a client that lost its broker
            # does not always reconnect.
            self.close()
            raise


def _printed(topic_id: str | None) -> str:
    """Return a topic's id in the form that Kafka's tools print; "" if it has no id."""
    number = uuid.UUID(topic_id or _NO_ID)
    if not number.int:
        return ""
    return base64.urlsafe_b64encode(number.bytes).decode().rstrip("=")


def _may_pass(state: RetryCallState) -> bool:
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, UnknownTopicOrPartitionError):
        return (state.seconds_since_start or 0) < _NEWLY_MADE_S
    return isinstance(error, KafkaError) and not isinstance(error, _FINAL)


def controller_time_ms(admin: KafkaAdminClient) -> int | None:
    """Return the time of the active controller, Unix ms; None if it is unknown.

    Without a write, a client learns a broker's time only from the state of the metadata
    quorum. There, the active controller gives the time of its answer as the time of its
    own last fetch (KIP-836; `LeaderState.describeReplicaState` in apache/kafka). The
    request for this state requires Kafka 3.3 or newer with KRaft, the right to
    describe the cluster, and an active controller.

    Raises:
        KafkaError: No broker answered.
    """
    try:
        answer = admin.describe_metadata_quorum()
    except KafkaError as error:
        if error.retriable:
            raise
        return None
    return max(_leader_times(answer), default=None)


def _leader_times(answer: Mapping[str, Any]) -> Iterator[int]:
    for topic in answer["topics"]:
        for partition in topic["partitions"]:
            # While a leader is being removed from the voters, Kafka lists it as an
            # observer.
            for replica in partition["current_voters"] + partition["observers"]:
                time_ms = replica["last_fetch_timestamp"]
                if replica["replica_id"] == partition["leader_id"] and time_ms > 0:
                    yield time_ms
