"""``sds-monitor broker``."""

from __future__ import annotations

from pathlib import Path

import click

from connectors.broker.broker import EmbeddedBroker, PortUnavailable
from streaming.cli.log_option import log_option
from streaming.cli.settings import config_option, setting


@click.command(
    "broker",
    epilog="Example: sds-monitor broker --port 9092 --dir ./kafka",
)
@config_option
@setting("--port", type=click.IntRange(1, 65535), default=9092, help="On loopback.")
@setting(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where records are kept; a temporary directory without it.",
)
@setting(
    "--fetch-only", is_flag=True, help="Only fetch and verify the broker, then end."
)
@log_option()
def command(port: int, directory: Path | None, fetch_only: bool) -> None:
    """Run a single-node Kafka broker on this machine, for trying things out.

    The broker is fetched once, verified and cached. It ends with this command.
    """
    if fetch_only:
        _fetch()
        return
    try:
        with EmbeddedBroker(directory, port=port) as broker:
            click.echo(f"Kafka listens on {broker.bootstrap} (end with Ctrl-C)")
            while broker.wait(1.0) is None:
                pass
            message = f"the broker ended by itself; its log ends:\n{broker.log_tail()}"
            raise click.ClickException(message)
    except PortUnavailable as error:
        raise click.UsageError(str(error)) from error


def _fetch() -> None:
    from connectors.broker.jars import default_cache_dir, ensure_broker_jars
    from connectors.java import find_java

    jars = ensure_broker_jars(default_cache_dir(), find_java())
    click.echo(f"broker jars verified in {jars}")
