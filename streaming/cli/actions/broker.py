"""Runs the embedded Kafka broker."""

from __future__ import annotations

from pathlib import Path

import click

from connectors.broker.broker import EmbeddedBroker, PortUnavailable
from connectors.broker.jars import default_cache_dir, ensure_broker_jars
from connectors.java import find_java


def fetch() -> None:
    """Fetch and verify the broker, and print where it is.

    Raises:
        connectors.java.JavaMissing: Java is missing or too old.
        connectors.broker.jars.BrokerError: The broker cannot be fetched or verified.
    """
    jars = ensure_broker_jars(default_cache_dir(), find_java())
    click.echo(f"broker jars verified in {jars}")


def run(port: int, directory: Path | None) -> None:
    """Run the broker until a signal ends it.

    Args:
        port: Port on loopback; 0 for any free one.
        directory: Directory of the records; None for a temporary one.

    Raises:
        click.ClickException: The port is in use, or the broker ended by itself.
    """
    try:
        with EmbeddedBroker(directory, port=port or None) as broker:
            click.echo(f"Kafka listens on {broker.bootstrap} (end with Ctrl-C)")
            while broker.wait(1.0) is None:
                pass
            message = f"the broker ended by itself; its log ends:\n{broker.log_tail()}"
            raise click.ClickException(message)
    except PortUnavailable as error:
        message = f"{error}, such as --port 0 for any free one"
        raise click.UsageError(message) from error
