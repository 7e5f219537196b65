"""Were there other programs on the machine while a row was measured?"""

from __future__ import annotations

import ctypes
import os
import time
from typing import NamedTuple

import psutil

from benchmarks.processes import cpu_s

_PR_SET_CHILD_SUBREAPER = 36


class Moment(NamedTuple):
    """CPU time up to a moment, seconds.

    Attributes:
        at_s: `time.monotonic`, by the number of cores.
        busy_s: Of all programs; of other virtual machines too, if they took it from
            this one. Interrupts are left out: they belong to nobody.
        ours_s: Of this process and of all that it started.
    """

    at_s: float
    busy_s: float
    ours_s: float


def adopt_orphans() -> None:
    """Become the parent of descendants whose parent ends, so that their time is known.

    Spark ends its Python workers without waiting for them.
    """
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def moment() -> Moment:
    """Return the CPU time up to now."""
    times = psutil.cpu_times()
    busy_s = times.user + times.nice + times.system + getattr(times, "steal", 0.0)
    cores = os.cpu_count() or 1
    return Moment(time.monotonic() * cores, busy_s, cpu_s(os.getpid()))


def share_of_others(before: Moment, after: Moment) -> float:
    """Return the share of all cores that other programs took between two moments."""
    others_s = (after.busy_s - before.busy_s) - (after.ours_s - before.ours_s)
    return max(0.0, others_s) / (after.at_s - before.at_s)
