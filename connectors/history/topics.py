"""Writes the history to Kafka topics, for users with their own data warehouse."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from kafka import KafkaProducer
from kafka.errors import KafkaError

from connectors.history.schema import CHANNEL_TABLES, HistoryTable, KindTables, Row
from connectors.kafka.clients import LazyProducer, failure, kafka_python_options
from connectors.kafka.settings import (
    INCIDENTS_TOPIC,
    MAX_MESSAGE_BYTES,
    MINUTES_TOPIC,
    VERDICTS_TOPIC,
    KafkaSettings,
)
from connectors.kafka.topics import ensure_topic

RETENTION_MS = 30 * 86_400_000
_BATCH_BYTES = 1024 * 1024


class HistoryTopics(LazyProducer):
    """Writes rows to three topics, which are created if they are missing.

    A record's key is a JSON array of the row's key fields; its value is the row as a
    JSON object. The record's timestamp is the time of writing, so retention begins at
    that time. Event times are in the value. `retention_ms` applies only to topics that
    this class creates.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        topics: Sequence[str] = (INCIDENTS_TOPIC, MINUTES_TOPIC, VERDICTS_TOPIC),
        retention_ms: int = RETENTION_MS,
        tables: KindTables = CHANNEL_TABLES,
    ) -> None:
        self._settings = settings
        names = (table.name for table in tables[1:])
        self._topics = dict(zip(names, topics, strict=True))
        self._found: set[str] = set()
        self._configuration = {
            "cleanup.policy": "compact,delete",
            "retention.ms": str(retention_ms),
        }

    def write(self, table: HistoryTable, rows: Iterable[Row]) -> None:
        """Write rows of a table to its topic; return when all rows are acknowledged.

        Raises:
            InvalidTopic: Kafka does not allow the name of the topic.
            KafkaUnreachable: Not every row was acknowledged. The caller must write all
                rows again.
        """
        topic = self._topics[table.name]
        if topic not in self._found:
            ensure_topic(self._settings, topic, configuration=self._configuration)
            self._found.add(topic)
        try:
            producer = self._connected()
            sent = [
                producer.send(
                    topic,
                    key=msgspec.json.encode([row[name] for name in table.key]),
                    value=msgspec.json.encode(row),
                )
                for row in rows
            ]
            producer.flush()
            # If Kafka rejects a record, `flush` raises no error, but `get` does.
            for future in sent:
                future.get()
        except KafkaError as error:
            self.close()
            # The topic may have been deleted.
            self._found.discard(topic)
            raise failure(self._settings, error) from error

    def _connect(self) -> KafkaProducer:
        timeout_ms = int(self._settings.timeout_s * 1000)
        return KafkaProducer(
            **kafka_python_options(self._settings),
            acks="all",
            enable_idempotence=True,
            max_request_size=MAX_MESSAGE_BYTES,
            # Rows are similar, so large batches compress well. Batches of this size
            # need a third of the time and a tenth of the space that batches of the
            # default size need.
            batch_size=_BATCH_BYTES,
            compression_type="gzip",
            max_block_ms=timeout_ms,
            delivery_timeout_ms=timeout_ms,
            request_timeout_ms=min(timeout_ms, 30_000),
        )
