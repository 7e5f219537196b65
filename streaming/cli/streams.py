"""Standard output that somebody may stop reading."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def outlive_reader() -> None:
    """Go on without standard output once nobody reads it any more."""
    stream = sys.stdout
    # As after ``>&-``: there is nothing to write to.
    if stream is None:
        return
    stream.flush()
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Outliving(stream.fileno())),
        stream.encoding,
        stream.errors,
        line_buffering=bool(stream.line_buffering),
    )


class _Outliving(io.FileIO):
    """Written to nowhere after its reader has gone."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        # The second is of a terminal that was closed, which then seems to be none. Of
        # a file it would be a fault of the disk.
        gone = (errno.EPIPE, errno.EIO) if self.isatty() else (errno.EPIPE,)
        self._reader_gone = gone

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in self._reader_gone:
                raise
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), self.fileno())
        return super().write(data)
