"""Lets the program continue after the reader has closed standard output."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def survive_closed_output() -> None:
    """Let the program continue if the reader closes standard output."""
    stream = sys.stdout
    # If the shell has closed standard output (``>&-``), the stream is None.
    if stream is None:
        return
    stream.flush()
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_DiscardsIfClosed(stream.fileno())),
        stream.encoding,
        stream.errors,
        line_buffering=bool(stream.line_buffering),
    )


class _DiscardsIfClosed(io.FileIO):
    """Discards written text after the reader has closed the stream."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        # A write to a closed terminal raises EIO. For a file, EIO is an error of the
        # disk, which must be reported. `isatty` is called now, because it is False
        # after a terminal is closed.
        gone = (errno.EPIPE, errno.EIO) if self.isatty() else (errno.EPIPE,)
        self._reader_gone = gone

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            # When Python exits, it tries again to write the text that this call did not
            # write. That write must not fail, so the descriptor now leads to the null
            # device.
            with open(os.devnull, "wb") as null_device:
                os.dup2(null_device.fileno(), self.fileno())
            if error.errno not in self._reader_gone:
                raise
        return super().write(data)
