"""``--log-format``: the flag, and what is asked for before flags are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from streaming.cli.log import LogFormat, choose_format
from streaming.cli.settings import setting

_FLAG = "--log-format"

_Command = TypeVar("_Command", bound=Callable[..., Any])


def log_option(*, exposed: bool = False) -> Callable[[_Command], _Command]:
    """Add ``--log-format`` to a command.

    Args:
        exposed: Whether the command gets it too, as ``log_format``.
    """
    return setting(
        _FLAG,
        type=click.Choice([one.value for one in LogFormat]),
        default=LogFormat.TEXT.value,
        # Before the other settings, so that what is wrong with them is told by it.
        is_eager=True,
        expose_value=exposed,
        callback=_choose,
        help="Of what is told on standard error: lines for people, or JSON objects.",
    )


def asked_format(arguments: Sequence[str], environment: Mapping[str, str]) -> LogFormat:
    """What flag or environment ask for, text if that is no format.

    For what is told before a command has read its settings, or because it cannot.

    Args:
        arguments: Of the program.
        environment: Of the program.
    """
    asked = environment.get("SDS_MONITOR_LOG_FORMAT", "")
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if argument == "--":
            break
        if argument == _FLAG:
            asked = following
        elif argument.startswith(f"{_FLAG}="):
            asked = argument.removeprefix(f"{_FLAG}=")
    return LogFormat(asked) if asked in set(LogFormat) else LogFormat.TEXT


def _choose(
    context: click.Context, parameter: click.Parameter, value: str
) -> LogFormat:
    chosen = LogFormat(value)
    choose_format(chosen)
    return chosen
