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
"""A broker that does not stop within this time is killed. A clean stop takes 0.3 s, or
longer if much data is not yet on disk."""
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

    The marks exist exactly as long as the process. A PID file would remain if the
    process is killed.
    """

    process: psutil.Process
    parent_pid: int
    parent_started_s: float
    """Start time of the parent process, Unix s. A later process with the same id has
    another start time."""
    data_dir: Path
    temporary: bool

    @classmethod
    def marks(cls, data_dir: Path, temporary: bool) -> list[str]:
        """Return the JVM options that mark a broker that this process starts."""
        parent = psutil.Process()
        marks = [
            f"{_PARENT_MARK}={parent.pid}@{parent.create_time()!r}",
            f"{_DATA_DIR_MARK}={data_dir}",
        ]
        return [*marks, f"{_TEMPORARY_MARK}=yes"] if temporary else marks

    @classmethod
    def read(cls, process: psutil.Process) -> FoundBroker | None:
        """Return the embedded broker that a process runs; None if it runs none."""
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
        """Return whether the broker's parent no longer runs; False if unknown."""
        try:
            # While the process that started the broker runs, it is the broker's parent,
            # unless the broker runs under a debugger.
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
            # The two times of the same process may differ a little if the system clock
            # was corrected.
            return abs(parent.create_time() - self.parent_started_s) < 1.0
        except psutil.NoSuchProcess:
            return False

    def end(self) -> None:
        """Stop the broker; if its data directory is temporary, remove the directory."""
        # If the broker has ended and another process has its id, psutil raises
        # `NoSuchProcess` and sends no signal.
        with suppress(psutil.NoSuchProcess):
            self.process.terminate()
            if not self._ends_within(STOP_TIMEOUT_S):
                self.process.kill()
                self._ends_within(STOP_TIMEOUT_S)
        if self.temporary and self.data_dir.name.startswith(TEMPORARY_PREFIX):
            shutil.rmtree(self.data_dir, ignore_errors=True)

    def _ends_within(self, timeout_s: float) -> bool:
        # `psutil.Process.wait` would treat a zombie as a running process. In a
        # container without a process that reaps orphans, the ended broker remains a
        # zombie.
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
    """Return whether a process has the same PID namespace as this process.

    False if unknown. If a broker runs in a container, its mark has the id that the
    parent has inside the container. Outside of the container, the parent has another
    id, so a search for the id in the mark does not find the parent.
    """
    own = Path("/proc/self/ns/pid")
    if not os.path.lexists(own):
        return True  # Only Linux has namespaces.
    try:
        return own.readlink() == Path(f"/proc/{pid}/ns/pid").readlink()
    except OSError:
        return False
