"""``sds-monitor prepare``."""

from __future__ import annotations

import click

from streaming.cli.log_option import log_option
from streaming.cli.settings import config_option


@click.command("prepare", epilog="Example: sds-monitor prepare")
@config_option
@log_option()
def command() -> None:
    """Prepare this machine, so that other commands start in half the time.

    Fetches the embedded broker, and archives the Java classes that the broker and
    Spark load when they start. Does nothing if that was done before. Needs 250 MB.
    """
    from streaming.cli.actions.prepare import prepare

    prepare()
