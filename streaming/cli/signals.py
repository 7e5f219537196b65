"""Ending on Ctrl-C, SIGTERM and SIGHUP."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class EndedBySignal(SystemExit):
    """A signal was received: end as on a normal exit, so that all is stopped."""


class HeldHangup:
    """Handler of SIGHUP that only remembers it.

    Attributes:
        came: Whether it did.
    """

    def __init__(self) -> None:
        self.came = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Remember it."""
        self.came = True

    def release(self) -> None:
        """Let SIGHUP end the program from now on, at once if it came.

        Raises:
            EndedBySignal: It came.
        """
        signal.signal(signal.SIGHUP, _end)
        if self.came:
            _end(signal.SIGHUP, None)


def end_on_signals(*, hold_hangup: bool = False) -> None:
    """Let `EndedBySignal` be raised on signals from now on.

    SIGINT and SIGHUP that are ignored stay so: those are `nohup`, and a shell's ``&``.

    Args:
        hold_hangup: Whether SIGHUP is to be held until it is known what it means.
    """
    signal.signal(signal.SIGTERM, _end)
    hangup = HeldHangup() if hold_hangup else _end
    for number, handler in ((signal.SIGINT, _end), (signal.SIGHUP, hangup)):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def ending_signals() -> tuple[signal.Signals, ...]:
    """Those that end the program: SIGHUP too, unless it is ignored or handled."""
    ending = (signal.SIGINT, signal.SIGTERM)
    if signal.getsignal(signal.SIGHUP) in (signal.SIG_DFL, _end):
        return (*ending, signal.SIGHUP)
    return ending


@contextmanager
def end_requested(
    event: threading.Event | None = None,
) -> Iterator[threading.Event]:
    """An event that the `ending_signals` set while the block runs.

    Nothing is raised: an exception in the middle of a call to the JVM would leave its
    connection unusable. To be entered again after Spark has started, which takes
    SIGINT for itself.

    Args:
        event: Of a block around this one; None for a new one.
    """
    ending = threading.Event() if event is None else event

    def end(number: int, frame: FrameType | None) -> None:
        ending.set()

    before = {number: signal.signal(number, end) for number in ending_signals()}
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> None:
    if number == signal.SIGHUP:
        # The terminal and its shell may both say that it closes, and the second is not
        # to disturb the end.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise EndedBySignal
