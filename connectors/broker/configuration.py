"""Writes the configuration files of the embedded broker."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from connectors.kafka.settings import MAX_MESSAGE_BYTES, Mechanism, Protocol

HOST = "127.0.0.1"

# Names of files and directories in the broker's data directory. The data directory is
# also the broker's working directory.
DATA = "data"
PROPERTIES = "server.properties"
LOG4J = "log4j2.properties"
SCRATCH = "broker-scratch"
_KEYSTORE = "keystore.pem"
_TRUSTSTORE = "truststore.pem"

_SERVER_PROPERTIES = """\
# Rewritten at every start of the embedded broker.
process.roles=broker,controller
node.id=1
listeners={listeners},CONTROLLER://{host}:{controller_port}
advertised.listeners={listeners}
listener.security.protocol.map={protocols},CONTROLLER:PLAINTEXT
inter.broker.listener.name={own_listener}
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers={host}:{controller_port}
# Relative to the data directory: Kafka would split an absolute path at commas.
log.dirs={data}
# A misspelt topic is an error, not a new topic.
auto.create.topics.enable=false
message.max.bytes={max_message_bytes}
replica.fetch.max.bytes={max_message_bytes}
# One node: no replicas, one partition each, no delay for other group members.
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
# The default, 128 MiB, is a quarter of the heap.
log.cleaner.dedupe.buffer.size=16777216
"""

_LOG4J_PROPERTIES = """\
status=error
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d{ISO8601} %p %c{1}: %m%n
rootLogger.level=warn
rootLogger.appenderRef.out.ref=out
"""

_AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # All users can access a resource that has no access rules. User ANONYMOUS may do
    # everything, because the broker connects to itself as this user.
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
}
_LOGIN_MODULE = "org.apache.kafka.common.security"


@dataclass(frozen=True, slots=True)
class BrokerSecurity:
    """Encryption and authentication of clients.

    The files have the format PEM. `key_file` has an unencrypted PKCS #8 key.
    `certificate_file` has the broker's certificate, then the intermediate certificates.
    If `ca_file` is omitted, clients need no certificate. `users` maps user names
    (letters and digits only) to passwords. Every user can use every SASL mechanism.
    """

    protocol: Protocol
    certificate_file: Path | None = None
    key_file: Path | None = None
    ca_file: Path | None = None
    users: Mapping[str, str] = field(default_factory=dict, repr=False)


class Ports(NamedTuple):
    """The ports of a broker.

    `own` is for the parent process and for the broker itself. `controller` is for
    Kafka's metadata. Both use neither encryption nor authentication. If the broker has
    no `BrokerSecurity`, `own` and `clients` are the same port.
    """

    clients: int
    own: int
    controller: int


def write_configuration(
    data_dir: Path, ports: Ports, security: BrokerSecurity | None
) -> None:
    """Write the broker's configuration files, which only this user can read.

    Raises:
        OSError: A file cannot be read or written.
    """
    files = {LOG4J: _LOG4J_PROPERTIES}
    listeners = f"CLIENTS://{HOST}:{ports.clients}"
    protocols = "CLIENTS:PLAINTEXT"
    own_listener = "CLIENTS"
    secured: dict[str, str] = {}
    if security is not None:
        listeners += f",OWN://{HOST}:{ports.own}"
        protocols = f"CLIENTS:{security.protocol},OWN:PLAINTEXT"
        own_listener = "OWN"
        secured |= _AUTHORIZER
        if security.users:
            secured |= _sasl(security)
        if security.certificate_file and security.key_file:
            files[_KEYSTORE] = (
                security.key_file.read_text() + security.certificate_file.read_text()
            )
            secured |= _store("keystore", _KEYSTORE)
        if security.ca_file:
            files[_TRUSTSTORE] = security.ca_file.read_text()
            secured |= _store("truststore", _TRUSTSTORE)
            secured["ssl.client.auth"] = "required"
    files[PROPERTIES] = _SERVER_PROPERTIES.format(
        host=HOST,
        listeners=listeners,
        protocols=protocols,
        own_listener=own_listener,
        controller_port=ports.controller,
        data=DATA,
        max_message_bytes=MAX_MESSAGE_BYTES,
    ) + "".join(f"{name}={_escaped(value)}\n" for name, value in secured.items())
    for name, text in files.items():
        _write_private(data_dir / name, text)


def _store(name: str, file: str) -> dict[str, str]:
    return {f"ssl.{name}.type": "PEM", f"ssl.{name}.location": file}


def _sasl(security: BrokerSecurity) -> dict[str, str]:
    """Return the SASL settings.

    The settings contain the users' passwords for PLAIN, but no SCRAM credentials.
    """
    users = "".join(
        f" user_{name}={_quoted(password)}" for name, password in security.users.items()
    )
    logins = {
        Mechanism.PLAIN: f"{_LOGIN_MODULE}.plain.PlainLoginModule required{users};",
        Mechanism.SCRAM_SHA_256: f"{_LOGIN_MODULE}.scram.ScramLoginModule required;",
        Mechanism.SCRAM_SHA_512: f"{_LOGIN_MODULE}.scram.ScramLoginModule required;",
    }
    return {
        "sasl.enabled.mechanisms": ",".join(Mechanism),
        **{
            f"listener.name.clients.{mechanism.lower()}.sasl.jaas.config": login
            for mechanism, login in logins.items()
        },
    }


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _escaped(text: str) -> str:
    return "".join(
        f"\\u{ord(option):04x}" if option == "\\" or not option.isascii() else option
        for option in text
    )


def _write_private(path: Path, text: str) -> None:
    # Delete the old file, because `os.open` sets the mode only if it creates the file.
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
