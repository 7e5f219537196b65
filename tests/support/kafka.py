"""Real Kafka for tests: one broker per session, many topics."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ParamSpec

import pytest
from confluent_kafka import Producer
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import NewPartitions

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.consumer import OffsetRange, fetch
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import MAX_MESSAGE_BYTES, Client, KafkaSettings
from connectors.kafka.topics import KEEP_FOR_EVER, ensure_topic
from sds_core.observer.record import RawRecord

TIMEOUT_S = 60.0
"""Of all settings: what must come soon takes far less, also on a busy machine."""

BUSY_S = 20.0
"""How long a busy machine may hold up what takes no time on an idle one."""

NOBODY = KafkaSettings("127.0.0.1:1", "nothing", timeout_s=1.0)
"""A cluster where no broker answers."""

P = ParamSpec("P")

_numbers = itertools.count(1)


@dataclass(frozen=True)
class KafkaTopic:
    """A topic of a test, with a confluent-kafka producer.

    Attributes:
        settings: How to reach it.
    """

    settings: KafkaSettings

    @cached_property
    def _producer(self) -> Producer:
        return Producer(_producer_configuration(self.settings))

    def write(
        self,
        value: bytes | None = b"value",
        *,
        partition: int = 0,
        time_ms: int = 1_000,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        flush: bool = True,
    ) -> None:
        """Write a record; by default return once the broker has acknowledged it."""
        _produce(
            self._producer,
            self.settings.topic,
            RawRecord(partition, 0, time_ms, key, value, headers),
        )
        if flush:
            self.flush()

    def write_names(
        self,
        *headers: tuple[bytes, bytes],
        value: bytes | None = b"value",
        partition: int = 0,
        time_ms: int = 1_000,
        key: bytes | None = None,
        compression: str | None = None,
    ) -> None:
        """Write a record with header names of any bytes."""
        producer = KafkaProducer(
            bootstrap_servers=self.settings.bootstrap, compression_type=compression
        )
        try:
            producer.send(
                self.settings.topic,
                value=value,
                key=key,
                headers=[(_Name(name.hex()), content) for name, content in headers],
                partition=partition,
                timestamp_ms=time_ms,
            ).get(TIMEOUT_S)
        finally:
            producer.close()

    def write_times(self, times_ms: Sequence[int], partition: int = 0) -> None:
        """Write records whose values are their numbers."""
        for number, time_ms in enumerate(times_ms):
            value = str(number).encode()
            self.write(value, partition=partition, time_ms=time_ms, flush=False)
        self.flush()

    def flush(self) -> None:
        """Wait until the broker has all records."""
        assert not self._producer.flush(TIMEOUT_S)

    @contextmanager
    def transaction(
        self, times_ms: Sequence[int], partition: int = 0, *, commit: bool = True
    ) -> Iterator[None]:
        """Hold records in an open transaction, then commit or abort it."""
        producer = Producer(
            _producer_configuration(self.settings)
            | {"transactional.id": f"test-{next(_numbers)}"}
        )
        producer.init_transactions(TIMEOUT_S)
        producer.begin_transaction()
        for number, time_ms in enumerate(times_ms):
            value = str(number).encode()
            record = RawRecord(partition, 0, time_ms, None, value, ())
            _produce(producer, self.settings.topic, record)
        assert not producer.flush(TIMEOUT_S)
        yield
        if commit:
            producer.commit_transaction(TIMEOUT_S)
        else:
            producer.abort_transaction(TIMEOUT_S)

    def write_transaction(
        self, times_ms: Sequence[int], partition: int = 0, *, commit: bool = True
    ) -> None:
        """Write a transaction; its end is readable when this returns."""
        with self.transaction(times_ms, partition, commit=commit):
            before = self.last_stable_offset(partition)
        self.wait_for(
            lambda: self.last_stable_offset(partition) > before + len(times_ms)
        )

    def last_stable_offset(self, partition: int = 0) -> int:
        """Offset up to which committed records can be read."""
        offsets = TopicOffsets(self.settings)
        try:
            return offsets.latest([partition])[partition]
        finally:
            offsets.close()

    def delete_before(self, offset: int, partition: int = 0) -> None:
        """Delete records as retention does."""
        with self.admin() as admin:
            admin.delete_records(
                {TopicPartition(self.settings.topic, partition): offset}
            )

    def make_anew(self, partitions: int = 1) -> None:
        """Delete the topic, and make an empty one of its name."""
        self.delete()
        self.make(partitions)

    def delete(self) -> None:
        """Delete the topic; the broker has forgotten it when this returns."""
        name = self.settings.topic
        with self.admin() as admin:
            admin.delete_topics([name])
            self.wait_for(lambda: name not in admin.list_topics())

    def make(self, partitions: int = 1) -> None:
        """Make an empty topic of this name after `delete`."""
        name = self.settings.topic
        # A broker may still refuse the name for a moment.
        self.wait_for(
            lambda: ensure_topic(self.settings, name, partitions, KEEP_FOR_EVER)
        )

    def add_partitions(self, total: int) -> None:
        """Raise the number of partitions; the broker knows them when this returns."""
        topic = self.settings.topic
        with self.admin() as admin:
            admin.create_partitions({topic: NewPartitions(total)})
            self.wait_for(
                lambda: len(admin.describe_topics([topic])[0]["partitions"]) == total
            )

    @contextmanager
    def admin(self) -> Iterator[KafkaAdminClient]:
        """An admin client for everything else."""
        admin = KafkaAdminClient(bootstrap_servers=self.settings.bootstrap)
        try:
            yield admin
        finally:
            admin.close()

    @staticmethod
    def wait_for(condition: Callable[[], bool]) -> None:
        """Wait until the broker has applied a change."""
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.05)


class _Name(str):
    """A header's name in hexadecimal digits; kafka-python writes its bytes."""

    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        return bytes.fromhex(self)


TopicMaker = Callable[..., KafkaTopic]


def make_topic(
    broker: EmbeddedBroker,
    partitions: int = 1,
    configuration: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> KafkaTopic:
    """Create a topic with a unique name and the settings of docs/records.md."""
    settings = KafkaSettings(
        broker.bootstrap, f"frames-{next(_numbers)}", timeout_s=timeout_s
    )
    ensure_topic(
        settings,
        settings.topic,
        partitions,
        {**KEEP_FOR_EVER, **(configuration or {})},
    )
    return KafkaTopic(settings)


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[EmbeddedBroker]:
    """One broker for all tests that do not stop it."""
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def kafka_topic(kafka_broker: EmbeddedBroker) -> TopicMaker:
    """Create topics on the session's broker: partitions, configuration, timeout_s."""

    def make(
        partitions: int = 1,
        configuration: Mapping[str, str] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> KafkaTopic:
        return make_topic(kafka_broker, partitions, configuration, timeout_s)

    return make


def records(kafka: KafkaSettings) -> list[RawRecord]:
    """Return all records of a topic, partition by partition in order."""
    offsets = TopicOffsets(kafka)
    try:
        partitions = offsets.partitions()
        ends = offsets.latest(partitions)
    finally:
        offsets.close()
    found: list[RawRecord] = []
    for partition in partitions:
        for some in fetch(
            Client.CONFLUENT, kafka, [OffsetRange(partition, 0, ends[partition])]
        ):
            found += some
    return found


def free_port() -> int:
    """Return a port that a program can use, also again after a restart.

    It lies below the ports that systems give to outgoing connections: tests beside this
    one cannot take it by connecting somewhere.
    """
    while True:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port := secrets.choice(range(15_000, 32_000))))
            return port


def refused_sockets_stay_open(test: Callable[P, None]) -> Callable[P, None]:
    """Let kafka-python leave sockets open where no broker answers, which it does.

    Otherwise the warnings about them, errors here, would hit whatever runs when they
    are collected.
    """

    @functools.wraps(test)
    def collected(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            test(*args, **kwargs)
        finally:
            for thread in threading.enumerate():
                # A client that was closed lives on for a moment.
                if thread.name.startswith("kafka-io"):
                    thread.join(1.0)
            gc.collect()

    return pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")(
        collected
    )


def _producer_configuration(settings: KafkaSettings) -> dict[str, Any]:
    return {
        "bootstrap.servers": settings.bootstrap,
        "message.max.bytes": MAX_MESSAGE_BYTES + 1_000_000,
        "log_level": 0,
    }


def _produce(producer: Producer, topic: str, record: RawRecord) -> None:
    producer.produce(
        topic,
        record.value,
        record.key,
        record.partition,
        timestamp=record.timestamp_ms,
        headers=list(record.headers),
    )
    producer.poll(0)
