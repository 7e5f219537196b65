"""The channel table of a command: read at the start, and again on SIGHUP."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click

from connectors.files.channel_table import (
    BadChannelTable,
    read_channel_table,
    read_entries,
)
from sds_core.observer.channel_table import ChannelTable
from streaming.cli.log import logger
from streaming.cli.settings import setting
from streaming.cli.signals import HeldHangup

channels_option = setting(
    "--channels",
    type=click.Path(dir_okay=False, path_type=Path),
    help="TOML file with names, objectives, labels and silence of channels.",
)


def channel_table(path: Path | None) -> ChannelTable:
    """The table of a file; without a path an empty one.

    Raises:
        click.UsageError: The file is none.
    """
    if path is None:
        return ChannelTable()
    try:
        return read_channel_table(path)
    except BadChannelTable as error:
        message = f"--channels: {error}"
        raise click.UsageError(message) from error


class ChannelTableFile:
    """Reads its file again when it was asked to.

    Args:
        path: Of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._asked = threading.Event()

    def ask(self) -> None:
        """Let the next `news` read the file."""
        self._asked.set()

    def news(self) -> ChannelTable | None:
        """The new table; None if nobody asked, or if the file now is none.

        Either is said in the log.
        """
        if not self._asked.is_set():
            return None
        self._asked.clear()
        try:
            entries = read_entries(self._path)
            if not entries:
                # Half of a file that is being written must not end every silence.
                raise BadChannelTable(self._path, "has no entry: write one")
        except BadChannelTable as error:
            logger.error("the channel table stays as it was: %s", error)
            return None
        logger.info("channel table read again: %s", _counted(len(entries)))
        return ChannelTable(entries)


def _counted(entries: int) -> str:
    return "1 entry" if entries == 1 else f"{entries:,} entries"


@contextmanager
def read_on_hangup(path: Path | None) -> Iterator[ChannelTableFile | None]:
    """A file that SIGHUP asks to be read while the block runs; None without a path.

    Without one SIGHUP ends the process as ever. One that was held until now counts.

    Raises:
        streaming.cli.signals.EndedBySignal: One was held, and there is no path.
    """
    if path is None:
        held = signal.getsignal(signal.SIGHUP)
        if isinstance(held, HeldHangup):
            held.release()
        yield None
        return
    file = ChannelTableFile(path)

    def ask(number: int, frame: FrameType | None) -> None:
        file.ask()

    before = signal.signal(signal.SIGHUP, ask)
    if isinstance(before, HeldHangup) and before.came:
        file.ask()
    try:
        yield file
    finally:
        signal.signal(signal.SIGHUP, before)
