"""``sds-monitor export``, and the way back, over real Kafka."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from connectors.files.importing import import_file
from connectors.files.record_file import read_records
from connectors.kafka.producer import write
from connectors.recording import load_recording
from sds_core.observer.record import RawRecord
from streaming.cli.export import command
from streaming.cli.output import wall_ms
from tests.support.kafka import KafkaTopic, TopicMaker

HOUR_MS = 3_600_000
HEARTBEAT = [("observer", b"tap"), ("kind", b"heartbeat")]


def export(topic: KafkaTopic, file: Path, *arguments: str) -> Result:
    """Run the command on a topic."""
    settings = topic.settings
    where = ["--bootstrap", settings.bootstrap, "--topic", settings.topic]
    return CliRunner().invoke(command, [*where, *arguments, str(file)])


def times(file: Path) -> list[int]:
    """Record times of a file."""
    return [record.timestamp_ms for record in read_records(file)]


@pytest.mark.kafka
def test_exported_recording_is_identical(
    tmp_path: Path, kafka_topic: TopicMaker
) -> None:
    """Through a topic, a file and another topic to the same file."""
    recording = load_recording()[:150]
    first, second = kafka_topic(4), kafka_topic(4)
    write(recording, first.settings)
    file, again = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    result = export(first, file)
    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"{len(recording):,} records of ")
    assert import_file(file, second.settings, now_ms=wall_ms()) == len(recording)
    assert export(second, again).exit_code == 0
    found = list(read_records(file))
    assert list(read_records(again)) == found
    # The recording is in order of time too; of one millisecond any order may be.
    assert sorted(map(_content, found)) == sorted(
        (r.partition, r.timestamp_ms, r.key, r.value, r.headers) for r in recording
    )
    assert [r.timestamp_ms for r in found] == [r.timestamp_ms for r in recording]


def _content(record: RawRecord) -> tuple[object, ...]:
    """A record without its offset."""
    return (
        record.partition,
        record.timestamp_ms,
        record.key,
        record.value,
        record.headers,
    )


@pytest.mark.kafka
def test_window_includes_its_bounds_and_late_records(
    tmp_path: Path, kafka_topic: TopicMaker
) -> None:
    """Up to an hour behind its end, as a replay; transactions do not end it."""
    topic = kafka_topic(2)
    topic.write_times([1_000, 2_000, 3_000, 2_500, 3_001, 4 * HOUR_MS, 2_600], 0)
    with topic.transaction([2_100], 1):
        pass
    topic.wait_for(lambda: topic.last_stable_offset(1) > 1)
    topic.write_times([2_200], 1)
    file = tmp_path / "window.jsonl"
    result = export(topic, file, "--from", "2000", "--to", "3000")
    assert result.exit_code == 0, result.output
    assert sorted(times(file)) == [2_000, 2_100, 2_200, 2_500, 3_000]


@pytest.mark.kafka
def test_export_of_some_channels_has_heartbeats(
    tmp_path: Path, kafka_topic: TopicMaker
) -> None:
    """They move the clock when the file is imported."""
    topic = kafka_topic()
    topic.write(b"1", time_ms=1, key=b"town")
    topic.write(b"2", time_ms=2, key=b"village")
    topic.write(b"", time_ms=3, headers=HEARTBEAT)
    topic.write(b"3", time_ms=4, key=b"hamlet")
    topic.write(b"4", time_ms=5)
    file = tmp_path / "some.jsonl"
    result = export(topic, file, "--channel", "town", "--channel", "hamlet")
    assert result.exit_code == 0, result.output
    assert times(file) == [1, 3, 4]


@pytest.mark.kafka
def test_unwritable_file_is_an_error_in_one_line(
    tmp_path: Path, kafka_topic: TopicMaker
) -> None:
    """It has the file's name, and no part of the file remains."""
    topic = kafka_topic()
    topic.write_times([1])
    result = export(topic, tmp_path / "none" / "frames.jsonl")
    assert result.exit_code == 4
    assert "cannot be written: No such file or directory" in result.output


def test_signal_ends_an_export_that_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With code 0, and the file that was there stays."""

    def records(*_: object) -> Iterator[RawRecord]:
        yield RawRecord(0, 0, 1_000, b"a", b"1", ())
        signal.raise_signal(signal.SIGTERM)
        yield RawRecord(0, 1, 2_000, b"a", b"2", ())

    monkeypatch.setattr("streaming.cli.actions.export._records", records)
    file = tmp_path / "out.jsonl"
    file.write_text("earlier")
    arguments = ["--bootstrap", "127.0.0.1:1", str(file)]
    result = CliRunner().invoke(command, arguments)
    assert (result.exit_code, result.output) == (0, "")
    assert caplog.messages == [
        f"a signal came before the last record: {file} is not written"
    ]
    assert file.read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [file]


def test_a_window_that_ends_before_it_begins_is_wrong_use(tmp_path: Path) -> None:
    """Before Kafka is queried."""
    arguments = ["--bootstrap", "x:1", "--from", "2000", "--to", "1000"]
    result = CliRunner().invoke(command, [*arguments, str(tmp_path / "x")])
    assert result.exit_code == 2
    assert "later than" in result.output
