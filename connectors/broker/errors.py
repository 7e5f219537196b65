"""Errors of the embedded broker.

    BrokerError (a RuntimeError)
    ├── BrokerJarsUnavailable   Kafka's jars cannot be fetched (jars.py)
    ├── PortUnavailable         the requested port is taken or forbidden
    ├── DataDirInUse            another broker runs on the data directory
    └── BrokerStartFailed       Kafka ended or did not answer; with the end of its log

A missing Java is `connectors.java.JavaMissing`.
"""

from __future__ import annotations

from pathlib import Path

from connectors.broker.configuration import HOST


class BrokerError(RuntimeError):
    """Base class of errors that keep the embedded broker from running."""


class PortUnavailable(BrokerError):
    """The broker cannot listen on the requested port.

    Attributes:
        port: The port; 0 if any free port was requested.
        reason: The operating system's reason.
    """

    def __init__(self, port: int, reason: str) -> None:
        super().__init__(port, reason)
        self.port = port
        self.reason = reason

    def __str__(self) -> str:
        """Return the problem and its remedy."""
        return (
            f"port {self.port} on {HOST} cannot be used ({self.reason}): "
            "stop what listens there, or choose another port"
        )


class DataDirInUse(BrokerError):
    """Another broker, whose parent is alive, uses the data directory.

    Attributes:
        data_dir: The directory.
        pid: Process id of that broker.
    """

    def __init__(self, data_dir: Path, pid: int) -> None:
        super().__init__(data_dir, pid)
        self.data_dir = data_dir
        self.pid = pid

    def __str__(self) -> str:
        """Return the problem and its remedy."""
        return (
            f"a broker (process {self.pid}) already runs on {self.data_dir}: "
            "use that one, stop it, or give another directory"
        )


class BrokerStartFailed(BrokerError):
    """Kafka did not start.

    Attributes:
        reason: What happened, as the end of a sentence that begins with "the broker".
        log_tail: Last lines of Kafka's log; empty if there is none.
    """

    def __init__(self, reason: str, log_tail: str) -> None:
        super().__init__(reason, log_tail)
        self.reason = reason
        self.log_tail = log_tail

    def __str__(self) -> str:
        """Return the problem and its remedy."""
        if not self.log_tail:
            return f"the broker {self.reason} and wrote no log"
        return f"the broker {self.reason}; its log ends:\n{self.log_tail}"
