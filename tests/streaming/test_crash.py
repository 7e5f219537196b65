"""SIGKILL at any moment, then a start on the same checkpoint."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.kafka.producer import partitions_of, write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.recording import load_recording
from streaming.batch_log import read_batch_log
from tests.support.chaos.batches import wait_for_batch
from tests.support.history.stored import Kept, in_files, in_topics
from tests.support.identities import assert_identities

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.long,
]

COMMAND = [sys.executable, "-m", "streaming.cli", "run", "--metrics-port", "0"]


@pytest.fixture(scope="module")
def recorded(module_topic: Callable[..., KafkaSettings]) -> KafkaSettings:
    """A topic that holds the recording."""
    records = load_recording()
    kafka = module_topic(partitions=0)
    ensure_frames_topic(kafka, partitions_of(records))
    write(records, kafka)
    return kafka


def start(kafka: KafkaSettings, directory: Path) -> subprocess.Popen[bytes]:
    """The monitor as an operator starts it, in a process group of its own."""
    options = {
        "--bootstrap": kafka.bootstrap,
        "--topic": kafka.topic,
        "--checkpoint": str(directory / "checkpoint"),
        "--report": str(directory / "report.json"),
        "--max-batch-records": "200",
        "--incidents-topic": topics_of(directory)[0],
        "--minutes-topic": topics_of(directory)[1],
    }
    arguments = [word for option in options.items() for word in option]
    return subprocess.Popen(
        [*COMMAND, *arguments, "--until-caught-up", "--report-detail"],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
    )


def topics_of(directory: Path) -> tuple[str, str]:
    """Names of the topics of a history of its own."""
    return f"{directory.name}.incidents", f"{directory.name}.minutes"


def history_of(kafka: KafkaSettings, directory: Path) -> Kept:
    """What the files and the topics hold, which is the same."""
    kept = in_files(directory / "checkpoint" / "history")
    assert kept == in_topics(kafka, *topics_of(directory))
    return kept


def finish(kafka: KafkaSettings, directory: Path) -> dict[str, Any]:
    """Run the monitor to its end, and read its report."""
    with start(kafka, directory) as process:
        assert process.wait(300) == 0
    report = json.loads((directory / "report.json").read_text())
    assert_identities(report)
    assert isinstance(report, dict)
    del report["generated_at"]
    return report


def kill_in_batch(
    process: subprocess.Popen[bytes], checkpoint: Path, batch: int
) -> int:
    """Kill everything while a batch is planned and not committed; gives the batch."""
    planned = in_batch(process, checkpoint, batch)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)
    return planned


def in_batch(process: subprocess.Popen[bytes], checkpoint: Path, batch: int) -> int:
    """Wait until a batch is planned and not committed; gives the batch."""
    planned = wait_for_batch(checkpoint, batch, lambda: process.poll() is None)
    # Somewhere inside the batch, not always at its first moment.
    time.sleep(0.05 * (planned % 4))
    return planned


def commands_of_page() -> list[str]:
    """How to back up a running monitor, and how to restore it."""
    page = (Path(__file__).parents[2] / "docs" / "checkpoint.md").read_text("utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    return [block for block in blocks if "$CHECKPOINT" in block]


def shell(commands: str, variables: dict[str, str]) -> None:
    """Run commands as an operator types them."""
    subprocess.run(["sh", "-ec", commands], env={**os.environ, **variables}, check=True)


@pytest.mark.timeout(1_800)
def test_job_killed_three_times_reports_the_same(
    recorded: KafkaSettings, tmp_path: Path
) -> None:
    """The interrupted batch is read again; nothing is lost or counted twice.

    So it is after the last kill, for a backup that was made while the job ran.
    """
    (tmp_path / "undisturbed").mkdir()
    undisturbed = finish(recorded, tmp_path / "undisturbed")
    checkpoint, batch = tmp_path / "checkpoint", 0
    back_up, restore = commands_of_page()
    variables = {"CHECKPOINT": str(checkpoint), "BACKUP": str(tmp_path / "backup")}
    for last in (False, False, True):
        process = start(recorded, tmp_path)
        if last:
            variables["MONITOR"] = str(process.pid)
            batch = 1 + in_batch(process, checkpoint, batch)
            shell(back_up, variables)
        batch = 1 + kill_in_batch(process, checkpoint, batch)
    copied = read_batch_log(tmp_path / "backup")
    shell(restore, variables)
    assert read_batch_log(checkpoint) == copied
    assert copied.position != read_batch_log(tmp_path / "checkpoint.old").position
    assert finish(recorded, tmp_path) == undisturbed
    assert undisturbed["totals"]["messages"] == 282
    history = history_of(recorded, tmp_path / "undisturbed")
    assert history_of(recorded, tmp_path) == history
    assert history.incidents
    assert history.minutes
