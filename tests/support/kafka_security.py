"""Secured Kafka for tests: certificates of a minute, brokers that ask for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from connectors.kafka.broker import BrokerSecurity, EmbeddedBroker
from connectors.kafka.settings import KafkaSecurity, KafkaSettings, Protocol

USER = "alice"
TELLTALE = "Hu5h-7719"
"""In every secret, and nothing escapes it: what shows it shows a secret."""
PASSWORD = f'pa"ss\\wörd=,§;{TELLTALE}'
"""With everything that a file format or a protocol may stumble over."""
KEY_PASSWORD = f"key-{TELLTALE}"
WRONG = f"other-{TELLTALE}"
TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Identity:
    """A certificate and its key.

    Attributes:
        certificate_file: PEM, with those between it and the authority.
        key_file: PEM, PKCS #8.
    """

    certificate_file: Path
    key_file: Path


class Authority:
    """A certificate authority of a test's own.

    Attributes:
        ca_file: Its certificate, PEM.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._ca = trustme.CA()
        self.ca_file = directory / "ca.pem"
        self._ca.cert_pem.write_to_path(str(self.ca_file))

    def issue(self, host: str, password: str | None = None) -> Identity:
        """Make a certificate for a host name or address.

        Args:
            host: Whom it is for.
            password: Of the key; None to leave it open.
        """
        issued = self._ca.issue_cert(host)
        identity = Identity(
            self._directory / f"{host}.pem", self._directory / f"{host}.key"
        )
        identity.certificate_file.write_bytes(
            b"".join(one.bytes() for one in issued.cert_chain_pems)
        )
        key = load_pem_private_key(issued.private_key_pem.bytes(), None)
        identity.key_file.write_bytes(
            key.private_bytes(
                Encoding.PEM,
                PrivateFormat.PKCS8,
                BestAvailableEncryption(password.encode())
                if password
                else NoEncryption(),
            )
        )
        return identity


@dataclass(frozen=True)
class SecuredBroker:
    """A running broker, and how it wants to be spoken to.

    Attributes:
        settings: Which it lets in.
        data_dir, pid: Of the process.
    """

    settings: KafkaSettings
    data_dir: Path
    pid: int

    def but(self, **security: Any) -> KafkaSettings:
        """The settings with some of the security otherwise."""
        return replace(
            self.settings,
            security=replace(self.settings.security, **security),
        )


@contextmanager
def broker_with_users(authority: Authority) -> Iterator[SecuredBroker]:
    """A broker that speaks TLS and asks for a user, by each mechanism."""
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
    """A broker that speaks TLS and asks for the client's certificate."""
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
