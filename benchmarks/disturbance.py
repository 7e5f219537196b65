"""Were there other programs on the machine while a row was measured?"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from benchmarks.processes import tree_of

_PR_SET_CHILD_SUBREAPER = 36
_SAMPLE_S = 0.25


def adopt_orphans() -> None:
    """Become the parent of descendants whose parent ends, so that they can be found.

    Spark ends its Python workers without waiting for them.
    """
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Usage:
    """CPU time of this process and of all that it starts, read a few times a second.

    The times of ended children that the kernel adds to their parent do not serve:
    Spark's daemon ignores SIGCHLD, and then the kernel drops the times of the workers.
    A process that ends is missing here by what it used after the last look at it.
    """

    def __init__(self) -> None:
        self._spent_s: dict[psutil.Process, float] = {}
        self._before_s: dict[psutil.Process, float] = {}

    def look(self) -> None:
        """Read the times of the processes that are there now."""
        for process in tree_of(os.getpid()):
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                self._spent_s[process] = times.user + times.system

    def begin(self) -> None:
        """Leave out what was used until now."""
        self.look()
        self._before_s = dict(self._spent_s)

    @property
    def seconds(self) -> float:
        """CPU time from `begin` to the last look, seconds."""
        return sum(self._spent_s.values()) - sum(self._before_s.values())


class Disturbance:
    """What other programs did while a row was measured.

    Attributes:
        share: Share of all cores that they took; known at the end.
    """

    share = 0.0


@contextmanager
def watched() -> Iterator[Disturbance]:
    """Watch the machine."""
    found, usage, ending = Disturbance(), Usage(), threading.Event()

    def follow() -> None:
        while not ending.wait(_SAMPLE_S):
            usage.look()

    usage.begin()
    begun_s, busy_before_s = time.monotonic(), _busy_s()
    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        ending.set()
        thread.join()
        usage.look()
        found.share = share_of_others(
            busy_s=_busy_s() - busy_before_s,
            ours_s=usage.seconds,
            cores_s=(time.monotonic() - begun_s) * (os.cpu_count() or 1),
        )


def share_of_others(*, busy_s: float, ours_s: float, cores_s: float) -> float:
    """Return the share of all cores that other programs took.

    Args:
        busy_s: CPU time of all programs, seconds.
        ours_s: Of this process and of all that it started.
        cores_s: Time of all cores.
    """
    return max(0.0, busy_s - ours_s) / cores_s


def _busy_s() -> float:
    """Return the CPU time of all programs since the machine's start, seconds.

    What other virtual machines took from this one is included. Interrupts are not:
    they belong to nobody.
    """
    times = psutil.cpu_times()
    return times.user + times.nice + times.system + getattr(times, "steal", 0.0)
