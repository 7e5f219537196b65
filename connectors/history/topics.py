"""Writes the history to Kafka topics, for users with their own data warehouse."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from kafka import KafkaProducer
from kafka.errors import KafkaError

from connectors.history.schema import CHANNEL_TABLES, KindTables, Row
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
        self._topics = list(zip(topics, tables[1:], strict=True))
        self._configuration = {
            "cleanup.policy": "compact,delete",
            "retention.ms": str(retention_ms),
        }

    def write(self, *rows: Iterable[Row]) -> None:
        """Write rows to the topics; return when all rows are acknowledged.

        Each argument has the rows of one table: incidents, minutes, verdicts.

        Raises:
            InvalidTopic: Kafka does not allow the name of a topic.
            KafkaUnreachable: Not every row was acknowledged. The caller must write all
                rows again.
        """
        try:
            producer = self._connected()
            sent = [
                producer.send(
                    topic,
                    key=msgspec.json.encode([row[name] for name in table.key]),
                    value=msgspec.json.encode(row),
                )
                for (topic, table), some in zip(self._topics, rows, strict=False)
                for row in some
            ]
            producer.flush()
            # If Kafka rejects a record, `flush` raises no error, but `get` does.
            for future in sent:
                future.get()
        except KafkaError as error:
            self.close()
            raise failure(self._settings, error) from error

    def _connect(self) -> KafkaProducer:
        for topic, _ in self._topics:
            ensure_topic(self._settings, topic, configuration=self._configuration)
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
