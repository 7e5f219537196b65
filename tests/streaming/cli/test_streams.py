"""Commands whose output is not read to its end."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest


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


@pytest.mark.parametrize(
    ("descriptor", "arguments", "code"),
    [
        (0, ["inspect"], 1),
        (0, ["forget", "--checkpoint", "none", "town"], 2),
        (1, ["inspect"], 1),
        (2, ["inspect", "nowhere"], 2),
        (2, ["plan", "what-if", "--plan", "plan.toml", "--seeds", "2"], 0),
    ],
)
def test_stream_that_is_closed_at_the_start_counts_as_empty(
    descriptor: int, arguments: list[str], code: int, tmp_path: Path
) -> None:
    """As the null device; no file that is opened later gets its descriptor."""
    (tmp_path / "plan.toml").write_text("participants = 2\nmessages_per_day = 1\n")
    done = subprocess.run(
        [sys.executable, "-m", "streaming.cli", *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        preexec_fn=lambda: os.close(descriptor),
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("encoding", "name"), [("utf-8", b"\xff"), ("latin-1", b"\xce\xa9")]
)
def test_text_that_the_encoding_lacks_is_escaped(
    encoding: str, name: bytes, tmp_path: Path
) -> None:
    """A name of a file that is not UTF-8, or a letter that the locale lacks."""
    path = os.fsencode(tmp_path) + b"/" + name
    program = (
        "import sys, pathlib\n"
        "from streaming.cli.output import write_json\n"
        "from streaming.cli.streams import set_up_streams\n"
        "set_up_streams()\n"
        "write_json({}, pathlib.Path(sys.argv[1]), 'report')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, path],
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "1"},
        capture_output=True,
        check=True,
    )
    assert done.stdout.startswith(b"report in ")
    assert os.path.exists(path)
