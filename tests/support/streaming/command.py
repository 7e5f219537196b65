"""``sds-monitor run`` in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import httpx
import pytest

from connectors.kafka.settings import KafkaSettings

_NOTHING: Mapping[str, str] = MappingProxyType({})


@contextmanager
def started(
    kafka: KafkaSettings,
    directory: Path,
    *flags: str,
    environment: Mapping[str, str] = _NOTHING,
    python: Path = Path(sys.executable),
) -> Iterator[subprocess.Popen[str]]:
    """The command in the background; ended in the end whatever happens.

    Args:
        kafka: Cluster and topic.
        directory: Gets checkpoint, report and log.
        flags: Further options.
        environment: Further variables.
        python: Runs the command.
    """
    options = {
        "--bootstrap": kafka.bootstrap,
        "--topic": kafka.topic,
        "--checkpoint": str(directory / "checkpoint"),
        "--report": str(directory / "report.json"),
        "--metrics-port": "0",
    }
    arguments = [word for option in options.items() for word in option]
    with (
        (directory / "stderr").open("w") as stderr,
        subprocess.Popen(
            [python, "-m", "streaming.cli", "run", *arguments, *flags],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env={**os.environ, **environment},
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def page_of(process: subprocess.Popen[str]) -> str:
    """The URL that the command says it serves."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("status page "):
            return line.split()[2]
    pytest.fail("it ended without serving a page")


def is_ready(url: str) -> bool:
    """Whether the query runs."""
    return httpx.get(f"{url}readyz").status_code == 200
