"""Writes requests to forget channels; the job carries them out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from sds_core.observer.blob import UnknownBlobVersion
from sds_core.observer.kinds import AnyKind
from sds_core.observer.protocols import ROOT_KIND
from sds_core.text import counted, did_you_mean, printable, shown
from streaming.checkpoint import own_files
from streaming.chunk import FORGET
from streaming.cli.exit_codes import wrong_use
from streaming.damage import LEDGER, DamagedCheckpoint
from streaming.directories import DirectoryUnwritable
from streaming.ledger.ledger import Ledger
from streaming.ledger.view_register import ViewRegister


@wrong_use(DamagedCheckpoint, DirectoryUnwritable, UnknownBlobVersion)
def forget(
    checkpoint: Path,
    channels: Sequence[str],
    dry_run: bool,
    yes: bool,
    kind: AnyKind = ROOT_KIND,
) -> None:
    """Request that the job, which may be running, forgets the channels with these ids.

    Raises:
        click.Abort: The user does not confirm.
        click.UsageError: A channel is unknown, or the checkpoint is damaged or has no
            list of channels.
    """
    if not (dry_run or yes or sys.stdin.isatty()):
        message = (
            "without a terminal, the command cannot ask for confirmation: give --yes "
            "or --dry-run"
        )
        raise click.UsageError(message)
    path = own_files(checkpoint) / LEDGER
    if not path.exists():
        message = (
            f"{path} does not exist: start the monitor once with this checkpoint, so "
            "that the monitor writes the file"
        )
        raise click.UsageError(message)
    register = ViewRegister(Ledger(path, expected=True))
    keys = register.keys()
    known = {key.partition(":")[2] for key in keys if key.startswith(kind.key(""))}
    for channel in channels:
        if channel not in known:
            similar = did_you_mean(channel, known)
            message = f"no such channel: {shown(channel)}{similar}"
            raise click.UsageError(message)
    if dry_run:
        for channel in channels:
            click.echo(f"channel {printable(channel)} would be forgotten")
        return
    if not yes:
        names = ", ".join(map(printable, channels))
        click.confirm(
            f"Forget {counted(len(channels), 'channel')}: {names}?", abort=True
        )
    register.request((kind.key(channel), FORGET) for channel in channels)
    for channel in channels:
        click.echo(f"channel {printable(channel)} is forgotten with the next batch")
