"""What commands tell on standard error: one record a line, as text or as JSON."""

from __future__ import annotations

import enum
import json
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from streaming.cli.settings import setting

logger = logging.getLogger("sds-monitor")

FIGURES = "figures"
"""Attribute of a record: what stands beside its message in JSON, by name."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


class LogFormat(enum.StrEnum):
    """How a record is written."""

    TEXT = "text"
    JSON = "json"


def log_option(*, exposed: bool = False) -> Callable[[_Command], _Command]:
    """Add ``--log-format`` to a command.

    Args:
        exposed: Whether the command gets it too, as ``log_format``.
    """
    return setting(
        "--log-format",
        type=click.Choice([one.value for one in LogFormat]),
        default=LogFormat.TEXT.value,
        # Before the other settings, so that what is wrong with them is told by it.
        is_eager=True,
        expose_value=exposed,
        callback=_choose,
        help="Of what is told on standard error: lines for people, or JSON objects.",
    )


def begin_log() -> None:
    """Tell everything from now on, as text until a command chooses otherwise."""
    handler = _StandardError()
    handler.setFormatter(_FORMATTERS[LogFormat.TEXT])
    logging.getLogger().addHandler(handler)
    logger.setLevel(logging.INFO)


def _choose(
    context: click.Context, parameter: click.Parameter, value: str
) -> LogFormat:
    chosen = LogFormat(value)
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _StandardError):
            handler.setFormatter(_FORMATTERS[chosen])
    return chosen


class _StandardError(logging.Handler):
    """Writes to what standard error is at the time: a live table puts itself there."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except OSError:
            self.handleError(record)


class _TextFormatter(logging.Formatter):
    """A time and the message; what ends the program stands behind its name."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:
        if record.levelno >= logging.CRITICAL:
            return f"{record.name}: {record.message}"
        return super().formatMessage(record)


class _JsonFormatter(logging.Formatter):
    """One object, in ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        told = {
            "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told | getattr(record, FIGURES, {}))


_FORMATTERS: dict[LogFormat, logging.Formatter] = {
    LogFormat.TEXT: _TextFormatter(),
    LogFormat.JSON: _JsonFormatter(),
}
