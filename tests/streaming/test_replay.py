"""Replay of a past window: its content, its report, and no side effects."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from connectors.kafka.producer import TopicRecord, partitions_of, write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.recording import load_recording
from streaming.cli import group, starting
from streaming.cli.actions.replay import warn_of_deleted_records
from streaming.settings import Window
from tests.support.cli.command import sds_monitor
from tests.support.identities import assert_identities
from tests.support.kafka import KafkaTopic
from tests.support.monitor import report_of
from tests.support.streaming.jobs import JobRunner

Replay = Callable[..., Result]


@pytest.fixture(scope="module")
def recording() -> list[TopicRecord]:
    """The shipped recording."""
    return load_recording()


@pytest.fixture(scope="module")
def recorded(
    module_topic: Callable[..., KafkaSettings], recording: list[TopicRecord]
) -> KafkaSettings:
    """A topic that holds the recording and one record that is none."""
    kafka = module_topic(partitions=0)
    ensure_frames_topic(kafka, partitions_of(recording))
    write(recording, kafka)
    KafkaTopic(kafka).write(b"\xff garbage", time_ms=span(recording).last_ms)
    return kafka


def span(records: Sequence[TopicRecord]) -> Window:
    """The window that just holds some records."""
    times = [record.timestamp_ms for record in records]
    return Window(min(times), max(times))


@pytest.fixture
def replay(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Replay:
    """Run the command in the session at hand; its report is ``report.json``."""
    monkeypatch.setattr(starting, "make_session", lambda settings: spark)
    # The session stays for the tests to come.
    monkeypatch.setattr(starting, "stop_session", lambda spark: None)

    def run(kafka: KafkaSettings, window: Window, *flags: str) -> Result:
        return CliRunner().invoke(group, [*arguments(kafka, window, tmp_path), *flags])

    return run


def arguments(kafka: KafkaSettings, window: Window, directory: Path) -> list[str]:
    """What an operator types behind ``sds-monitor``."""
    options = {
        "--bootstrap": kafka.bootstrap,
        "--topic": kafka.topic,
        "--from": str(window.first_ms),
        "--to": str(window.last_ms),
        "--report": str(directory / "report.json"),
    }
    return ["replay", *(word for option in options.items() for word in option)]


def report_in(directory: Path) -> dict[str, Any]:
    """The report that the command has left."""
    report = json.loads((directory / "report.json").read_text())
    assert_identities(report)
    assert isinstance(report, dict)
    return report


def left_in_kafka(kafka: KafkaSettings) -> tuple[dict[str, Any], dict[str, Any]]:
    """What all consumer groups have committed, and where all dead letters end."""
    with KafkaTopic(kafka).admin() as admin:
        groups = [found["group_id"] for found in admin.list_groups()]
        committed = {name: admin.list_group_offsets(name)[name] for name in groups}
        letters = [name for name in admin.list_topics() if "dead-letter" in name]
    ends = {
        name: KafkaTopic(replace(kafka, topic=name)).last_stable_offset()
        for name in letters
    }
    return committed, ends


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
def test_replay_of_a_whole_topic_gives_the_report_of_the_live_job(
    recorded: KafkaSettings,
    recording: list[TopicRecord],
    drain: JobRunner,
    replay: Replay,
    tmp_path: Path,
) -> None:
    """Equal but for its date; no offset committed, no dead letter written."""
    live = drain(recorded, report_detail=True)
    before = left_in_kafka(recorded)
    assert 1 in before[1].values()
    result = replay(recorded, span(recording), "--report-detail")
    assert result.exit_code == 0, result.output
    assert left_in_kafka(recorded) == before
    report = report_in(tmp_path)
    assert report["totals"]["undecodable"] == {"protobuf_error": 1}
    report["generated_at"] = live["generated_at"]
    assert json.dumps(report, sort_keys=True) == json.dumps(live, sort_keys=True)


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.parametrize("rows", ["150", "100000"])
def test_replay_reports_only_its_window(
    recorded: KafkaSettings,
    recording: list[TopicRecord],
    replay: Replay,
    tmp_path: Path,
    rows: str,
) -> None:
    """As the monitor without Kafka reports the same records."""
    whole = span(recording)
    third_ms = (whole.last_ms - whole.first_ms) // 3
    window = Window(whole.first_ms + third_ms, whole.last_ms - third_ms)
    inside = [record for record in recording if record.timestamp_ms in window]
    # The topic goes on behind the window, so that the clock reaches its end.
    end = replace(inside[-1], timestamp_ms=window.last_ms, key=None, value=b"")
    end = replace(end, headers=(("kind", b"heartbeat"), ("observer", b"tap")))
    result = replay(recorded, window, "--max-batch-records", rows)
    assert result.exit_code == 0, result.output
    found = report_in(tmp_path)
    expected = report_of([*inside, end])
    assert found["channels"] == expected["channels"]
    assert found["window"] == expected["window"]
    assert 0 < found["totals"]["messages"] < 282


@pytest.mark.kafka
@pytest.mark.spark
def test_empty_window_is_wrong_use(
    recorded: KafkaSettings,
    recording: list[TopicRecord],
    replay: Replay,
    tmp_path: Path,
) -> None:
    """One line says so; an empty report would look like a quiet time."""
    first_ms = span(recording).last_ms + 1
    result = replay(recorded, Window(first_ms, first_ms))
    assert result.exit_code == 2
    assert f"topic {recorded.topic} has no record from" in result.output
    assert not (tmp_path / "report.json").exists()


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("window", "is_empty"),
    [
        (Window(1, 999), True),
        (Window(6_001, 6_999), True),
        (Window(8_001, 9_000), True),
        (Window(5_000, 5_000), False),
    ],
)
def test_empty_window_needs_no_spark(
    topic: Callable[..., KafkaSettings],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    window: Window,
    is_empty: bool,
) -> None:
    """Without Java the answer is the same; a late record behind later ones counts."""
    kafka = topic()
    KafkaTopic(kafka).write_times([1_000, 6_000, 7_000, 5_000, 8_000])
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java"))
    done = sds_monitor(*arguments(kafka, window, tmp_path))
    if is_empty:
        assert done.returncode == 2
        assert f"topic {kafka.topic} has no record from" in done.stderr
    else:
        assert done.returncode == 3
        assert "Java" in done.stderr


@pytest.mark.kafka
@pytest.mark.spark
def test_window_that_may_lack_its_beginning_is_reported(
    topic: Callable[..., KafkaSettings],
    replay: Replay,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The remaining records are reported with a warning."""
    kafka = topic()
    KafkaTopic(kafka).write_times([1_000, 2_000, 3_000])
    KafkaTopic(kafka).delete_before(1)
    result = replay(kafka, Window(1_000, 3_000))
    assert result.exit_code == 0, result.output
    assert (
        "partition 0 no longer has records before 1970-01-01T00:00:02.000Z"
        in caplog.text
    )
    assert sum(report_in(tmp_path)["totals"]["undecodable"].values()) == 2


@pytest.mark.kafka
def test_partitions_without_their_first_records_are_named(
    topic: Callable[..., KafkaSettings], caplog: pytest.LogCaptureFixture
) -> None:
    """Also if retention has left none; never written or whole ones are not named."""
    kafka = topic(partitions=4)
    for partition in range(3):
        KafkaTopic(kafka).write_times([1_000, 2_000], partition)
    KafkaTopic(kafka).delete_before(1, partition=0)
    KafkaTopic(kafka).delete_before(2, partition=1)
    warn_of_deleted_records(kafka, 0, "not counted")
    assert caplog.messages == [
        "partition 0 no longer has records before 1970-01-01T00:00:02.000Z: "
        "not counted",
        "partition 1 no longer has records: not counted",
    ]


@pytest.mark.kafka
def test_topic_that_is_missing_is_code_3(
    topic: Callable[..., KafkaSettings], tmp_path: Path
) -> None:
    """Before Spark is started."""
    kafka = topic(partitions=0)
    result = subprocess.run(
        [
            *(sys.executable, "-m", "streaming.cli"),
            *arguments(kafka, Window(0, 1), tmp_path),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 3
    assert len(result.stderr.strip().splitlines()) == 1
    assert kafka.topic in result.stderr


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        (
            ("2026-11-21T09:00:00Z", "2026-11-21T08:59:59.999Z"),
            "--from 2026-11-21T09:00:00.000Z is later than "
            "--to 2026-11-21T08:59:59.999Z",
        ),
        (("yesterday", "1"), "'yesterday' is not a valid time: use a time such as"),
        (
            ("0", "1768478430000000000"),
            "'1768478430000000000' is not a valid time: use a time",
        ),
    ],
)
def test_invalid_window_is_wrong_use(bounds: tuple[str, str], said: str) -> None:
    """Before Kafka is queried."""
    first, last = bounds
    flags = ["--bootstrap", "127.0.0.1:1", "--report", "report.json"]
    result = CliRunner().invoke(
        group, ["replay", *flags, "--from", first, "--to", last]
    )
    assert result.exit_code == 2
    assert said in result.output
