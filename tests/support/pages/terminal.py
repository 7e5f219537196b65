"""A directory in which the commands of a page run, one after the other."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

from tests.support.deployment import ROOT
from tests.support.pages.world import World
from tests.support.waiting import wait_for

_PATIENCE_S = 900.0

_LASTING = re.compile(
    r"sds-monitor (run|mirror|broker|audit serve) (?!.*(--until-caught-up|--help))"
    r"|--every|http\.server"
)
"""Commands that run until they are ended."""

_UP = re.compile(r"metrics (http|on)|Kafka listens on|Serving HTTP")
"""What these print when they are ready."""

_FINDS = re.compile(r"sds-monitor (incidents|inspect|audit|doctor|dead-letter|plan)\b")
"""Commands that end with 1 if they find something (docs/cli.md, Exit codes)."""


class Terminal:
    """Runs commands as a shell does; `end` must be called.

    A command that runs until it is ended runs beside later commands, until one with the
    same name starts.

    Args:
        directory: Working and home directory of the commands.
        world: What they talk to.
    """

    def __init__(self, directory: Path, world: World) -> None:
        self._directory = directory
        self._world = world
        self._lasting: dict[str, subprocess.Popen[bytes]] = {}
        (directory / ".venv").symlink_to(sys.prefix)
        # The broker is downloaded once.
        (directory / ".cache").symlink_to(Path.home() / ".cache")
        for name in ("dashboards", "deploy", "docs", "streaming", "tests"):
            (directory / name).symlink_to(ROOT / name)
        self._environment = {
            **os.environ,
            "HOME": str(directory),
            "PATH": f"{sys.prefix}/bin:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "SDS_MONITOR_API": world.monitor,
            "SDS_MONITOR_METRICS_PORT": "0",
            "SDS_MONITOR_SYNC_PORT": str(world.sync_port),
            "SDS_MONITOR_YES": "true",
        }

    def end(self) -> None:
        """End all commands, even if one of them fails."""
        with ExitStack() as ending:
            for name in list(self._lasting):
                ending.callback(self._end, name)

    def run(self, text: str) -> None:
        """Run a command of a page, or start it if it runs until it is ended.

        Raises:
            AssertionError: It failed, or did not become ready.
        """
        command = self._world.here(text)
        if exported := re.fullmatch(r"export (\w+)=(.*)", command):
            self._environment[exported[1]] = exported[2].strip("\"'")
        elif lasting := _LASTING.search(f"{text} "):
            self._start(lasting[0].split(" --")[0], command)
        else:
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=self._directory,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=_PATIENCE_S,
            )
            allowed = (0, 1) if _FINDS.search(command) else (0,)
            assert done.returncode in allowed, f"{command}\n{done.stdout}"
            assert "Traceback" not in done.stdout, f"{command}\n{done.stdout}"

    def _start(self, name: str, command: str) -> None:
        if name in self._lasting:
            self._end(name)
        log = self._log(name)
        with log.open("wb") as file:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self._directory,
                env=self._environment | {"PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        self._lasting[name] = process

        def is_up() -> bool:
            said = log.read_text(errors="replace")
            assert process.poll() is None, f"{command}\n{said}"
            return _UP.search(said) is not None

        wait_for(is_up, _PATIENCE_S)

    def _end(self, name: str) -> None:
        process = self._lasting.pop(name)
        process.send_signal(signal.SIGINT)
        try:
            code = process.wait(_PATIENCE_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        said = self._log(name).read_text(errors="replace")
        assert code == 0 or "http.server" in name, f"{name} ended with {code}\n{said}"

    def _log(self, name: str) -> Path:
        return self._directory / f"{re.sub(r'[^a-z]+', '-', name)}.log"
