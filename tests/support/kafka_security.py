"""Secured Kafka for tests: brokers with TLS and authentication."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from connectors.broker.broker import EmbeddedBroker
from connectors.broker.configuration import BrokerSecurity
from connectors.kafka.settings import KafkaSecurity, KafkaSettings, Protocol
from tests.support.tls import Authority

USER = "alice"
TELLTALE = "Hu5h-7719"
"""In every secret, and nothing escapes it: what shows it shows a secret."""
PASSWORD = f'pa"ss\\wörd=,§;{TELLTALE}'
"""With everything that a file format or a protocol may stumble over."""
KEY_PASSWORD = f"key-{TELLTALE}"
WRONG = f"other-{TELLTALE}"
TIMEOUT_S = 120.0


@dataclass(frozen=True)
class SecuredBroker:
    """A running broker and settings with which clients can connect.

    Attributes:
        settings: Which it lets in.
        data_dir, pid: Of the process.
    """

    settings: KafkaSettings
    data_dir: Path
    pid: int

    def but(self, **security: Any) -> KafkaSettings:
        """Return the settings with parts of the security replaced."""
        return replace(
            self.settings,
            security=replace(self.settings.security, **security),
        )


@contextmanager
def broker_with_users(authority: Authority) -> Iterator[SecuredBroker]:
    """A broker with TLS and SASL, with every mechanism."""
    own = authority.issue("127.0.0.1")
    with EmbeddedBroker(
        security=BrokerSecurity(
            Protocol.SASL_SSL,
            own.certificate_file,
            own.key_file,
            users={USER: PASSWORD},
        ),
    ) as broker:
        yield SecuredBroker(
            KafkaSettings(
                broker.bootstrap,
                timeout_s=TIMEOUT_S,
                security=KafkaSecurity(
                    Protocol.SASL_SSL,
                    ca_file=str(authority.ca_file),
                    username=USER,
                    password=PASSWORD,
                ),
            ),
            broker.data_dir,
            broker.pid,
        )


@contextmanager
def broker_with_certificates(authority: Authority) -> Iterator[SecuredBroker]:
    """A broker with TLS that requires client certificates."""
    own = authority.issue("127.0.0.1")
    client = authority.issue("client.test", KEY_PASSWORD)
    with EmbeddedBroker(
        security=BrokerSecurity(
            Protocol.SSL, own.certificate_file, own.key_file, authority.ca_file
        )
    ) as broker:
        yield SecuredBroker(
            KafkaSettings(
                broker.bootstrap,
                timeout_s=TIMEOUT_S,
                security=KafkaSecurity(
                    Protocol.SSL,
                    ca_file=str(authority.ca_file),
                    certificate_file=str(client.certificate_file),
                    key_file=str(client.key_file),
                    key_password=KEY_PASSWORD,
                ),
            ),
            broker.data_dir,
            broker.pid,
        )
