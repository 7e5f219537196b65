"""Waiting for a change that another process makes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def wait_for(condition: Callable[[], Found], seconds: float = 120) -> Found:
    """Wait until a condition returns a true value; return that.

    Args:
        condition: Asked again and again.
        seconds: After which the test fails; far more than an idle machine needs.
    """
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.1)
    return found
