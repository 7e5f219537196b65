"""``sds-monitor demo`` on a terminal: a live table, then the page until Ctrl-C."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios

import httpx
import pytest

from streaming.cli.actions.demo import lost_line
from tests.support.cli.command import sds_monitor


@pytest.mark.parametrize(
    ("lost", "retracted", "url", "said"),
    [
        (
            2,
            1,
            "http://h:1",
            "2 messages were lost, of which 1 came later: "
            "http://h:1/incidents?kind=lost",
        ),
        (1, 0, None, "1 message was lost: --keep leaves the page up, which names it"),
        (2, 0, None, "2 messages were lost: --keep leaves the page up, which names "),
        (1, 1, "http://h:1", "1 message was lost, and came later: http://h:1/incid"),
        (0, 0, "http://h:1", ""),
    ],
)
def test_demo_names_lost_messages_and_where_to_look(
    lost: int, retracted: int, url: str | None, said: str
) -> None:
    """With the numbers of the table, in which messages that came later count too."""
    line = lost_line({"lost": lost, "retracted": retracted}, url)
    assert line.startswith(said)
    assert bool(line) == bool(said)


def test_history_that_cannot_be_written_is_refused_before_anything_starts() -> None:
    """In one line, with the remedy."""
    found = sds_monitor("demo", "--history", "/proc/nowhere", "--no-keep")
    assert found.returncode == 2
    assert found.stdout == ""
    (line,) = found.stderr.splitlines()
    assert line.startswith("sds-monitor: history /proc/nowhere cannot be written to")
    assert line.endswith("set --history to a writable directory")


def output_until(pattern: bytes, terminal: int) -> str:
    """What a program writes to a terminal, up to the pattern or its end."""
    written = b""
    while not re.search(pattern, written):
        try:
            written += os.read(terminal, 65_536)
        except OSError:
            break
    return written.decode()


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.long
def test_page_stays_up_after_the_table_on_a_terminal() -> None:
    """Its last line links to the lost messages."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    flags = ("--scenario", "unrepaired", "--duration", "1", "--metrics-port", "0")
    with subprocess.Popen(
        [sys.executable, "-m", "streaming.cli", "demo", *flags],
        stdin=its,
        stdout=its,
        stderr=its,
        env=os.environ | {"TERM": "xterm", "NO_COLOR": "1"},
    ) as process:
        os.close(its)
        try:
            text = output_until(rb"until Ctrl-C: \S+/\r\n", ours)
            lost = re.findall(r"10 messages were lost: (\S+)", text)
            assert lost, text
            page = httpx.get(lost[0])
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
        finally:
            process.kill()
            os.close(ours)
    assert page.status_code == 200
    # The cursor went back up: the table was drawn in place, and by our words.
    assert "\x1b[1A" in text
    assert "4 of 4 channels failing: brief-1, brief-2, long-1, 1 more" in text
    assert "\x1b[1;31m" not in text
