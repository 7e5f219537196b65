"""File descriptors of this process: how many are left, and how many it may have."""

from __future__ import annotations

import resource
from contextlib import suppress

import psutil


def raise_limit() -> None:
    """Raise the soft limit of open descriptors to the hard one, as far as allowed."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # macOS does not allow the hard limit "unlimited".
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def are_left(count: int) -> bool:
    """Whether this process may open at least so many descriptors more."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return True
    try:
        # Counted each time: Spark's driver, Kafka's clients and files open them too.
        return soft - psutil.Process().num_fds() >= count
    except (OSError, psutil.Error):
        # Counting takes a descriptor, and none is left.
        return False
