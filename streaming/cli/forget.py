"""``sds-monitor forget``."""

from __future__ import annotations

from pathlib import Path

import click

from streaming.cli.settings import config_option, setting


@click.command(
    "forget",
    epilog="Example: sds-monitor forget old-channel --checkpoint ./state",
)
@config_option
@setting(
    "--checkpoint",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of the state of the monitor.",
)
@click.argument("channels", metavar="CHANNEL...", nargs=-1, required=True)
def command(checkpoint: Path, channels: tuple[str, ...]) -> None:
    """Forget channels before they have been silent for --forget-days.

    CHANNEL is the id of a channel. A running monitor forgets it within seconds, another
    one when it starts next. The channel leaves page and metrics; the history keeps its
    minutes and incidents, and sums over all channels keep what it counted. If it sends
    again, it is a new channel.
    """
    from sds_core.observer.protocols import ROOT_KIND
    from streaming.cli.actions.forget import forget

    forget(checkpoint, channels, ROOT_KIND)
