"""Our commands as processes of their own, which are killed and started again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

import httpx

from tests.support.waiting import wait_for

_NOTHING: Mapping[str, str] = MappingProxyType({})


class Command:
    """A command of `sds-monitor`; killed at the end of a `with` block if it still runs.

    Args:
        name: Name of the command; of a subcommand, both names.
        log: File to which each run appends what it says.
        environment: Further variables of the environment.
        options: Values of the flags, by their names with underscores; True for a flag
            without a value.

    Attributes:
        log: As given.
        process: The latest run, in a session of its own.
    """

    process: subprocess.Popen[bytes]

    def __init__(
        self,
        name: str,
        log: Path,
        *,
        environment: Mapping[str, str] = _NOTHING,
        **options: object,
    ) -> None:
        self.log = log
        self._environment = {**os.environ, **environment}
        self._words = [sys.executable, "-m", "streaming.cli", *name.split()]
        for option, value in options.items():
            flag = f"--{option.replace('_', '-')}"
            self._words += [flag] if value is True else [flag, str(value)]

    def start(self) -> None:
        """Start a run."""
        with self.log.open("ab") as file:
            self.process = subprocess.Popen(
                self._words,
                stdout=file,
                stderr=file,
                env=self._environment,
                start_new_session=True,
            )

    def kill(self) -> None:
        """Kill the run with everything that it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def end(self, seconds: float = 120) -> int:
        """Ask the run to end, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def __enter__(self) -> Self:
        """Start the first run."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Kill the run."""
        self.kill()

    def metrics_url(self) -> str:
        """Wait until the command serves its metrics; return where."""

        def said() -> list[str]:
            return re.findall(r"metrics (http://\S+)", self.log.read_text())

        return str(wait_for(said)[-1])

    def observer(self) -> str:
        """Return the tap id of a mirror."""
        found = re.search(r"^observer (\S+)", self.log.read_text(), re.MULTILINE)
        assert found is not None
        return found[1]


def sample(url: str, series: str) -> float:
    """Return one number that a command exports; 0 if it is not there yet."""
    # A busy machine may take its time.
    text = httpx.get(url, timeout=60).text
    found = re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0
