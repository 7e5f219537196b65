"""Translates settings for each Kafka client library, and errors of kafka-python."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from kafka import KafkaProducer
from kafka.errors import (
    AuthorizationError,
    CorruptRecordError,
    InvalidRecordError,
    InvalidTimestampError,
    KafkaError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
)

from connectors.kafka.settings import (
    MAX_MESSAGE_BYTES,
    KafkaRefused,
    KafkaSecurity,
    KafkaSettings,
    KafkaUnreachable,
    RecordRefused,
    SecurityUnusable,
)
from connectors.sockets.tls import reason_of

_ABANDON_S = 5.0
"""Maximum time to wait until the thread of a stopped producer ends, seconds."""

_REFUSALS: Mapping[type[KafkaError], tuple[str, str]] = {
    MessageSizeTooLargeError: (
        "which is too large",
        "see max.message.bytes of the topic; more than "
        f"{MAX_MESSAGE_BYTES:,} bytes are never written",
    ),
    RecordListTooLargeError: (
        "which is larger than a segment",
        "see segment.bytes of the topic",
    ),
    InvalidTimestampError: (
        "whose time is too far from the broker's clock",
        "see message.timestamp.before.max.ms and message.timestamp.after.max.ms "
        "of the topic, and the clock of whoever stamped the record",
    ),
    InvalidRecordError: (
        "which does not pass its checks",
        "see message.timestamp.before.max.ms, message.timestamp.after.max.ms and "
        "cleanup.policy of the topic: with compact it takes no record without a "
        "key",
    ),
    CorruptRecordError: (
        "which is corrupt",
        "see max.message.bytes and cleanup.policy of the topic, and the network",
    ),
}
"""For each error class, why the broker rejects a record, and what the user should
check."""

_LONGEST_BACKOFF_MS = 1_000
"""Maximum wait between two attempts to connect, ms.

By default, kafka-python waits up to 36 s after an outage. A mirror would then write
records so late that the watermark has already passed them.
"""


def kafka_python_options(settings: KafkaSettings) -> dict[str, Any]:
    """Return the arguments for all classes of kafka-python that connect to brokers.

    Raises:
        SecurityUnusable: A file in the security settings cannot be used.
    """
    security = settings.security
    options: dict[str, Any] = {
        "bootstrap_servers": settings.bootstrap.split(","),
        "security_protocol": security.protocol.value,
        "reconnect_backoff_max_ms": _LONGEST_BACKOFF_MS,
    }
    if security.is_encrypted:
        options["ssl_context"] = ssl_context(security)
    if security.has_user:
        options |= kafka_python_user(security)
    return options


def kafka_python_user(security: KafkaSecurity) -> dict[str, Any]:
    """Return the arguments with which kafka-python authenticates the user."""
    return {
        "sasl_mechanism": security.mechanism.value,
        "sasl_plain_username": security.username,
        "sasl_plain_password": security.password,
    }


def confluent_options(settings: KafkaSettings) -> dict[str, Any]:
    """Return the configuration for all clients of confluent-kafka.

    Raises:
        SecurityUnusable: A file in the security settings cannot be used.
    """
    security = settings.security
    options: dict[str, Any] = {
        "bootstrap.servers": settings.bootstrap,
        "security.protocol": security.protocol.value,
    }
    if security.is_encrypted:
        # confluent-kafka reads the files again. Its error would name no remedy.
        ssl_context(security)
        options |= {
            "ssl.ca.location": security.ca_file,
            "ssl.certificate.location": security.certificate_file,
            "ssl.key.location": security.key_file,
            "ssl.key.password": security.key_password,
        }
    if security.has_user:
        options |= {
            "sasl.mechanism": security.mechanism.value,
            "sasl.username": security.username,
            "sasl.password": security.password,
        }
    return {name: value for name, value in options.items() if value is not None}


def failure(settings: KafkaSettings, error: KafkaError) -> KafkaUnreachable:
    """Translate an error of kafka-python to an error of this package."""
    if isinstance(error, AuthorizationError):
        user = settings.security.username or "whoever names no user"
        return KafkaRefused(
            settings.bootstrap,
            f"{user} may not do this ({error!s:.160})",
            "give the user the right to, or use another",
        )
    for refusal, (cause, remedy) in _REFUSALS.items():
        if isinstance(error, refusal):
            why = f"{cause} ({error!s:.240})"
            return RecordRefused(settings.bootstrap, why, remedy)
    # An error with this text means that the broker rejects the record because of
    # another record in the same batch.
    if "it was part of a batch" in str(error):
        return RecordRefused(
            settings.bootstrap,
            "which came in one batch with another that it does not take",
            "write it by itself",
        )
    return KafkaUnreachable(settings.bootstrap, error)


def record_refusal(settings: KafkaSettings, error: KafkaError) -> RecordRefused:
    """Translate an error of kafka-python that says why a broker rejects one record.

    Raises:
        KafkaError: `error` concerns more than this record, and is raised unchanged.
    """
    refusal = failure(settings, error)
    if not isinstance(refusal, RecordRefused):
        raise error
    return refusal


def abandon(producer: KafkaProducer) -> None:
    """Stop a producer without waiting, and drop its unsent records.

    `KafkaProducer.close` alone is not enough. It waits for the unsent records, and
    raises an error if they cannot be sent. After this error, the producer continues in
    the background, and may write records that a later producer has already written.
    """
    sender = producer._sender  # noqa: SLF001 - no public method ends it
    sender.force_close()
    sender.join(_ABANDON_S)
    with suppress(KafkaError):
        producer.close(timeout=0)


class LazyProducer:
    """Base class of writers that connect when they write, if they are not connected."""

    _producer: KafkaProducer | None = None

    def close(self) -> None:
        """Close the connection without waiting for unacknowledged records."""
        if self._producer is not None:
            abandon(self._producer)
            self._producer = None

    def _connected(self) -> KafkaProducer:
        if self._producer is None:
            self._producer = self._connect()
        return self._producer

    def _connect(self) -> KafkaProducer:
        raise NotImplementedError


def ssl_context(security: KafkaSecurity) -> ssl.SSLContext:
    """Return TLS settings that verify certificates and host names of brokers.

    Raises:
        SecurityUnusable: A file is not PEM, or certificate, key and password do not
            belong together.
    """
    try:
        context = ssl.create_default_context(cafile=security.ca_file)
    except OSError as error:
        message = (
            f"{security.ca_file} contains no readable certificates "
            f"({reason_of(error)}): set --kafka-ca-file to a PEM file with the "
            "certificate of a CA"
        )
        raise SecurityUnusable(message) from error
    if security.certificate_file is not None:
        try:
            context.load_cert_chain(
                security.certificate_file,
                security.key_file,
                # If the password were None, OpenSSL would ask for it at the terminal.
                security.key_password or "",
            )
        except OSError as error:
            message = (
                f"{security.certificate_file} and {security.key_file} cannot be used "
                f"({reason_of(error)}): check that both files are PEM and belong "
                "together; if the key has a password, check "
                "SDS_MONITOR_KAFKA_KEY_PASSWORD"
            )
            raise SecurityUnusable(message) from error
    return context
