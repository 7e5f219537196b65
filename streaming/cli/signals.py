"""How the program ends on Ctrl-C, SIGTERM and SIGHUP."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio


_GRACE_S = 0.75
"""Time after a signal in which work must end or make progress, seconds."""


class EndedBySignal(SystemExit):
    """A signal was received.

    The error ends the program like `sys.exit`, with cleanup.
    """


class DeferredHangup:
    """Handler that only records that SIGHUP was received.

    The program uses this handler until it knows whether SIGHUP ends it or makes it read
    a file again.
    """

    def __init__(self) -> None:
        self.received = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Record the signal."""
        self.received = True

    def release(self) -> None:
        """Let SIGHUP end the program from now on.

        Raises:
            EndedBySignal: SIGHUP has already been recorded.
        """
        signal.signal(signal.SIGHUP, _end)
        if self.received:
            _end(signal.SIGHUP, None)


def end_on_signals(*, defer_hangup: bool = False) -> None:
    """Raise `EndedBySignal` on SIGINT, SIGTERM and SIGHUP.

    If `defer_hangup`, `DeferredHangup` handles SIGHUP instead.

    If `nohup` or the ``&`` of a shell made the program ignore SIGINT or SIGHUP, the
    signal stays ignored.
    """
    signal.signal(signal.SIGTERM, _end)
    hangup = DeferredHangup() if defer_hangup else _end
    for number, handler in ((signal.SIGINT, _end), (signal.SIGHUP, hangup)):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def ending_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that end the program.

    SIGHUP is one of them only if its handler ends the program.
    """
    ending = (signal.SIGINT, signal.SIGTERM)
    if signal.getsignal(signal.SIGHUP) in (signal.SIG_DFL, _end):
        return (*ending, signal.SIGHUP)
    return ending


@contextmanager
def end_requested(
    event: threading.Event | None = None,
    *,
    is_interruptible: bool = True,
    progress: Callable[[], int] = lambda: 0,
) -> Iterator[threading.Event]:
    """Yield an event; while the block runs, each of `ending_signals` sets the event.

    After the first signal, the work in the block has `_GRACE_S` to end. Then
    `EndedBySignal` is raised in the block, because the work may be waiting for a
    service that does not answer. If `progress` returns another number than before, the
    work has the same time again.

    If the work is not `is_interruptible`, signals raise no exceptions in the block. For
    example, an exception would break the connection to the JVM. Spark replaces the
    handler of SIGINT when it starts. Enter this context again with the same event after
    Spark has started.
    """
    ending = threading.Event() if event is None else event
    reached = 0

    def end(number: int, frame: FrameType | None) -> None:
        if is_interruptible and not ending.is_set():
            interrupt_if_stuck(number, frame)
        ending.set()

    def interrupt_if_stuck(number: int, frame: FrameType | None) -> None:
        nonlocal reached
        before, reached = reached, progress()
        if number == signal.SIGALRM and reached == before:
            raise EndedBySignal
        signal.signal(signal.SIGALRM, interrupt_if_stuck)
        signal.setitimer(signal.ITIMER_REAL, _GRACE_S)

    before = {number: signal.signal(number, end) for number in ending_signals()}
    try:
        yield ending
    finally:
        if is_interruptible and ending.is_set():
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def run_until_signal(ending: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine, which must end when `ending` is set.

    Each of `ending_signals` sets `ending`.
    """
    # Imported here, because most commands do not need asyncio.
    import asyncio

    # Determined before `end_requested` replaces the handler of SIGHUP.
    signals = ending_signals()

    async def run() -> None:
        loop = asyncio.get_running_loop()
        for number in signals:
            loop.add_signal_handler(number, ending.set)
        if early.is_set():
            ending.set()
        await work

    # Without `end_requested`, a signal would raise an exception while asyncio starts.
    with end_requested(is_interruptible=False) as early:
        asyncio.run(run())


def _end(number: int, frame: FrameType | None) -> None:
    if number == signal.SIGHUP:
        # If the terminal is closed, the terminal and the shell may both send SIGHUP.
        # The second SIGHUP must not interrupt the cleanup.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise EndedBySignal
