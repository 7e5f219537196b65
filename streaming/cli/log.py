"""Log of the commands, on standard error: one record per line, as text or as JSON."""

from __future__ import annotations

import enum
import json
import logging
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise

from sds_core.text import iso_time

logger = logging.getLogger("sds-monitor")

FIGURES = "figures"
"""Name of the attribute of a log record that has figures by name. Only a log in JSON
shows the figures."""

LOG_FLAG = "--log-format"


class LogFormat(enum.StrEnum):
    """How a log record is written."""

    TEXT = "text"
    JSON = "json"


def start_log(log_format: LogFormat = LogFormat.TEXT) -> None:
    """Log to standard error, in this format until a command sets another format."""
    logging.getLogger().addHandler(_StandardError())
    set_log_format(log_format)
    logger.setLevel(logging.INFO)


def set_log_format(log_format: LogFormat) -> None:
    """Write later log records in this format; has no effect before `start_log`."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _StandardError):
            handler.setFormatter(_FORMATTERS[log_format])


class _StandardError(logging.Handler):
    """Writes log records to standard error.

    Each record looks up `sys.stderr` again, because a live table replaces it.
    """

    def emit(self, record: logging.LogRecord) -> None:
        if sys.stderr is None:
            return
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except OSError:
            self.handleError(record)


class _TextFormatter(logging.Formatter):
    """Writes time and message; of a critical error, the logger's name and message."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:
        if record.levelno >= logging.CRITICAL:
            return f"{record.name}: {record.message}"
        return super().formatMessage(record)


class _JsonFormatter(logging.Formatter):
    """Writes a record as one JSON object in ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        values = {
            "time": iso_time(int(record.created * 1000)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            values["exception"] = self.formatException(record.exc_info)
        return json.dumps(values | getattr(record, FIGURES, {}))


_FORMATTERS: dict[LogFormat, logging.Formatter] = {
    LogFormat.TEXT: _TextFormatter(),
    LogFormat.JSON: _JsonFormatter(),
}


def requested_format(
    arguments: Sequence[str], environment: Mapping[str, str]
) -> LogFormat:
    """Return the log format that ``--log-format`` or the environment requests, or text.

    The option overrides the environment. The format applies until a command has read
    valid options.
    """
    requested = environment.get("SDS_MONITOR_LOG_FORMAT", "")
    for argument, following in pairwise([*arguments, ""]):
        if argument == "--":
            break
        if argument == LOG_FLAG:
            requested = following
        elif argument.startswith(f"{LOG_FLAG}="):
            requested = argument.removeprefix(f"{LOG_FLAG}=")
    return LogFormat(requested) if requested in set(LogFormat) else LogFormat.TEXT
