"""What each Kafka client library calls the settings of a cluster."""

from __future__ import annotations

from typing import Any

from connectors.kafka.settings import KafkaSettings


def kafka_python_options(settings: KafkaSettings) -> dict[str, Any]:
    """Arguments of every class of kafka-python that connects."""
    security = settings.security
    options: dict[str, Any] = {
        "bootstrap_servers": settings.bootstrap.split(","),
        "security_protocol": security.protocol.value,
    }
    if security.is_encrypted:
        options |= {
            "ssl_cafile": security.ca_file,
            "ssl_certfile": security.certificate_file,
            "ssl_keyfile": security.key_file,
            "ssl_password": security.key_password,
        }
    if security.has_user:
        options |= {
            "sasl_mechanism": security.mechanism.value,
            "sasl_plain_username": security.username,
            "sasl_plain_password": security.password,
        }
    return options


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
