"""What each Kafka client library calls the settings of a cluster."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
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

_ABANDON_S = 5.0
"""For the thread of a producer to see that it is to end."""

_REFUSALS: Mapping[type[KafkaError], tuple[str, str]] = MappingProxyType(
    {
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
)
"""Why a record is not taken, and what to look at."""

_OF_A_BATCH = "it was part of a batch"
"""In the error of a record that was not taken for another's sake, which has no class
of its own."""


def kafka_python_options(settings: KafkaSettings) -> dict[str, Any]:
    """Arguments of every class of kafka-python that connects.

    Raises:
        SecurityUnusable: A file of the security cannot be used.
    """
    security = settings.security
    options: dict[str, Any] = {
        "bootstrap_servers": settings.bootstrap.split(","),
        "security_protocol": security.protocol.value,
    }
    if security.is_encrypted:
        options["ssl_context"] = ssl_context(security)
    if security.has_user:
        options |= kafka_python_user(security)
    return options


def kafka_python_user(security: KafkaSecurity) -> dict[str, Any]:
    """Those of them that name the user."""
    return {
        "sasl_mechanism": security.mechanism.value,
        "sasl_plain_username": security.username,
        "sasl_plain_password": security.password,
    }


def confluent_options(settings: KafkaSettings) -> dict[str, Any]:
    """Configuration of every client of confluent-kafka."""
    security = settings.security
    options: dict[str, Any] = {
        "bootstrap.servers": settings.bootstrap,
        "security.protocol": security.protocol.value,
    }
    if security.is_encrypted:
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
    """What an error of kafka-python is to whoever asked for something."""
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
    if _OF_A_BATCH in str(error):
        return RecordRefused(
            settings.bootstrap,
            "which came in one batch with another that it does not take",
            "write it by itself",
        )
    return KafkaUnreachable(settings.bootstrap, error)


def abandon(producer: KafkaProducer) -> None:
    """Stop a producer at once; what it still holds is given up.

    `KafkaProducer.close` waits for all of that first, and raises where it does not
    go: a producer that has lost its broker would then go on by itself, and write what
    meanwhile another has written.
    """
    # No public method ends it otherwise.
    sender = producer._sender  # noqa: SLF001 - as above
    sender.force_close()
    sender.join(_ABANDON_S)
    with suppress(KafkaError):
        producer.close(timeout=0)


def ssl_context(security: KafkaSecurity) -> ssl.SSLContext:
    """How TLS is spoken: brokers must prove who they are, by name too.

    Raises:
        SecurityUnusable: A file is no PEM, or key, certificate and password do not
            belong together; says what to do.
    """
    try:
        context = ssl.create_default_context(cafile=security.ca_file)
    except OSError as error:
        message = (
            f"{security.ca_file} cannot be read as certificates ({_reason(error)}): "
            "give the authority's certificate in PEM as --kafka-ca-file"
        )
        raise SecurityUnusable(message) from error
    if security.certificate_file is not None:
        try:
            context.load_cert_chain(
                security.certificate_file,
                security.key_file,
                # Without any, OpenSSL would ask whoever sits at the terminal.
                security.key_password or "",
            )
        except OSError as error:
            message = (
                f"{security.certificate_file} and {security.key_file} cannot be used "
                f"({_reason(error)}): check that they are PEM and belong together, and "
                "that SDS_MONITOR_KAFKA_KEY_PASSWORD is that of the key if it has one"
            )
            raise SecurityUnusable(message) from error
    return context


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        # Without a reason it is one about PEM, which a wrong password makes too.
        return error.reason or "not to be read as PEM"
    return error.strerror or str(error)
