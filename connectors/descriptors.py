"""File descriptors of this process: how many it may have, and whether few are left."""

from __future__ import annotations

import resource
from contextlib import suppress


def raise_limit() -> None:
    """Raise the soft limit of open descriptors to the hard one, as far as allowed."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # macOS does not allow the hard limit "unlimited".
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def are_scarce(number: int, reserve: int) -> bool:
    """Whether fewer descriptors are left to this process than a reserve.

    The open ones are not counted: that reads a directory, entry by entry, and Python
    lets other threads run after each. So a busy process would take seconds for it.

    Args:
        number: The descriptor that was opened last: the system gives the lowest free
            number, so all below it are open.
        reserve: How many should be left.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft != resource.RLIM_INFINITY and number >= soft - reserve
