"""Polls the newest records of a topic, up to a limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from kafka.errors import KafkaError

from connectors.kafka.clients import failure
from connectors.kafka.consumer import (
    OffsetRange,
    kafka_python_consumer,
    read_kafka_python,
)
from connectors.kafka.settings import KafkaSettings, KafkaUnreachable, RecordsLost
from sds_core.observer.record import RawRecord

_PARTITIONS = 8
"""Maximum number of partitions in one read. A few partitions suffice, because taps
write heartbeats to every partition."""

_RECORDS = 50
"""Maximum number of records from each partition in one read: enough for one heartbeat
from each of 50 taps."""

_MOST_BYTES = 4 << 20
"""If the values and headers exceed this size, bytes, the read ends. The size is
limited, because a single record may have 32 MiB."""


class TopicTail:
    """Reads a few records near the end of each partition, a few partitions at a time.

    The first read opens the connection.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._stack = ExitStack()
        self._consumer: Any = None
        self._turn = 0

    def read(
        self, since: Mapping[int, int], ends: Mapping[int, int]
    ) -> list[RawRecord]:
        """Return the newest records, without their keys and values.

        The new records of a partition lie between the partition's offsets in `since`
        and `ends`. If a partition is not in `since`, it is not read. If the records
        exceed a total size, the read ends early.

        Raises:
            KafkaUnreachable: No broker answered.
            KafkaRefused: A broker refuses the client.
        """
        grown = sorted(p for p in since if ends.get(p, 0) > since[p])
        if len(grown) > _PARTITIONS:
            begin = self._turn * _PARTITIONS % len(grown)
            grown = [*grown[begin:], *grown[:begin]][:_PARTITIONS]
        self._turn += 1
        ranges = [
            OffsetRange(p, max(since[p], ends[p] - _RECORDS), ends[p]) for p in grown
        ]
        if not ranges:
            return []
        try:
            if self._consumer is None:
                consumer = kafka_python_consumer(self._settings)
                self._consumer = self._stack.enter_context(consumer)
            return list(_few(read_kafka_python(self._consumer, self._settings, ranges)))
        except RecordsLost:
            # Retention has already deleted the records.
            return []
        except KafkaUnreachable:
            # The next read uses a new client, because a client that lost its broker
            # does not always reconnect.
            self.close()
            raise
        except KafkaError as error:
            self.close()
            raise failure(self._settings, error) from error

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        self._consumer = None
        self._stack.close()


def _few(chunks: Iterable[Sequence[RawRecord]]) -> Iterator[RawRecord]:
    size = 0
    for chunk in chunks:
        for one in chunk:
            size += len(one.value or b"")
            size += sum(len(value or b"") for _, value in one.headers)
            yield one._replace(key=None, value=None)
        if size > _MOST_BYTES:
            return
