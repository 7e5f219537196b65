"""What commands tell on standard error: one record a line, as text or as JSON."""

from __future__ import annotations

import enum
import json
import logging
import sys

from sds_core.text import iso_time

logger = logging.getLogger("sds-monitor")

FIGURES = "figures"
"""Attribute of a record: what stands beside its message in JSON, by name."""


class LogFormat(enum.StrEnum):
    """How a record is written."""

    TEXT = "text"
    JSON = "json"


def begin_log(log_format: LogFormat = LogFormat.TEXT) -> None:
    """Tell everything from now on, so until a command chooses otherwise."""
    logging.getLogger().addHandler(_StandardError())
    choose_format(log_format)
    logger.setLevel(logging.INFO)


def choose_format(log_format: LogFormat) -> None:
    """Tell everything so from now on; does nothing before `begin_log`."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _StandardError):
            handler.setFormatter(_FORMATTERS[log_format])


class _StandardError(logging.Handler):
    """Writes to what standard error is at the time: a live table puts itself there."""

    def emit(self, record: logging.LogRecord) -> None:
        if sys.stderr is None:
            return
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
        told = {
            "time": iso_time(int(record.created * 1000)),
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
