"""A wall clock that is set forward and back while a job runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from connectors.kafka.settings import KafkaSettings
from tests.support.interposed.library import made_library
from tests.support.streaming.command import is_ready, page_of, started
from tests.support.streaming.supervised import write_messages
from tests.support.waiting import wait_for

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.timeout(900),
]

STEP_S = 600


class Clock:
    """The wall clock of the processes that have the library."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.set(0.0)

    def set(self, ahead_s: float) -> None:
        """Have it show a time that is so far ahead of the true one."""
        ahead_ns = int(ahead_s * 1_000_000_000)
        with self._path.open("r+b" if self._path.exists() else "wb") as file:
            file.write(ahead_ns.to_bytes(8, "little", signed=True))


class Watched:
    """A job with a clock of its own.

    Attributes:
        clock: Its clock.
        log: What it has logged.
        url: Its page.
    """

    def __init__(self, clock: Clock, log: Path, url: str) -> None:
        self.clock, self._log, self.url = clock, log, url

    @property
    def log(self) -> str:
        """What it has logged."""
        return self._log.read_text()

    def figures(self) -> dict[str, Any]:
        """The figures as JSON."""
        found: dict[str, Any] = httpx.get(f"{self.url}api/v1/channels").json()
        return found

    def messages(self) -> int:
        """Messages of all channels."""
        return sum(one["messages"] for one in self.figures()["channels"])


@pytest.fixture
def watched(topic: Callable[..., KafkaSettings], tmp_path: Path) -> Callable[[], Any]:
    """Start a job on a topic with a channel of three messages."""

    @contextmanager
    def run() -> Iterator[tuple[Watched, KafkaSettings]]:
        kafka = topic()
        write_messages(kafka, "before", 3)
        clock = Clock(tmp_path / "clock")
        variables = {
            "LD_PRELOAD": str(made_library("clock", tmp_path)),
            "INTERPOSED_CLOCK": str(tmp_path / "clock"),
        }
        flags = ("--kafka-timeout", "20")
        with started(kafka, tmp_path, *flags, environment=variables) as process:
            job = Watched(clock, tmp_path / "stderr", page_of(process))
            wait_for(lambda: is_ready(job.url))
            wait_for(lambda: job.messages() == 3)
            yield job, kafka
            assert process.poll() is None

    return run


def test_clock_that_is_set_forward_and_back_changes_no_figure(
    watched: Callable[[], Any],
) -> None:
    """By ten minutes; the log says that it is wrong, and later that it is right."""
    with watched() as (job, kafka):
        job.clock.set(STEP_S)
        wait_for(lambda: "clock" in job.log)
        write_messages(kafka, "meanwhile", 4)
        wait_for(lambda: job.messages() == 7)
        job.clock.set(0.0)
        write_messages(kafka, "after", 5)
        wait_for(lambda: job.messages() == 12)
        assert "made no progress" not in job.log
