"""Finds embedded brokers in the process table; ends brokers whose parent was killed."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

STOP_TIMEOUT_S = 15.0
"""A clean stop takes 0.3 s, or longer if much data is not yet on disk."""
TEMPORARY_PREFIX = "sds-monitor-broker-"
"""Prefix of the names of temporary data directories."""

_POLL_S = 0.05

_PARENT_MARK = "-Dsds_monitor.parent"
_DATA_DIR_MARK = "-Dsds_monitor.data_dir"
_TEMPORARY_MARK = "-Dsds_monitor.temporary"


def end_left_over_brokers() -> list[int]:
    """Stop this user's embedded brokers whose parents no longer run.

    Temporary data directories of the stopped brokers are removed. Returns the process
    ids of the stopped brokers.
    """
    left_over = [broker for broker in own_brokers() if broker.is_left_over()]
    for broker in left_over:
        broker.end()
    return [broker.process.pid for broker in left_over]


@dataclass(frozen=True)
class FoundBroker:
    """An embedded broker in the process table, recognised by marks on its command line.

    Unlike a PID file, the marks exist exactly as long as the process.
    """

    process: psutil.Process
    parent_pid: int
    parent_started_s: float
    """Start time of the parent, Unix s; it distinguishes the parent from a later
    process with the same id."""
    data_dir: Path
    temporary: bool

    @classmethod
    def marks(cls, data_dir: Path, temporary: bool) -> list[str]:
        """Return the marks on the command line of a broker that this process starts."""
        parent = psutil.Process()
        marks = [
            f"{_PARENT_MARK}={parent.pid}@{parent.create_time()!r}",
            f"{_DATA_DIR_MARK}={data_dir}",
        ]
        return [*marks, f"{_TEMPORARY_MARK}=yes"] if temporary else marks

    @classmethod
    def read(cls, process: psutil.Process) -> FoundBroker | None:
        """Return the broker; None if the process is not an embedded broker."""
        parts = (argument.partition("=") for argument in process.cmdline())
        marks = {name: value for name, _, value in parts}
        parent = re.fullmatch(r"(\d+)@([\d.]+)", marks.get(_PARENT_MARK, ""))
        if "kafka.Kafka" not in marks or _DATA_DIR_MARK not in marks or parent is None:
            return None
        return cls(
            process=process,
            parent_pid=int(parent[1]),
            parent_started_s=float(parent[2]),
            data_dir=Path(marks[_DATA_DIR_MARK]),
            temporary=_TEMPORARY_MARK in marks,
        )

    def is_left_over(self) -> bool:
        """Return whether the parent no longer runs; False if that is uncertain."""
        try:
            # If the broker has a parent other than the process that started it, the
            # broker is an orphan or runs under a debugger.
            if self.process.ppid() == self.parent_pid:
                return False
            return _shares_pid_namespace(self.process.pid) and not self._parent_lives()
        except psutil.Error:
            return False

    def _parent_lives(self) -> bool:
        try:
            parent = psutil.Process(self.parent_pid)
            if parent.status() == psutil.STATUS_ZOMBIE:
                return False
            # A correction of the system clock moves a process's creation time a little.
            return abs(parent.create_time() - self.parent_started_s) < 1.0
        except psutil.NoSuchProcess:
            return False

    def end(self) -> None:
        """Stop the process; remove its data directory if it is temporary."""
        # psutil never signals another process that has got the same id.
        with suppress(psutil.NoSuchProcess):
            self.process.terminate()
            if not self._ends_within(STOP_TIMEOUT_S):
                self.process.kill()
                self._ends_within(STOP_TIMEOUT_S)
        if self.temporary and self.data_dir.name.startswith(TEMPORARY_PREFIX):
            shutil.rmtree(self.data_dir, ignore_errors=True)

    def _ends_within(self, timeout_s: float) -> bool:
        # psutil's wait treats a zombie as running, and a container may have no process
        # that reaps orphans.
        deadline = time.monotonic() + timeout_s
        with suppress(psutil.NoSuchProcess):
            while self.process.status() != psutil.STATUS_ZOMBIE:
                if time.monotonic() > deadline:
                    return False
                time.sleep(_POLL_S)
        return True


def own_brokers() -> Iterator[FoundBroker]:
    """Yield the embedded brokers of this user."""
    own_uid = os.getuid()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.uids().real == own_uid and (found := FoundBroker.read(process)):
                yield found


def _shares_pid_namespace(pid: int) -> bool:
    """Return whether a process is in this PID namespace; False if unknown.

    The mark of a broker in a container has the parent's id inside the container.
    Outside of the container, the parent would seem to have ended.
    """
    own = Path("/proc/self/ns/pid")
    if not os.path.lexists(own):
        return True  # Only Linux has namespaces.
    try:
        return own.readlink() == Path(f"/proc/{pid}/ns/pid").readlink()
    except OSError:
        return False
