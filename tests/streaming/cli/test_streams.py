"""Commands whose output is not read to its end."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO


def started(*arguments: str, stdout: int, stderr: IO[bytes]) -> subprocess.Popen[bytes]:
    """The command, writing there."""
    return subprocess.Popen(
        [sys.executable, "-m", "streaming.cli", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        # Under `nohup` the tests ignore it, and so would what they start.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )


def test_closed_pipe_changes_nothing(
    tmp_path: Path,
) -> None:
    """No message, and the exit code of a command read to its end."""
    report = tmp_path / "report.json"
    report.write_text('{"incidents": []}')
    told = tmp_path / "told"
    ours, its = os.pipe()
    os.close(ours)
    with (
        told.open("wb") as stderr,
        started(
            *("incidents", "--from-report", str(report)), stdout=its, stderr=stderr
        ) as process,
    ):
        os.close(its)
        assert process.wait(60) == 0
    assert told.read_bytes() == b""


def test_closed_terminal_ends_the_mirror_in_order(tmp_path: Path) -> None:
    """Its last line is lost without an error."""
    ours, its = pty.openpty()
    told = tmp_path / "told"
    with (
        told.open("wb") as stderr,
        started(
            *("mirror", "--rest", "http://127.0.0.1:1", "--bootstrap", "127.0.0.1:1"),
            *("--pubsub-topic", "/waku/2/rs/1/0", "--state", str(tmp_path / "state")),
            *("--metrics-port", "0"),
            stdout=its,
            stderr=stderr,
        ) as process,
    ):
        os.close(its)
        try:
            assert os.read(ours, 65_536).startswith(b"observer ")
            os.close(ours)
            process.send_signal(signal.SIGHUP)
            assert process.wait(60) == 0
        finally:
            process.kill()
    assert b"Traceback" not in told.read_bytes()
