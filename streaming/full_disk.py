"""A full disk, or a used-up quota: how it is recognised, and what to do."""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
from pathlib import Path

MORE_SPACE = "free space on this disk, and start again: what was finished is not lost"
"""What to do if the system says that a disk is full."""

_FULL = (errno.ENOSPC, errno.EDQUOT)

_REASONS = tuple(os.strerror(number) for number in _FULL)
"""In errors of Python and of Java."""

_LEAST_FREE_BYTES = 256 * 1024
"""With less space, SQLite cannot make the file that its readers share."""

_UNCLEAR = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
"""Errors of SQLite that may mean a full disk: it has a word for `ENOSPC`, as it writes
to a file, and no other one."""


def line_of(error: OSError) -> str | None:
    """Return what to do if a disk is full; None if the error is another one."""
    if error.errno not in _FULL:
        return None
    # Nothing but standard output is written by a descriptor alone.
    return f"{error.filename or 'output'}: {error.strerror}; {MORE_SPACE}"


def with_space(cause: str) -> str:
    """Return an error in one line, with the remedy if a disk is full."""
    is_full = any(reason in cause for reason in _REASONS)
    return f"{cause}; {MORE_SPACE}" if is_full else cause


def os_error_of(error: sqlite3.Error, path: Path) -> OSError | None:
    """Return an error as of every other file that cannot grow; None for another one.

    Args:
        error: An error of SQLite.
        path: Its file.
    """
    # The lowest byte of an extended error code is the code.
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    number = errno.ENOSPC if code == sqlite3.SQLITE_FULL else None
    if code in _UNCLEAR:
        number = _refusal_of(path.parent)
    return None if number is None else OSError(number, os.strerror(number), str(path))


def _refusal_of(directory: Path) -> int | None:
    """Return the error number with which a full disk refuses a file; None for room.

    Only a file shows what a quota, or the reserve of a file system, leaves.
    """
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(bytes(_LEAST_FREE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.errno if error.errno in _FULL else None
    return None
