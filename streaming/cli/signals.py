"""Ending on Ctrl-C and SIGTERM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def end_requested(
    event: threading.Event | None = None,
) -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set while the block runs.

    Nothing is raised: an exception in the middle of a call to the JVM would leave its
    connection unusable. To be entered again after Spark has started, which takes
    SIGINT for itself.

    Args:
        event: Of a block around this one; None for a new one.
    """
    ending = threading.Event() if event is None else event

    def end(number: int, frame: FrameType | None) -> None:
        ending.set()

    before = {
        number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
