"""The example chat: processes on a lossy network, one of which is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest

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
        deadline_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline_s:
            for line in self.lines:
                if text in line:
                    return line
            time.sleep(0.02)
        message = f"no line has {text!r}: {self.lines}"
        raise AssertionError(message)

    def kill(self) -> None:
        """End it as by `kill -9`."""
        self._process.send_signal(signal.SIGKILL)
        with self._process:
            self._reading.join()

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


@pytest.mark.slow
def test_chat_brings_a_mebibyte_over_losses_and_a_kill(tmp_path: Path) -> None:
    """In order, with progress, although the receiver is killed in the middle."""
    payload = os.urandom(1024 * 1024)
    file = tmp_path / "large"
    file.write_bytes(payload)
    expected = [
        "alice: The kettle is on.",
        f"alice: 1,048,576 bytes, SHA-256 {sha256(payload).hexdigest()}",
        "alice: Tea is ready.",
    ]
    with running("examples.chat.network", "--port", "0", "--loss", "0.1") as network:
        port = network.until("on port").split()[3].rstrip(",")

        def join(name: str) -> tuple[str, ...]:
            storage = str(tmp_path / f"{name}.sqlite")
            return ("examples.chat", name, "--port", port, "--storage", storage,
                    "--pace", "20")  # fmt: skip

        with running(*join("alice")) as alice:
            alice.until("alice is in the channel")
            with running(*join("bob")) as first:
                first.until("bob is in the channel")
                alice.say("The kettle is on.")
                first.until(expected[0])
                alice.say(f"/file {file}")
                alice.until("[sending-message")
                alice.until("11/11")
                first.kill()
            alice.say("Tea is ready.")
            with running(*join("bob")) as second:
                second.until(expected[2])
                alice.until("[message-acknowledged")
                heard = [
                    line
                    for line in [*first.lines, *second.lines]
                    if line.startswith("alice: ")
                ]
            # The last event before the kill may come again.
            assert list(dict.fromkeys(heard)) == expected
