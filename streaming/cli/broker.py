"""``sds-monitor broker`` and ``sds-monitor prepare``."""

from __future__ import annotations

from pathlib import Path

import click

from streaming.cli import commands
from streaming.cli.settings import Panel, log_option, setting
from streaming.cli.values import DIRECTORY


@commands.command("broker", "sds-monitor broker --port 9092 --dir ./kafka")
@setting(
    "--port",
    type=click.IntRange(0, 65535),
    default=9092,
    help="Port on the loopback address; 0 selects a free port.",
)
@setting(
    "--dir",
    "directory",
    type=DIRECTORY,
    panel=Panel.STORAGE,
    help="Directory for the records; by default, a temporary directory.",
)
@setting("--fetch-only", is_flag=True, help="Download and verify the broker, then end.")
@log_option()
def command(port: int, directory: Path | None, fetch_only: bool) -> None:
    """Run a Kafka broker on this machine, for tests and trials.

    The first run downloads the broker, verifies it, and keeps it in a cache. The broker
    stops when the command ends.
    """
    from streaming.cli.actions import broker

    if fetch_only:
        broker.fetch()
    else:
        broker.run(port, directory)


@commands.command("prepare", "sds-monitor prepare")
@log_option()
def prepare_command() -> None:
    """Prepare this machine, so that other commands start in half the time.

    The command downloads the embedded broker, and makes an archive of the Java classes
    that the broker and Spark load at startup. The files need 250 MB of disk space.
    Existing files remain.
    """
    from streaming.cli.actions.broker import prepare

    prepare()
