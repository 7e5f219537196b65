"""Embedded brokers in the process table: whose they are, and ending those of nobody."""

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
"""A clean stop takes 0.3 s, more when much is still to be written to disk."""
TEMPORARY_PREFIX = "sds-monitor-broker-"
"""How the names of temporary data directories begin."""

_POLL_S = 0.05

_PARENT_MARK = "-Dsds_monitor.parent="
_DATA_DIR_MARK = "-Dsds_monitor.data_dir="
_TEMPORARY_MARK = "-Dsds_monitor.temporary=yes"


def end_left_over_brokers() -> list[int]:
    """Stop the embedded brokers of this user whose parents are gone.

    A broker is left over if the process that started it was killed before it could stop
    it. All others are left alone, those of other running programs above all. Temporary
    data directories of brokers ended here are removed.

    Returns:
        The process ids of the brokers that were ended.
    """
    left_over = [broker for broker in own_brokers() if broker.is_left_over()]
    for broker in left_over:
        broker.end()
    return [broker.process.pid for broker in left_over]


@dataclass(frozen=True)
class FoundBroker:
    """An embedded broker in the process table, known by marks on its command line.

    The marks are there from the first moment and go with the process, which a file of
    process ids cannot promise: a parent may be killed before it writes one, and a
    number in it may by now be another process.
    """

    process: psutil.Process
    parent_pid: int
    parent_started_s: float
    """The parent's creation time, Unix s, against reuse of its process id."""
    data_dir: Path
    temporary: bool

    @classmethod
    def marks(cls, data_dir: Path, temporary: bool) -> list[str]:
        """Return the marks of a broker that this process starts."""
        parent = psutil.Process()
        marks = [
            f"{_PARENT_MARK}{parent.pid}@{parent.create_time()!r}",
            f"{_DATA_DIR_MARK}{data_dir}",
        ]
        return [*marks, _TEMPORARY_MARK] if temporary else marks

    @classmethod
    def read(cls, process: psutil.Process) -> FoundBroker | None:
        """Return the broker that a process is, None if it is something else."""
        arguments = process.cmdline()
        parents = [a for a in arguments if a.startswith(_PARENT_MARK)]
        data_dirs = [a for a in arguments if a.startswith(_DATA_DIR_MARK)]
        if "kafka.Kafka" not in arguments or not parents or not data_dirs:
            return None
        parent = re.fullmatch(r"(\d+)@([\d.]+)", parents[0].removeprefix(_PARENT_MARK))
        if parent is None:
            return None
        return cls(
            process=process,
            parent_pid=int(parent[1]),
            parent_started_s=float(parent[2]),
            data_dir=Path(data_dirs[0].removeprefix(_DATA_DIR_MARK)),
            temporary=_TEMPORARY_MARK in arguments,
        )

    def is_left_over(self) -> bool:
        """Tell whether the parent is gone; in doubt it is not."""
        try:
            # The system gives an orphan another parent. This alone would do, were there
            # no debuggers that pose as parents.
            if self.process.ppid() == self.parent_pid:
                return False
            return _numbered_alike(self.process.pid) and not self._parent_lives()
        except psutil.Error:
            return False

    def _parent_lives(self) -> bool:
        try:
            parent = psutil.Process(self.parent_pid)
            if parent.status() == psutil.STATUS_ZOMBIE:
                return False
            # The same process's time moves a little when the system clock is corrected.
            return abs(parent.create_time() - self.parent_started_s) < 1.0
        except psutil.NoSuchProcess:
            return False

    def end(self) -> None:
        """Stop the process, and remove its data directory if that is temporary."""
        # psutil signals only the very process it looked at, never a later one of the
        # same number.
        with suppress(psutil.NoSuchProcess):
            self.process.terminate()
            if not self._ends_within(STOP_TIMEOUT_S):
                self.process.kill()
                self._ends_within(STOP_TIMEOUT_S)
        if self.temporary and self.data_dir.name.startswith(TEMPORARY_PREFIX):
            shutil.rmtree(self.data_dir, ignore_errors=True)

    def _ends_within(self, timeout_s: float) -> bool:
        # Not psutil's wait: in a container nobody may reap orphans, and for it a
        # zombie is still there.
        deadline = time.monotonic() + timeout_s
        with suppress(psutil.NoSuchProcess):
            while self.process.status() != psutil.STATUS_ZOMBIE:
                if time.monotonic() > deadline:
                    return False
                time.sleep(_POLL_S)
        return True


def own_brokers() -> Iterator[FoundBroker]:
    """Find the embedded brokers of this user."""
    own_uid = os.getuid()
    for process in psutil.process_iter():
        try:
            broker = (
                FoundBroker.read(process) if process.uids().real == own_uid else None
            )
        except psutil.Error:
            continue
        if broker is not None:
            yield broker


def _numbered_alike(pid: int) -> bool:
    """Tell whether a process has the process numbers we have.

    From outside a container its processes are to be seen, but the parent's number in a
    mark is the container's: to us it would look gone.
    """
    own = Path("/proc/self/ns/pid")
    if not os.path.lexists(own):
        return True  # No Linux, no namespaces.
    try:
        return own.readlink() == Path(f"/proc/{pid}/ns/pid").readlink()
    except OSError:
        return False
