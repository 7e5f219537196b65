"""Makes the standard streams usable, whatever they lead to."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def set_up_streams() -> None:
    """Let the program use its standard streams without errors.

    A stream that the shell has closed (``>&-``) leads to the null device. If the reader
    closes standard output later, the program continues. Characters that the encoding of
    standard output lacks are written as escapes, as on standard error.
    """
    # The order matters: a new file gets the lowest free descriptor, so each of these
    # files gets the descriptor of its stream. No other file, such as a database, can
    # then get the descriptor to which this program or a JVM writes text.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(descriptor, True)
            stream = os.fdopen(
                descriptor, mode, errors="backslashreplace", closefd=False
            )
            setattr(sys, name, stream)
    stream = sys.stdout
    stream.flush()
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_DiscardsIfClosed(stream.fileno())),
        stream.encoding,
        "backslashreplace" if stream.errors == "strict" else stream.errors,
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
