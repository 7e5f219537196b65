"""A terminal for tests, and the log of the command on it."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

from streaming.cli.log import start_log


class Terminal(io.StringIO):
    """A text stream that claims to be a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


@contextmanager
def log_on(terminal: Terminal) -> Iterator[None]:
    """Return the log of a command whose standard error is this terminal."""
    root = logging.getLogger()
    before = root.handlers[:]
    start_log()
    try:
        with redirect_stderr(terminal):
            yield
    finally:
        root.handlers[:] = before
