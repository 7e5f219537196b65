"""Processes of the example chat, which a test speaks to and kills."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60


class Running:
    """A process whose lines are collected."""

    def __init__(self, *arguments: str) -> None:
        self.lines: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def say(self, line: str) -> None:
        """Write a line to its input."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def until(self, text: str) -> str:
        """Wait for a line with this text."""
        self.wait(lambda: any(text in line for line in self.lines))
        return next(line for line in self.lines if text in line)

    def wait(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition is true."""
        deadline_s = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline_s, self.lines
            time.sleep(0.02)

    def kill(self) -> None:
        """End it as by `kill -9`."""
        self._process.send_signal(signal.SIGKILL)
        with self._process:
            self._reading.join()

    def end(self) -> int:
        """End it as an operator does; returns its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(PATIENCE_S)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip("\n"))


@contextmanager
def running(*arguments: str) -> Iterator[Running]:
    """Run a module; it is killed at the end."""
    made = Running(*arguments)
    try:
        yield made
    finally:
        made.kill()
