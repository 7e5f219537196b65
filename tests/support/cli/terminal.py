"""A terminal for tests, and the log of the command on it."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

from streaming.cli.log import start_log


class Terminal(io.StringIO):
    """Something that is taken for a terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True


@contextmanager
def log_on(terminal: Terminal) -> Iterator[None]:
    """The log of the command, on a terminal that is standard error."""
    root = logging.getLogger()
    before = root.handlers[:]
    start_log()
    try:
        with redirect_stderr(terminal):
            yield
    finally:
        root.handlers[:] = before
