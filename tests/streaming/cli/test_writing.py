"""What commands that write to Kafka report if they end early."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from connectors.kafka.producer import Acknowledgements
from connectors.kafka.settings import KafkaUnreachable
from streaming.cli.actions import import_, simulate
from streaming.cli.import_ import command as import_command
from streaming.cli.simulate import command as simulate_command

KAFKA = ("--bootstrap", "127.0.0.1:1")


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    """The test's handler of SIGTERM comes back."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def silent(*_: Any, acknowledged: Acknowledgements, **__: Any) -> int:
    """Write three records; then a signal comes, and Kafka does not answer."""
    for _ in range(3):
        acknowledged.add(None)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(30)
    return 3


def unreachable(*_: Any, acknowledged: Acknowledgements, **__: Any) -> int:
    """Write a record; then Kafka is down."""
    acknowledged.add(None)
    raise KafkaUnreachable(KAFKA[1])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file, whose content is not read."""
    path = tmp_path / "frames.jsonl"
    path.touch()
    return path


@pytest.mark.parametrize(("write", "count"), [(silent, 3), (unreachable, 1)])
def test_import_that_ends_early_reports_what_was_written(
    write: Any,
    count: int,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Some records of the file are in the topic."""
    monkeypatch.setattr(import_, "import_file", write)
    CliRunner().invoke(import_command, [*KAFKA, str(file)])
    assert caplog.messages == [f"Kafka acknowledged only {count} records"]


@pytest.mark.parametrize(("write", "count"), [(silent, 3), (unreachable, 1)])
def test_simulation_that_ends_early_reports_what_was_written(
    write: Any,
    count: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It writes no truth, because records may be missing."""
    truth = tmp_path / "truth.json"
    monkeypatch.setattr(simulate, "ensure_frames_topic", lambda *_: 1)
    monkeypatch.setattr(simulate, "write", lambda *given: write(acknowledged=given[-1]))
    CliRunner().invoke(simulate_command, [*KAFKA, "--truth", str(truth)])
    assert caplog.messages == [f"Kafka acknowledged only {count} records"]
    assert not truth.exists()
