"""External programs that serve HTTP while a test runs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.support.waiting import wait_for

_READY_S = 30.0
_END_S = 10.0


@contextmanager
def running(command: Sequence[str], ready_url: str, log: Path) -> Iterator[None]:
    """Start a program, wait until it is ready, and end it after the block.

    Args:
        command: Of a program that SIGTERM ends.
        ready_url: Answers 200 once it is.
        log: Takes what it says; shown if it ends by itself.
    """

    def settled() -> bool:
        return process.poll() is not None or _answers(ready_url)

    with (
        log.open("wb") as output,
        subprocess.Popen(command, stdout=output, stderr=output) as process,
    ):
        try:
            wait_for(settled, _READY_S)
            assert process.poll() is None, log.read_text()
            yield
            assert process.poll() is None, log.read_text()
        finally:
            process.terminate()
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False
