"""Processes that work for a monitor."""

from __future__ import annotations

import subprocess
import sys

import msgspec

WORKER = """
import time
from streaming.worker import work
work(float, time.sleep)
"""


def test_worker_of_a_killed_monitor_ends_at_its_limit() -> None:
    """Nothing else would end it."""
    with subprocess.Popen([sys.executable, "-c", WORKER], stdin=subprocess.PIPE) as one:
        one.communicate(msgspec.msgpack.encode((0.5, 600.0)), timeout=60)
    assert one.returncode < 0
