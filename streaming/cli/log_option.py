"""Option ``--log-format``, and the format that is requested before options are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from streaming.cli.log import LogFormat, set_log_format
from streaming.cli.settings import setting

_FLAG = "--log-format"

_Command = TypeVar("_Command", bound=Callable[..., Any])


def log_option(*, exposed: bool = False) -> Callable[[_Command], _Command]:
    """Add ``--log-format`` to a command.

    Args:
        exposed: Whether the command gets the format too, as ``log_format``.
    """
    return setting(
        _FLAG,
        type=click.Choice([one.value for one in LogFormat]),
        default=LogFormat.TEXT.value,
        # Read before the other options, so that errors in them have this format.
        is_eager=True,
        expose_value=exposed,
        callback=_set_format,
        help="Format of the log on standard error: lines of text, or JSON objects.",
    )


def requested_format(
    arguments: Sequence[str], environment: Mapping[str, str]
) -> LogFormat:
    """Return the format that option or environment selects; text without a valid one.

    Used for log lines from before a command has read its options, and if it cannot.

    Args:
        arguments: Arguments of the program.
        environment: Environment of the program.
    """
    requested = environment.get("SDS_MONITOR_LOG_FORMAT", "")
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if argument == "--":
            break
        if argument == _FLAG:
            requested = following
        elif argument.startswith(f"{_FLAG}="):
            requested = argument.removeprefix(f"{_FLAG}=")
    return LogFormat(requested) if requested in set(LogFormat) else LogFormat.TEXT


def _set_format(
    context: click.Context, parameter: click.Parameter, value: str
) -> LogFormat:
    log_format = LogFormat(value)
    set_log_format(log_format)
    return log_format
