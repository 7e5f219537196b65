"""Errors of the embedded broker.

    BrokerError (a RuntimeError)
    ├── BrokerJarsUnavailable   Kafka's jars cannot be fetched (jars.py)
    ├── PortUnavailable         the requested port is taken or forbidden
    ├── DataDirInUse            another broker runs on the data directory
    └── BrokerStartFailed       Kafka ended or did not answer; with the end of its log

If Java is missing, `start` raises `connectors.java.JavaMissing`, which is not a
`BrokerError`.
"""

from __future__ import annotations

from pathlib import Path

from connectors.broker.configuration import HOST


class BrokerError(RuntimeError):
    """Base class of errors that keep the embedded broker from running."""


class PortUnavailable(BrokerError):
    """The broker cannot listen on the requested port."""

    def __init__(self, port: int, reason: str) -> None:
        super().__init__(
            f"port {port} on {HOST} cannot be used ({reason}): stop the program that "
            "listens there, or choose another port"
        )


class DataDirInUse(BrokerError):
    """Another running broker of this user uses the data directory."""

    def __init__(self, data_dir: Path, pid: int) -> None:
        super().__init__(
            f"a broker (process {pid}) already uses {data_dir}: use this broker, stop "
            "it, or give another directory"
        )


class BrokerStartFailed(BrokerError):
    """Kafka did not start.

    If Kafka has written a log, the error message ends with the last lines of the log.
    """

    def __init__(self, reason: str, log_tail: str) -> None:
        end = (
            f"; its log ends:\n{log_tail}" if log_tail else "; the broker wrote no log"
        )
        super().__init__(f"{reason}{end}")
