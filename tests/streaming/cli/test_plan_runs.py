"""Ctrl-C while processes start."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from streaming.cli.actions import plan_runs


def test_interrupt_that_another_thread_receives_waits_for_the_block() -> None:
    """Otherwise, it would end this process while a child waits for its orders."""
    ends = threading.Event()
    done: list[str] = []

    def start() -> None:
        with plan_runs.interrupts_held():
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1_000):
                ends.wait(0.0001)
            done.append("the block")

    other = threading.Thread(target=ends.wait)
    other.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            start()
    finally:
        ends.set()
        other.join()
    assert done
