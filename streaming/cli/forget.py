"""``sds-monitor forget``."""

from __future__ import annotations

from typing import Any

import click

from streaming.cli import commands
from streaming.cli.settings import Panel, setting
from streaming.cli.values import DIRECTORY, TEXT


@commands.command("forget", "sds-monitor forget old-channel --checkpoint ./state")
@setting(
    "--checkpoint",
    required=True,
    type=DIRECTORY,
    panel=Panel.STORAGE,
    help="State directory of the monitor.",
)
@setting(
    "--dry-run",
    is_flag=True,
    help="Print which channels would be forgotten, but forget none.",
)
@setting("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.argument("channels", metavar="CHANNEL...", nargs=-1, required=True, type=TEXT)
def command(**options: Any) -> None:
    """Forget channels now, without waiting for --forget-days of silence.

    CHANNEL is the id of a channel. A running monitor forgets the channel within
    seconds. A stopped monitor forgets the channel at its next startup.

    The channel disappears from the page and the metrics. The history keeps the
    channel's incidents and per-minute aggregates. Sums over all channels still include
    the channel's counts. If the channel has traffic again, the monitor treats it as a
    new channel.
    """
    from streaming.cli.actions.forget import forget

    forget(**options)
