"""Runs work in processes of the lowest priority, so that it cannot slow down the job.

A process reads an order from its standard input, and writes the answer to its standard
output. Both are encoded in MessagePack.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from sds_core.text import printable

_LOWEST_PRIORITY = 19
_OOM_SCORE = Path("/proc/self/oom_score_adj")

Order = TypeVar("Order")
Answer = TypeVar("Answer")


class WorkFailed(Exception):
    """A worker gave no answer.

    The message is the reason as a predicate without a subject: for example, "took too
    long".
    """


class Workers:
    """Starts worker processes; `close` ends the processes that still run."""

    def __init__(self) -> None:
        self._working: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._has_ended = False

    def close(self) -> None:
        """End all workers; a worker that starts later ends immediately."""
        with self._lock:
            self._has_ended = True
            for one in self._working:
                one.kill()

    def answer(
        self,
        command: Sequence[str],
        order: Any,
        kind: type[Answer],
        limit_s: float,
        environment: Mapping[str, str] = {},
    ) -> Answer:
        """Start a process, send it an order, and return its answer.

        `command` must start a program that calls `work`. The order is encoded in
        MessagePack. `kind` is the type of the answer. `environment` has variables that
        are added to the process's environment.

        Raises:
            WorkFailed: The process gave no answer.
        """
        # The process has its own process group, so Ctrl-C in the terminal does not end
        # it. The monitor ends it instead.
        try:
            worker = subprocess.Popen(  # noqa: S603 - fixed arguments
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=os.environ | environment,
                process_group=0,
            )
        except OSError as error:
            message = f"cannot start: {error}"
            raise WorkFailed(message) from error
        with self._lock:
            self._working.add(worker)
            if self._has_ended:
                worker.kill()
        try:
            content = msgspec.msgpack.encode((limit_s, order))
            answer, log = worker.communicate(content, limit_s)
            return msgspec.msgpack.decode(answer, type=kind)
        except subprocess.TimeoutExpired as error:
            raise WorkFailed("took too long, so its process was ended") from error
        except msgspec.DecodeError as error:
            lines = log.decode(errors="replace").split("\n")
            why = next((line for line in reversed(lines) if line.strip()), "no answer")
            message = f"failed: {printable(why)}"
            raise WorkFailed(message) from error
        finally:
            # If the process has already ended, `kill` does nothing.
            worker.kill()
            worker.communicate()
            with self._lock:
                self._working.discard(worker)


def work(kind: type[Order], answer: Callable[[Order], Any]) -> None:
    """Read an order from standard input, and write the answer to standard output.

    A worker process calls this function.
    """
    os.nice(_LOWEST_PRIORITY)
    # With this score, Linux ends this process before the driver if memory is short.
    with suppress(OSError):
        _OOM_SCORE.write_text("1000", encoding="ascii")
    content = sys.stdin.buffer.read()
    limit_s, order = msgspec.msgpack.decode(content, type=tuple[float, kind])  # type: ignore[valid-type]
    # After the time limit, an alarm ends this process, even if the monitor was killed
    # and cannot end it.
    signal.alarm(math.ceil(limit_s))
    sys.stdout.buffer.write(msgspec.msgpack.encode(answer(order)))
