"""``sds-monitor import``, over real Kafka."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from connectors.files.record_file import write_records
from sds_core.observer.record import RawRecord
from streaming.cli.actions import import_
from streaming.cli.import_ import command
from tests.support.kafka import TopicMaker

KAFKA = ("--bootstrap", "127.0.0.1:1")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Two records, a second apart."""
    path = tmp_path / "frames.jsonl"
    records = (RawRecord(0, n, 1_000 + 1_000 * n, b"town", b"x", ()) for n in range(2))
    write_records(records, path)
    return path


@pytest.mark.kafka
def test_records_of_a_file_are_written(file: Path, kafka_topic: TopicMaker) -> None:
    """With settings from a configuration file and the name from the environment."""
    settings = kafka_topic().settings
    config = file.with_name("monitor.toml")
    config.write_text(
        f'bootstrap = "{settings.bootstrap}"\n'
        f'[import]\ntopic = "{settings.topic}"\nrestamp = true\n'
    )
    result = CliRunner().invoke(
        command, ["--config", str(config)], env={"SDS_MONITOR_FILE": str(file)}
    )
    assert result.exit_code == 0, result.output
    assert result.output == f"2 records of {file} written to {settings.topic}\n"


@pytest.mark.parametrize(
    ("content", "expected"),
    [("", "contains no record"), ("nonsense\n", "line 1")],
)
def test_a_file_without_records_is_wrong_use(
    tmp_path: Path, content: str, expected: str
) -> None:
    """Before a broker is contacted."""
    path = tmp_path / "frames.jsonl"
    path.write_text(content)
    result = CliRunner().invoke(command, [*KAFKA, str(path)])
    assert result.exit_code == 2
    assert expected in result.output


def test_a_signal_before_the_first_record_is_no_wrong_use(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has records, of which none is written."""

    def interrupted(*_: object, stop: threading.Event, **__: object) -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.is_set()
        return 0

    monkeypatch.setattr(import_, "import_file", interrupted)
    result = CliRunner().invoke(command, [*KAFKA, str(file)])
    assert result.exit_code == 0, result.output
    assert result.output == f"0 records of {file} written to sds.frames\n"


def test_a_pipe_is_refused_before_it_is_read(file: Path) -> None:
    """The second read would find no record, or wait for ever."""
    reading, writing = os.pipe()
    os.write(writing, file.read_bytes())
    os.close(writing)
    try:
        result = CliRunner().invoke(command, [*KAFKA, f"/dev/fd/{reading}"])
    finally:
        os.close(reading)
    assert result.exit_code == 2
    assert "give the name of a regular file" in " ".join(result.output.split())


def test_a_missing_file_is_wrong_use() -> None:
    """By its name."""
    result = CliRunner().invoke(command, [*KAFKA, "nowhere.jsonl"])
    assert result.exit_code == 2
    assert "nowhere.jsonl" in result.output
    assert "Missing argument 'FILE'" in CliRunner().invoke(command, KAFKA).output
