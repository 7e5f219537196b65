"""Flags of every command that speaks to Kafka, and the settings they make."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from connectors.kafka.clients import ssl_context
from connectors.kafka.settings import (
    FRAMES_TOPIC,
    InvalidTopic,
    KafkaSecurity,
    KafkaSettings,
    Mechanism,
    Protocol,
    SecurityUnusable,
    check_topic,
)
from streaming.cli.settings import secret_setting, setting

_HOST_AND_PORT = re.compile(r"\S+:\d{1,5}")

_Command = TypeVar("_Command", bound=Callable[..., Any])


def kafka_options(
    *, required: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the flags of a cluster; the command gets ``kafka``, its settings.

    The topic is that of the command's ``--topic``, which it gets as well.

    Args:
        required: Whether the command cannot do without; else ``kafka`` is None
            where no ``--bootstrap`` is given.
    """

    def add(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def collected(
            bootstrap: str | None,
            kafka_timeout: float,
            kafka_protocol: str,
            kafka_ca_file: Path | None,
            kafka_certificate_file: Path | None,
            kafka_key_file: Path | None,
            kafka_key_password: str | None,
            kafka_mechanism: str,
            kafka_username: str | None,
            kafka_password: str | None,
            **others: Any,
        ) -> None:
            kafka = None
            if bootstrap is not None:
                security = KafkaSecurity(
                    Protocol(kafka_protocol),
                    _text(kafka_ca_file),
                    _text(kafka_certificate_file),
                    _text(kafka_key_file),
                    kafka_key_password,
                    Mechanism(kafka_mechanism),
                    kafka_username,
                    kafka_password,
                )
                _check(security)
                topic = others.get("topic") or FRAMES_TOPIC
                kafka = KafkaSettings(bootstrap, topic, kafka_timeout, security)
            command(kafka=kafka, **others)

        for option in reversed([_bootstrap_option(required), *_OPTIONS]):
            collected = option(collected)
        return collected

    return add


def _checked_topic(
    context: click.Context, parameter: click.Parameter, value: str
) -> str:
    try:
        check_topic(value)
    except InvalidTopic as error:
        raise click.BadParameter(str(error), param=parameter) from error
    return value


topic_option = setting(
    "--topic", default=FRAMES_TOPIC, callback=_checked_topic, help="Topic of frames."
)


def _checked_bootstrap(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    if value is not None and not all(
        _HOST_AND_PORT.fullmatch(part) for part in value.split(",")
    ):
        message = f"{value!r} is not HOST:PORT, or several separated by commas"
        raise click.BadParameter(message, param=parameter)
    return value


def _bootstrap_option(required: bool) -> Callable[[_Command], _Command]:
    return setting(
        "--bootstrap",
        required=required,
        callback=_checked_bootstrap,
        metavar="HOST:PORT",
        help="Kafka brokers, separated by commas.",
    )


_FILE = click.Path(path_type=Path)

_OPTIONS = (
    setting(
        "--kafka-timeout",
        type=click.FloatRange(1),
        default=120.0,
        help="Seconds to wait for a broker that does not answer.",
    ),
    setting(
        "--kafka-protocol",
        type=click.Choice([one.value for one in Protocol]),
        default=Protocol.PLAINTEXT.value,
        help="How brokers are spoken to.",
    ),
    setting(
        "--kafka-ca-file",
        type=_FILE,
        help="PEM file of trusted authorities; the system's if left out.",
    ),
    setting("--kafka-certificate-file", type=_FILE, help="PEM file of our own."),
    setting("--kafka-key-file", type=_FILE, help="PEM file of its key."),
    secret_setting("--kafka-key-password", help="Of the key."),
    setting(
        "--kafka-mechanism",
        type=click.Choice([one.value for one in Mechanism]),
        default=Mechanism.SCRAM_SHA_512.value,
        help="Of SASL.",
    ),
    setting("--kafka-username", help="User for SASL."),
    secret_setting("--kafka-password", help="For SASL."),
)


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path.absolute())


def _check(security: KafkaSecurity) -> None:
    """Refuse settings that cannot be meant.

    Raises:
        click.UsageError: They contradict one another; says what to do.
    """
    protocol = security.protocol.value
    if security.has_user and not (security.username and security.password):
        message = (
            f"--kafka-protocol {protocol} needs --kafka-username, and a password as "
            "SDS_MONITOR_KAFKA_PASSWORD or as kafka-password in the --config file"
        )
        raise click.UsageError(message)
    if security.username and not security.has_user:
        message = (
            f"--kafka-protocol {protocol} names no user, but --kafka-username is "
            "given: use SASL_SSL or SASL_PLAINTEXT"
        )
        raise click.UsageError(message)
    for flag, given in (
        ("--kafka-ca-file", security.ca_file),
        ("--kafka-certificate-file", security.certificate_file),
        ("--kafka-key-file", security.key_file),
    ):
        if given and not security.is_encrypted:
            message = (
                f"--kafka-protocol {protocol} is not encrypted, but {flag} is given: "
                "use SSL or SASL_SSL"
            )
            raise click.UsageError(message)
    if bool(security.certificate_file) != bool(security.key_file):
        message = "--kafka-certificate-file and --kafka-key-file belong together"
        raise click.UsageError(message)
    if security.is_encrypted:
        try:
            ssl_context(security)
        except SecurityUnusable as error:
            raise click.UsageError(str(error)) from error
