"""Options of the connection to Kafka."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from connectors.kafka.settings import (
    FRAMES_TOPIC,
    MAX_PARTITIONS,
    KafkaSecurity,
    KafkaSettings,
    Mechanism,
    Protocol,
    SecurityUnusable,
    check_topic,
)
from sds_core.text import shown
from streaming.cli.exit_codes import wrong_use
from streaming.cli.settings import (
    Decorator,
    Panel,
    option_group,
    secret_setting,
    setting,
)
from streaming.cli.values import Duration, MemberOf, Parsed

_HOST_AND_PORT = re.compile(r"\S+:\d{1,5}")

partitions_option = setting(
    "--partitions",
    type=click.IntRange(1, MAX_PARTITIONS),
    default=4,
    panel=Panel.KAFKA,
    help="Number of partitions of the topic, if the command creates it.",
)
"""Adds ``--partitions`` to a command that creates a missing topic. The command gets the
value as ``partitions``."""


def kafka_options(
    *,
    required: bool = True,
    topic_help: str | None = "Topic that contains the frames.",
    several: bool = False,
) -> Decorator:
    """Add the options of a Kafka cluster to a command.

    The command gets their values as ``kafka``, a `KafkaSettings`. If ``--bootstrap`` is
    neither `required` nor given, ``kafka`` is None. If `topic_help` is None, the
    command has no option ``--topic``. If `several` is set, ``--topic`` accepts several
    topics, and the command reads them as one topic.
    """
    bootstrap = setting(
        "--bootstrap",
        "--bootstrap-server",
        "bootstrap",
        required=required,
        type=Parsed("HOST:PORT", _checked_bootstrap),
        help="Kafka brokers to connect to first, separated by commas.",
    )
    options: list[Decorator] = [bootstrap, *_OPTIONS]
    if topic_help is not None:
        options.append(
            setting(
                "--topic",
                default=FRAMES_TOPIC,
                type=(
                    Parsed("text,...", _checked_topics)
                    if several
                    else Parsed("text", _checked_topic)
                ),
                help=topic_help,
            )
        )
    return option_group("kafka", options, _kafka_settings, panel=Panel.KAFKA)


def _kafka_settings(
    bootstrap: str | None,
    kafka_timeout: float,
    topic: str = FRAMES_TOPIC,
    **security: Any,
) -> KafkaSettings | None:
    if bootstrap is None:
        return None
    # Without the prefix ``kafka_``, each option in `security` has the name of an
    # attribute of `KafkaSecurity`.
    checked = KafkaSecurity(
        **{name.removeprefix("kafka_"): value for name, value in security.items()}
    )
    _check(checked)
    return KafkaSettings(bootstrap, topic, kafka_timeout, checked)


def _checked_topic(topic: str) -> str:
    check_topic(topic)
    return topic


def _checked_topics(topics: str) -> str:
    names = topics.split(",")
    for name in names:
        check_topic(name)
    if len(set(names)) < len(names):
        message = f"{topics} contains a topic twice: give each topic once"
        raise ValueError(message)
    return topics


def _checked_bootstrap(brokers: str) -> str:
    if not all(_HOST_AND_PORT.fullmatch(part) for part in brokers.split(",")):
        message = (
            f"{shown(brokers)} is not a list of brokers: use HOST:PORT, or several "
            "such addresses separated by commas"
        )
        raise ValueError(message)
    return brokers


def _absolute(_: click.Context, __: click.Parameter, value: Path | None) -> str | None:
    return None if value is None else str(value.absolute())


_OPTIONS: tuple[Decorator, ...] = (
    setting(
        "--kafka-timeout",
        type=Duration("s", 1),
        default=120.0,
        panel=Panel.TIME,
        help="Maximum time to wait for a broker that does not answer.",
    ),
    setting(
        "--kafka-protocol",
        type=MemberOf(Protocol),
        default=Protocol.PLAINTEXT.value,
        panel=Panel.SECURITY,
        help="Security protocol that the brokers use.",
    ),
    *(
        setting(
            f"--kafka-{name}-file",
            type=click.Path(path_type=Path),
            callback=_absolute,
            panel=Panel.SECURITY,
            help=f"PEM file of {content}.",
        )
        for name, content in (
            (
                "ca",
                "the certificate authorities to trust; by default those of the system",
            ),
            ("certificate", "the client's certificate"),
            ("key", "the key of the client's certificate"),
        )
    ),
    secret_setting(
        "--kafka-key-password",
        panel=Panel.SECURITY,
        help="Password of the --kafka-key-file.",
    ),
    setting(
        "--kafka-mechanism",
        type=MemberOf(Mechanism),
        default=Mechanism.SCRAM_SHA_512.value,
        panel=Panel.SECURITY,
        help="SASL mechanism.",
    ),
    setting("--kafka-username", panel=Panel.SECURITY, help="User name for SASL."),
    secret_setting("--kafka-password", panel=Panel.SECURITY, help="Password for SASL."),
)


def _check(security: KafkaSecurity) -> None:
    protocol = security.protocol.value
    if security.has_user and not (security.username and security.password):
        message = (
            f"--kafka-protocol {protocol} needs --kafka-username and a password: give "
            "the password as SDS_MONITOR_KAFKA_PASSWORD, or as kafka-password in the "
            "--config file"
        )
        raise click.UsageError(message)
    if security.username and not security.has_user:
        message = (
            f"--kafka-username is given, but --kafka-protocol {protocol} has no login: "
            "use SASL_SSL or SASL_PLAINTEXT"
        )
        raise click.UsageError(message)
    for flag, given in (
        ("--kafka-ca-file", security.ca_file),
        ("--kafka-certificate-file", security.certificate_file),
        ("--kafka-key-file", security.key_file),
    ):
        if given and not security.is_encrypted:
            message = (
                f"{flag} is given, but --kafka-protocol {protocol} is not encrypted: "
                "use SSL or SASL_SSL"
            )
            raise click.UsageError(message)
    if bool(security.certificate_file) != bool(security.key_file):
        message = "give both --kafka-certificate-file and --kafka-key-file, or neither"
        raise click.UsageError(message)
    if security.is_encrypted:
        # The import loads a Kafka client, which --help does not need.
        from connectors.kafka.clients import ssl_context

        with wrong_use(SecurityUnusable):
            ssl_context(security)


kafka_reading_options = kafka_options(
    topic_help="Topics that contain the frames, separated by commas.",
    several=True,
)
"""Adds the options of a cluster to a command that reads several topics as one."""
