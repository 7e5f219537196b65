"""Option ``--channels``: a table that is read at startup, and again on SIGHUP."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from connectors.files.channel_table import BadChannelTable, read_entries
from sds_core.observer.channel_table import ChannelTable
from streaming.cli.exit_codes import wrong_use
from streaming.cli.log import logger
from streaming.cli.settings import Panel, option_group, setting
from streaming.cli.signals import DeferredHangup
from streaming.cli.values import FILE

channels_option = setting(
    "--channels",
    type=FILE,
    panel=Panel.CHANNELS,
    help="TOML file with names, SLOs, labels and mute times of channels.",
)


def channel_table(channels: Path | None) -> ChannelTable:
    """Read the channel table from a file; if no file is given, return an empty table.

    Raises:
        click.UsageError: The file cannot be read or is not a channel table.
    """
    if channels is None:
        return ChannelTable()
    with wrong_use(BadChannelTable, where="--channels: "):
        return ChannelTable(read_entries(channels))


table_option = option_group("table", (channels_option,), channel_table)
"""Adds ``--channels``; the command gets ``table``."""


class ChannelTableFile:
    """A file with a channel table. The file is read again on request."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._requested = threading.Event()

    def request_reload(self) -> None:
        """Make the next `reload_if_requested` read the file.

        A signal handler may call this method.
        """
        self._requested.set()

    def reload_if_requested(self) -> ChannelTable | None:
        """If a reload was requested, return the file's table; None if it is invalid."""
        if not self._requested.is_set():
            return None
        self._requested.clear()
        try:
            entries = read_entries(self._path)
            if not entries:
                # An empty file may be half written. An empty table would end the mute
                # times of all channels.
                raise BadChannelTable(
                    self._path, "the file has no entries: add an entry for a channel"
                )
        except BadChannelTable as error:
            logger.error("the channel table remains unchanged: %s", error)
            return None
        logger.info("the channel table was read again: %s", _counted(len(entries)))
        return ChannelTable(entries)


def _counted(entries: int) -> str:
    return "1 entry" if entries == 1 else f"{entries:,} entries"


@contextmanager
def reload_on_hangup(path: Path | None) -> Iterator[ChannelTableFile | None]:
    """Yield the file, and request its reload on each SIGHUP in the block.

    If no path is given, the block gets None, and SIGHUP ends the program. A SIGHUP that
    `DeferredHangup` has recorded takes effect at the start of the block.

    Raises:
        streaming.cli.signals.EndedBySignal: `DeferredHangup` has recorded a SIGHUP,
            and no path is given.
    """
    if path is None:
        handler = signal.getsignal(signal.SIGHUP)
        if isinstance(handler, DeferredHangup):
            handler.release()
        yield None
        return
    file = ChannelTableFile(path)

    def request_reload(number: int, frame: FrameType | None) -> None:
        file.request_reload()

    before = signal.signal(signal.SIGHUP, request_reload)
    if isinstance(before, DeferredHangup) and before.received:
        file.request_reload()
    try:
        yield file
    finally:
        signal.signal(signal.SIGHUP, before)
