"""The exporter writes incidents and minutes to the history, and deletes old days."""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.broker.broker import EmbeddedBroker
from connectors.history.layout import day_directory, day_of, file_path, files
from connectors.history.parquet import QUIET_MS
from connectors.history.query import channel_minutes
from connectors.history.query import find_incidents as query_history
from connectors.history.schema import CHANNEL_MINUTES, INCIDENTS
from connectors.history.topics import HistoryTopics
from connectors.kafka.consumer import OffsetRange, fetch
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import Client, KafkaSettings
from connectors.kafka.topics import ensure_topic
from sds_core.observer.sds.totals import ChannelMinute, ChannelTotals
from streaming import history
from streaming.directories import DirectoryInUse, DirectoryUnwritable
from streaming.ledger.findings import Destination
from tests.support.kafka import NOBODY, refused_sockets_stay_open
from tests.support.streaming.history import (
    DAY_MS,
    EVERYTHING,
    MONDAY_MS,
    Checkpoint,
    lost,
    minutes,
)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.02)


def test_end_of_the_block_exports_all_rows_that_are_left(
    checkpoint: Checkpoint,
) -> None:
    """Even more rows than are in memory at a time."""
    told = minutes(2_100)
    checkpoint.findings.record_minutes({"town": told})
    checkpoint.findings.record_incidents({"town": [lost("m")]})
    checkpoint.export()
    assert checkpoint.findings.count_pending() == 0
    assert checkpoint.minute_messages() == [one.totals.messages for one in told]
    found = query_history(checkpoint.settings.directory, EVERYTHING)
    assert found == checkpoint.findings.find_incidents(EVERYTHING)


def test_rows_of_the_job_before_are_exported_soon_after_a_start(
    checkpoint: Checkpoint,
) -> None:
    """Not only at the end, which a killed process does not reach."""
    checkpoint.findings.record_minutes({"town": minutes(1)})
    with checkpoint.exporter():
        wait_until(lambda: checkpoint.findings.count_pending() == 0)
        assert checkpoint.minute_messages() == [1]


def test_rows_that_were_written_twice_count_once(checkpoint: Checkpoint) -> None:
    """As after a crash between writing rows and confirming them."""
    checkpoint.findings.record_incidents({"town": [lost("m")]})
    checkpoint.findings.record_minutes({"town": minutes(3)})
    before = shutil.copytree(checkpoint.directory, checkpoint.directory / "before")
    checkpoint.export()
    shutil.copy(before / "ledger.sqlite", checkpoint.directory)
    checkpoint.restart()
    checkpoint.findings.record_incidents({"town": [lost("m", ended_ms=MONDAY_MS + 1)]})
    checkpoint.export()
    assert checkpoint.minute_messages() == [1, 2, 3]
    found = query_history(checkpoint.settings.directory, EVERYTHING)
    assert found == checkpoint.findings.find_incidents(EVERYTHING)
    assert len(files(day_directory(_table(checkpoint, "incidents"), _MONDAY))) == 2


_MONDAY = day_of(MONDAY_MS)


def _table(checkpoint: Checkpoint, name: str) -> Path:
    return checkpoint.settings.directory / name


def blocked(checkpoint: Checkpoint, name: str) -> Path:
    """Put a file where the directory of a table belongs; returns its path."""
    in_the_way = _table(checkpoint, name)
    in_the_way.parent.mkdir(exist_ok=True)
    in_the_way.write_text("")
    return in_the_way


def test_rows_wait_while_the_disk_fails(
    checkpoint: Checkpoint, caplog: pytest.LogCaptureFixture
) -> None:
    """No row is lost, and the log names the failure."""
    checkpoint.findings.record_minutes({"town": minutes(2)})
    checkpoint.findings.record_incidents({"town": [lost("m")]})
    in_the_way = blocked(checkpoint, CHANNEL_MINUTES.name)
    checkpoint.export()
    assert (
        checkpoint.findings.count_pending()
        == checkpoint.pending(Destination.PARQUET)
        == 2
    ), "only minutes wait"
    line = caplog.messages[0]
    assert line.startswith("the history waits: ")
    assert str(in_the_way) in line
    in_the_way.unlink()
    checkpoint.export()
    assert checkpoint.findings.count_pending() == 0
    assert checkpoint.minute_messages() == [1, 2]
    assert checkpoint.incidents() == [("m", True)]


def test_rows_of_another_table_are_written_once_while_a_table_fails(
    checkpoint: Checkpoint,
) -> None:
    """Else each attempt writes them to another file."""
    checkpoint.findings.record_minutes({"town": minutes(2)})
    checkpoint.findings.record_incidents({"town": [lost("m")]})
    blocked(checkpoint, CHANNEL_MINUTES.name)
    for _ in range(3):
        checkpoint.export()
    assert len(files(day_directory(_table(checkpoint, INCIDENTS.name), _MONDAY))) == 1
    checkpoint.findings.record_incidents({"town": [lost("n")]})
    checkpoint.export()
    found = query_history(checkpoint.settings.directory, EVERYTHING)
    assert {one.incident.message_id for one in found} == {"m", "n"}


def test_table_that_accepts_no_rows_is_stalled(
    checkpoint: Checkpoint, caplog: pytest.LogCaptureFixture
) -> None:
    """Although another table accepts rows; otherwise no table is."""
    checkpoint.findings.record_incidents({"town": [lost("m")]})
    with checkpoint.exporter() as exporter:
        begun_s = time.monotonic()
        wait_until(lambda: exporter.stalled_s() < time.monotonic() - begun_s)
    blocked(checkpoint, CHANNEL_MINUTES.name)
    checkpoint.findings.record_incidents({"town": [lost("n")]})
    checkpoint.findings.record_minutes({"town": minutes(1)})
    with checkpoint.exporter() as exporter:
        begun_s = time.monotonic()
        wait_until(lambda: bool(caplog.messages))
        assert checkpoint.pending(Destination.PARQUET) == 1
        assert exporter.stalled_s() >= time.monotonic() - begun_s


def test_row_that_no_file_can_hold_does_not_end_the_job(
    checkpoint: Checkpoint, caplog: pytest.LogCaptureFixture
) -> None:
    """An unforeseen error does not end the thread; the log has its traceback."""
    long_ago = ChannelMinute(-(10**15), ChannelTotals())
    checkpoint.findings.record_minutes({"town": [long_ago]})
    with checkpoint.exporter():
        wait_until(lambda: bool(caplog.records))
        checkpoint.findings.record_incidents({"town": [lost("m")]})
    assert checkpoint.pending(Destination.PARQUET) == 1
    assert checkpoint.pending(Destination.TOPICS) == 0
    assert caplog.records[0].exc_info


def test_damaged_file_does_not_delay_rows(
    checkpoint: Checkpoint, caplog: pytest.LogCaptureFixture
) -> None:
    """Only the files of its day are not merged."""
    day = day_directory(_table(checkpoint, INCIDENTS.name), _MONDAY)
    day.mkdir(parents=True)
    for number in range(2):
        path = file_path(day, number)
        path.write_text("no rows")
        os.utime(path, (0, (time.time_ns() // 1_000_000 - 2 * QUIET_MS) / 1000))
    checkpoint.findings.record_minutes({"town": minutes(1)})
    checkpoint.export()
    assert checkpoint.minute_messages() == [1]
    (line,) = caplog.messages
    assert f"{file_path(day, 0)} cannot be read" in line
    assert len(files(day)) == 2


@refused_sockets_stay_open
def test_rows_wait_for_kafka_without_delaying_anything(
    checkpoint: Checkpoint, caplog: pytest.LogCaptureFixture
) -> None:
    """Files are written meanwhile; at the end Kafka is not tried again."""
    checkpoint.findings.record_minutes({"town": minutes(2)})
    with checkpoint.exporter(topics=HistoryTopics(NOBODY)):
        wait_until(lambda: bool(caplog.records))
        checkpoint.findings.record_incidents({"town": [lost("m")]})
    assert checkpoint.minute_messages() == [1, 2]
    assert checkpoint.pending(Destination.PARQUET) == 0
    assert (
        checkpoint.findings.count_pending()
        == checkpoint.pending(Destination.TOPICS)
        == 3
    )
    (line,) = caplog.messages
    assert NOBODY.bootstrap in line


@pytest.mark.kafka
def test_topics_get_waiting_rows_in_order(
    checkpoint: Checkpoint, kafka_broker: EmbeddedBroker
) -> None:
    """They hold the same rows as the files."""
    told = [lost("a"), lost("b"), lost("a", ended_ms=MONDAY_MS + 1)]
    for incident in told:
        checkpoint.findings.record_incidents({"town": [incident]})
    checkpoint.findings.record_minutes({"town": minutes(2)})
    kafka = KafkaSettings(kafka_broker.bootstrap, "left.incidents", timeout_s=20.0)
    checkpoint.export(
        topics=HistoryTopics(kafka, [kafka.topic, "left.minutes", "left.verdicts"])
    )
    assert checkpoint.findings.count_pending() == 0
    incidents = _values(kafka, 3)
    assert [(one["message_id"], one["ended"]) for one in incidents] == [
        ("a", None),
        ("b", None),
        ("a", MONDAY_MS + 1),
    ]
    assert [one["told"] for one in incidents] == [1, 2, 3]
    rows = channel_minutes(
        checkpoint.settings.directory, "town", MONDAY_MS, MONDAY_MS + DAY_MS
    )
    assert _values(replace(kafka, topic="left.minutes"), 2) == rows


@pytest.mark.kafka
def test_topic_that_refuses_a_row_delays_only_its_later_rows(
    checkpoint: Checkpoint,
    kafka_broker: EmbeddedBroker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No topic gets more rows, however often the refused row is tried."""
    monkeypatch.setattr(history, "_RETRY_S", 0.1)
    kafka = KafkaSettings(kafka_broker.bootstrap, "few.incidents", timeout_s=20.0)
    ensure_topic(kafka, kafka.topic, configuration={"max.message.bytes": "2000"})
    large = random.Random(1).randbytes(4_000).hex()
    checkpoint.findings.record_incidents(
        {"town": [lost(one) for one in ("a", "b", large, "c")]}
    )
    checkpoint.findings.record_minutes({"town": minutes(3)})
    names = [kafka.topic, "few.minutes", "few.verdicts"]
    with (
        checkpoint.exporter(topics=HistoryTopics(kafka, names)),
        closing(TopicOffsets(kafka)) as incidents,
        closing(TopicOffsets(replace(kafka, topic=names[1]))) as others,
    ):
        wait_until(lambda: checkpoint.pending(Destination.TOPICS) == 2)
        before = incidents.latest([0])
        time.sleep(3)
        assert checkpoint.pending(Destination.TOPICS) == 2
        assert incidents.latest([0]) == before
        assert others.latest([0]) == {0: 3}


def _values(kafka: KafkaSettings, count: int) -> list[dict[str, object]]:
    found = fetch(Client.CONFLUENT, kafka, [OffsetRange(0, 0, count)])
    return [json.loads(record.value or b"") for records in found for record in records]


def test_topics_that_are_switched_on_later_get_only_later_rows(
    checkpoint: Checkpoint,
) -> None:
    """Without topics no row waits for them."""
    checkpoint.findings.record_incidents({"town": [lost("m")]})
    checkpoint.export()
    assert checkpoint.pending(Destination.TOPICS) == 0


def test_days_that_are_old_by_event_time_are_deleted(checkpoint: Checkpoint) -> None:
    """A day is deleted whole, once all of it is too old."""
    checkpoint.settings = replace(checkpoint.settings, days=1)
    checkpoint.findings.record_incidents(
        {"town": [lost("old"), lost("new", MONDAY_MS + DAY_MS)]}
    )
    checkpoint.export(MONDAY_MS + 2 * DAY_MS - 1)
    checkpoint.export(MONDAY_MS + 2 * DAY_MS - 1)
    assert checkpoint.incidents() == [("new", True), ("old", True)]
    checkpoint.export(MONDAY_MS + 2 * DAY_MS)
    assert checkpoint.incidents() == [("new", True)]


def test_old_incidents_are_deleted_although_the_files_never_had_them(
    checkpoint: Checkpoint,
) -> None:
    """Else they pile up while the disk of the history is away; their rows wait."""
    checkpoint.settings = replace(checkpoint.settings, days=3)
    checkpoint.findings.record_incidents({"town": [lost("old")]})
    blocked(checkpoint, INCIDENTS.name)
    checkpoint.export(MONDAY_MS + 4 * DAY_MS - 1)
    assert checkpoint.incidents() == [("old", True)]
    checkpoint.export(MONDAY_MS + 4 * DAY_MS)
    assert checkpoint.incidents() == []
    assert checkpoint.pending(Destination.PARQUET) == 1


def test_new_checkpoint_can_continue_an_old_history(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    """Its later rows replace those of the previous job."""
    checkpoint.findings.record_incidents({"town": [lost("a"), lost("b")]})
    checkpoint.findings.record_minutes({"town": minutes(2)})
    checkpoint.export()
    later = Checkpoint(tmp_path / "later", checkpoint.settings.directory, 1_000)
    later.findings.record_incidents({"town": [lost("b", ended_ms=MONDAY_MS + 1)]})
    later.findings.record_minutes({"town": minutes(3, messages=10)[1:]})
    later.export()
    found = query_history(checkpoint.settings.directory, EVERYTHING)
    assert [one.incident.ended_ms for one in found] == [None, MONDAY_MS + 1]
    assert later.minute_messages() == [1, 11, 12]


def test_history_has_one_writer(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """Two would use the same file numbers; the second is refused."""
    other = Checkpoint(tmp_path / "other", checkpoint.settings.directory)
    with (
        checkpoint.exporter(),
        pytest.raises(DirectoryInUse, match="another --history"),
    ):
        other.export()
    other.export()


def test_directory_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    """Before the job begins."""
    (tmp_path / "file").write_text("")
    checkpoint = Checkpoint(tmp_path / "monitor", tmp_path / "file" / "history")
    with pytest.raises(DirectoryUnwritable, match=r"file.history cannot be written to"):
        checkpoint.export()


@pytest.fixture(autouse=True)
def warnings_are_seen(caplog: pytest.LogCaptureFixture) -> None:
    """Those of our own logger alone, without those of Kafka libraries."""
    caplog.set_level(logging.CRITICAL)
    caplog.set_level(logging.WARNING, logger="sds-monitor")
