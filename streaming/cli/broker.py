"""``sds-monitor broker`` and ``sds-monitor prepare``."""

from __future__ import annotations

from pathlib import Path

import click

from streaming.cli.settings import config_option, log_option, setting


@click.command(
    "broker",
    epilog="Example: sds-monitor broker --port 9092 --dir ./kafka",
)
@config_option
@setting(
    "--port",
    type=click.IntRange(0, 65535),
    default=9092,
    help="Port on loopback; 0 for any free one.",
)
@setting(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of the records; by default a temporary one.",
)
@setting(
    "--fetch-only", is_flag=True, help="Only fetch and verify the broker, then end."
)
@log_option()
def command(port: int, directory: Path | None, fetch_only: bool) -> None:
    """Run a single-node Kafka broker on this machine, for trying things out.

    The broker is fetched once, verified and cached. It ends with this command.
    """
    from streaming.cli.actions import broker

    if fetch_only:
        broker.fetch()
    else:
        broker.run(port, directory)


@click.command("prepare", epilog="Example: sds-monitor prepare")
@config_option
@log_option()
def prepare_command() -> None:
    """Prepare this machine, so that other commands start in half the time.

    Fetches the embedded broker, and archives the Java classes that the broker and
    Spark load when they start. Does nothing if that was done before. Needs 250 MB.
    """
    from streaming.cli.actions.broker import prepare

    prepare()
