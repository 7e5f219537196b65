"""Exit codes of commands, and errors that set the exit code."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import click


class ExitCode(enum.IntEnum):
    """How a command ended; the command reference prints `meaning`."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Self:
        """Return a member that has a code and a `meaning`."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    FINE = 0, "The command did what it was asked, or a signal ended it."
    FINDING = 1, "The command worked, and found a problem."
    WRONG_USE = 2, "The same command fails again until a person changes something."
    UNREACHABLE = 3, "Something that the command needs does not answer."
    FAILED = 4, "The work failed, or ended too early; the message names the remedy."
    # EX_SOFTWARE of sysexits.h.
    UNEXPECTED = 70, "A bug: the log has a traceback. Please report it."


@contextmanager
def wrong_use(*errors: type[Exception], where: str = "") -> Iterator[None]:
    """Turn `errors` into `click.UsageError`, whose text begins with `where`."""
    try:
        yield
    except errors as error:
        message = f"{where}{error}"
        raise click.UsageError(message) from error


@contextmanager
def failed_work(*errors: type[Exception]) -> Iterator[None]:
    """Turn `errors` into `Failed`."""
    try:
        yield
    except errors as error:
        raise Failed(str(error)) from error


class Unreachable(click.ClickException):
    """Something that a command needs does not answer."""

    exit_code = ExitCode.UNREACHABLE


class Failed(click.ClickException):
    """The work failed for a known reason, or ended early."""

    exit_code = ExitCode.FAILED
