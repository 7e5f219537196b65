"""The job: what it consists of, how it is killed, and its next start."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

import psutil

from tests.support.chaos.batches import batches_of, wait_for_batch
from tests.support.chaos.errors import Broken
from tests.support.chaos.plan import Moment, Strike, Victim
from tests.support.soak.commands import Command

_TIMEOUT_S = 300.0
_POLL_S = 0.02
_RESTART = (3, 4, 70)
"""Exit codes after which a supervisor starts the job again (docs/cli.md)."""


class Job:
    """`sds-monitor run`, which is killed and started again on its checkpoint.

    Args:
        command: The command, which has just been started.
        checkpoint: Its checkpoint.
        random: Chooses among several workers.

    Attributes:
        starts: Number of starts.
        recoveries_s: Time from a start to the first batch, for starts after which it
            was waited for.
    """

    def __init__(self, command: Command, checkpoint: Path, random: Random) -> None:
        self._command = command
        self._checkpoint = checkpoint
        self._random = random
        self._started_s = _now_s()
        self._committed = -1
        self._noted_start = 0
        self.starts = 1
        self.recoveries_s: list[float] = []

    @property
    def is_alive(self) -> bool:
        """Whether the driver runs."""
        return self._command.process.poll() is None

    def strike(self, strike: Strike) -> str:
        """Wait for the moment of a strike, kill, and start the job again if it ends.

        Returns:
            What happened, in a line.

        Raises:
            Broken: It ended before, or not at all, or with a code for wrong use.
        """
        where = self._wait_for(strike)
        family = self._family()
        committed = batches_of(self._checkpoint).committed
        self._kill(strike.victim)
        killed_s = time.monotonic()
        code = self._await_end(strike.victim, committed)
        if code is None:
            return f"{where}: it went on without it"
        _await_all(family)
        said = f"{where}: ended with {code} after {time.monotonic() - killed_s:.1f} s"
        self._committed = batches_of(self._checkpoint).committed
        self._started_s = _now_s()
        self._command.start()
        self.starts += 1
        return said

    def wait_until_read(self) -> None:
        """Wait until a batch was committed since the start.

        Raises:
            Broken: It ended before.
        """
        self._wait(self._has_read)

    def _has_read(self) -> bool:
        """Whether a batch was committed since the start; notes when."""
        if batches_of(self._checkpoint).committed <= self._committed:
            return False
        if self._noted_start < self.starts:
            self._noted_start = self.starts
            first = self._checkpoint / "commits" / str(self._committed + 1)
            # Spark deletes the files of old batches.
            with suppress(FileNotFoundError):
                self.recoveries_s.append(first.stat().st_mtime - self._started_s)
        return True

    def _wait_for(self, strike: Strike) -> str:
        """Wait for the moment of a strike; return it in words."""
        if strike.moment is Moment.START:
            due_s = self._started_s + strike.delay_s
            time.sleep(max(0.0, due_s - _now_s()))
            self._wait(lambda: strike.victim is not Victim.JVM or bool(self._jvm()))
            since_s = _now_s() - self._started_s
            return f"{since_s:.1f} s after its start"
        self.wait_until_read()
        if strike.moment is Moment.BATCH:
            # Not the batch that the kill before interrupted, which was repeated.
            batch = wait_for_batch(
                self._checkpoint, self._committed + 2, lambda: self.is_alive
            )
            time.sleep(strike.delay_s)
            return f"{strike.delay_s:.2f} s into batch {batch}"
        time.sleep(strike.delay_s)
        return f"{strike.delay_s:.1f} s after the first batch"

    def _wait(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            if not self.is_alive:
                code = self._command.process.returncode
                message = f"it ended with {code}, and nobody had killed it"
                raise Broken(message)
            if condition():
                return
            if time.monotonic() > deadline:
                message = f"nothing came of it within {_TIMEOUT_S:g} s"
                raise Broken(message)
            time.sleep(_POLL_S)

    def _family(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            driver = psutil.Process(self._command.process.pid)
            return [driver, *driver.children(recursive=True)]
        return []

    def _jvm(self) -> psutil.Process | None:
        for process in self._family():
            with suppress(psutil.NoSuchProcess):
                if any("SparkSubmit" in word for word in process.cmdline()):
                    return process
        return None

    def _kill(self, victim: Victim) -> None:
        if victim is Victim.GROUP:
            self._command.kill()
            return
        process: psutil.Process | None = psutil.Process(self._command.process.pid)
        if victim is not Victim.DRIVER:
            process = self._jvm()
        if victim is Victim.WORKER and process is not None:
            workers = process.children(recursive=True)
            process = self._random.choice(workers) if workers else None
        if process is not None:
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def _await_end(self, victim: Victim, committed: int) -> int | None:
        """Wait for the end; None if a killed worker did not cause one."""

        def went_on() -> bool:
            # Two batches: the first may not have needed that worker any more.
            now = batches_of(self._checkpoint).committed
            return victim is Victim.WORKER and now > committed + 2

        deadline = time.monotonic() + _TIMEOUT_S
        while self.is_alive:
            if went_on():
                return None
            if time.monotonic() > deadline:
                message = f"{_TIMEOUT_S:g} s after the kill of its {victim} it runs"
                raise Broken(message)
            time.sleep(_POLL_S)
        code = self._command.process.wait()
        if victim in (Victim.JVM, Victim.WORKER) and code not in _RESTART:
            message = f"it ended with {code}, after which nobody starts it again"
            raise Broken(message)
        return code


def _await_all(family: Sequence[psutil.Process]) -> None:
    """Wait until a killed job has completely ended, as its lock demands."""
    deadline = time.monotonic() + _TIMEOUT_S
    while alive := [process for process in family if _runs(process)]:
        if time.monotonic() > deadline:
            message = f"{_TIMEOUT_S:g} s after the kill there still runs {alive[0]}"
            raise Broken(message)
        time.sleep(_POLL_S)


def _now_s() -> float:
    """Wall time, Unix s, as that of files."""
    return time.time_ns() / 1e9


def _runs(process: psutil.Process) -> bool:
    # In a container there may be no process that reaps orphans.
    with suppress(psutil.NoSuchProcess):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False
