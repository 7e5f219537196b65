"""How the program ends on Ctrl-C, SIGTERM and SIGHUP."""

from __future__ import annotations

import signal
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio


class EndedBySignal(SystemExit):
    """A signal was received.

    The error ends the program like `sys.exit`, with cleanup.
    """


class DeferredHangup:
    """Handler that only records SIGHUP, until the program knows how to react."""

    def __init__(self) -> None:
        self.received = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Record the signal."""
        self.received = True

    def release(self) -> None:
        """Let SIGHUP end the program from now on.

        Raises:
            EndedBySignal: SIGHUP was received before.
        """
        signal.signal(signal.SIGHUP, _end)
        if self.received:
            _end(signal.SIGHUP, None)


def end_on_signals(*, defer_hangup: bool = False) -> None:
    """Raise `EndedBySignal` on SIGINT, SIGTERM and, unless deferred, SIGHUP.

    If `nohup` or the ``&`` of a shell made the program ignore SIGINT or SIGHUP, the
    signal stays ignored.
    """
    signal.signal(signal.SIGTERM, _end)
    hangup = DeferredHangup() if defer_hangup else _end
    for number, handler in ((signal.SIGINT, _end), (signal.SIGHUP, hangup)):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def ending_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that end the program; no SIGHUP if it has another handler."""
    ending = (signal.SIGINT, signal.SIGTERM)
    if signal.getsignal(signal.SIGHUP) in (signal.SIG_DFL, _end):
        return (*ending, signal.SIGHUP)
    return ending


@contextmanager
def end_requested(event: threading.Event | None = None) -> Iterator[threading.Event]:
    """Yield an event; while the block runs, each of `ending_signals` sets the event.

    In the block, signals raise no exceptions, because an exception would break the
    connection to the JVM. After Spark has started, enter the context again with its
    event, because Spark installs a handler of SIGINT.
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


def run_until_signal(ending: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that ends when a signal of `ending_signals` sets the event."""
    # Most commands do not need this import.
    import asyncio

    # The signals are determined here, because the block replaces the handler of SIGHUP.
    signals = ending_signals()

    async def run() -> None:
        loop = asyncio.get_running_loop()
        for number in signals:
            loop.add_signal_handler(number, ending.set)
        if early.is_set():
            ending.set()
        await work

    # Without this block, a signal could interrupt the start of asyncio.
    with end_requested() as early:
        asyncio.run(run())


def _end(number: int, frame: FrameType | None) -> None:
    if number == signal.SIGHUP:
        # Terminal and shell may both send the signal; the second signal must not
        # disturb the end.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise EndedBySignal
