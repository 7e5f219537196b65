"""The whole pipeline, on real Kafka and real Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import NewPartitions
from pyspark.sql import SparkSession

from connectors.history.query import channel_minutes as query_minutes
from connectors.history.schema import CHANNEL_MINUTES, NumberedMinute, Row, minute_row
from connectors.kafka.dead_letter import DeadLetterWriter
from connectors.kafka.producer import TopicRecord, partitions_of, write
from connectors.kafka.settings import Client, KafkaSettings, RecordsLost
from connectors.kafka.topics import ensure_frames_topic
from connectors.recording import load_recording, load_truth
from sds_core import compiled
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.simulation.comparison import compare
from streaming.cli.output import wall_ms
from streaming.cli.serving import status_server
from streaming.failure import JobFailed
from streaming.job import Job, running_job
from streaming.settings import HistorySettings
from tests.support.history.stored import in_files, in_topics
from tests.support.streaming.jobs import job_settings, wait_for_end, wait_until
from tests.support.streaming.records import T0, a_frame, heartbeat, produce

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

Topic = Callable[..., KafkaSettings]
Drain = Callable[..., dict[str, Any]]
Live = Callable[..., Any]


@pytest.fixture(scope="module")
def recording() -> list[TopicRecord]:
    """The shipped recording."""
    return load_recording()


@pytest.fixture
def recorded(topic: Topic, recording: list[TopicRecord]) -> KafkaSettings:
    """A topic that holds the recording."""
    kafka = topic(partitions=0)
    ensure_frames_topic(kafka, partitions_of(recording))
    write(recording, kafka)
    return kafka


@pytest.mark.slow
def test_report_equals_the_truth_for_any_batches_and_client(
    recorded: KafkaSettings, drain: Drain, tmp_path: Path
) -> None:
    """With one report and one history for all of them."""
    topics = (f"{recorded.topic}.incidents", f"{recorded.topic}.minutes")
    history = HistorySettings(tmp_path / "history", 30, True, *topics)
    whole = drain(recorded, "whole", report_detail=True, history=history)
    assert [one for one in compare(load_truth(), whole) if not one.same] == []
    truth = load_truth()["channels"]
    for channel, report in whole["channels"].items():
        found = sorted(map(tuple, report["ack_latencies"]))
        assert found == sorted(map(tuple, truth[channel]["ack_latencies"]))
    other_history = HistorySettings(tmp_path / "other-history", has_topics=False)
    many = drain(recorded, "many", report_detail=True, rows=173, history=other_history)
    other = drain(
        recorded, "other", report_detail=True, rows=600, client=Client.KAFKA_PYTHON
    )
    assert json.dumps(many, sort_keys=True) == json.dumps(whole, sort_keys=True)
    assert json.dumps(other, sort_keys=True) == json.dumps(whole, sort_keys=True)
    kept = in_files(history.directory)
    assert kept == in_files(other_history.directory) == in_topics(recorded, *topics)
    incidents = {
        (one["channel"], one["kind"], one["message_id"]): one
        for one in whole["incidents"]
    }
    assert kept.incidents == incidents
    assert incidents


def test_figures_of_the_last_hour_are_those_of_the_history(
    recorded: KafkaSettings,
    recording: list[TopicRecord],
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    """However batches are cut, and after a restart without a history."""
    history = HistorySettings(tmp_path / "history", has_topics=False)
    settings = job_settings(recorded, tmp_path / "job", rows=600, history=history)
    with running_job(spark, settings) as job:
        wait_for_end(job)
    last_ms = recording[-1].timestamp_ms
    at_ms = last_ms // 60_000 * 60_000 - 2 * 60_000
    alone = replace(settings, history=None)
    with running_job(spark, alone) as job:
        stored = job.stored["sds"]
        found = stored.find_recent(at_ms)
        for channel in job.board.snapshot.views["sds"].totals:
            rows = query_minutes(history.directory, channel, 0, last_ms)
            known = stored.find_minutes(channel, 0, last_ms)
            assert known
            names = known[-1].keys()
            whole = [{name: row[name] for name in names} for row in rows]
            # Without a history, the last hour is all that is stored.
            assert known == whole[-len(known) :]
            before = [row for row in rows if row["minute"] < at_ms]
            values = dict(
                zip(CHANNEL_FIGURES.counted, found[channel].values, strict=True)
            )
            assert found[channel].end_ms == before[-1]["minute"] + 60_000
            assert values["messages"] == before[-1]["messages"]
        wait_for_end(job)


def test_last_minute_of_a_channel_has_the_figures_of_the_report(
    recorded: KafkaSettings,
    recording: list[TopicRecord],
    live: Live,
    tmp_path: Path,
) -> None:
    """After all deadlines, although the disk was full meanwhile."""
    later_ms = recording[-1].timestamp_ms + 2 * 3_600_000
    produce(recorded, *(heartbeat(later_ms, n) for n in range(4)))
    history = HistorySettings(tmp_path / "history", has_topics=False)
    in_the_way = history.directory / CHANNEL_MINUTES.name
    in_the_way.parent.mkdir()
    in_the_way.write_text("")
    with live(recorded, until_caught_up=True, history=history) as job:
        wait_for_end(job)
        waited = job.stores.count_pending()
        channels = job.board.snapshot.views["sds"].totals
        in_the_way.unlink()
    minutes = in_files(history.directory).minutes
    assert 0 < len(minutes) <= waited
    last = {channel: row for (channel, _), row in sorted(minutes.items())}
    assert last == {
        channel: without_number(
            NumberedMinute(0, channel, last[channel]["minute"], totals)
        )
        for channel, totals in channels.items()
    }


def without_number(minute: NumberedMinute) -> Row:
    """Its row as far as the number of its telling does not matter."""
    row = minute_row(minute)
    del row["told"]
    return row


def test_drained_checkpoint_counts_nothing_twice(
    recorded: KafkaSettings, drain: Drain
) -> None:
    """A second run without new records reports the same."""
    first = drain(recorded)
    assert drain(recorded) == first


def test_figures_are_exported_at_once_after_a_restart(
    recorded: KafkaSettings, recording: list[TopicRecord], drain: Drain, live: Live
) -> None:
    """The exporter is primed from the checkpoint before anything is read."""
    report = drain(recorded)
    with live(recorded) as job, status_server(job, "127.0.0.1", 0) as url:
        scraped = httpx.get(f"{url}/metrics").text
        assert f'sds_messages_total{{channel="town-square"}} {157.0}' in scraped
        assert "sds_monitor_restarts_total 1.0" in scraped
        assert f'sds_monitor_build_info{{rules="{compiled.form()}",version=' in scraped
        # No counter begins at 0 and jumps to where it was.
        assert f"sds_monitor_records_total {float(len(recording))}" in scraped
        newest_ms = max(record.timestamp_ms for record in recording)
        assert job.board.snapshot.clock_ms == newest_ms
        assert httpx.get(f"{url}/readyz").status_code == 200
    assert report["channels"]["town-square"]["messages"] == 157


def test_every_bad_record_is_counted_and_the_query_continues(
    topic: Topic, drain: Drain
) -> None:
    """Each kind of bad record has its reason and its dead letter."""
    kafka = topic()
    good = {"key": b"town", "timestamp_ms": T0}
    future_ms = wall_ms() + 50 * 60_000
    produce(
        kafka,
        good | {"value": a_frame("a")},
        good | {"value": b"\xff\xff garbage"},
        good | {"value": a_frame("b")[:-3]},
        good | {"value": b"x" * 20_000_000},
        good | {"value": b"", "headers": [("meta", b"")]},
        good | {"value": a_frame("c"), "key": b"elsewhere"},
        good | {"value": a_frame("d"), "timestamp_ms": future_ms},
        good | {"value": a_frame("e"), "headers": [("seq", b"minus one")]},
        good | {"value": a_frame("f"), "timestamp_ms": T0 + 1, "key": None},
        heartbeat(T0 + 200_000),
    )
    report = drain(kafka)
    assert report["totals"]["undecodable"] == {
        "protobuf_error": 2,
        "too_large": 1,
        "empty_value": 1,
        "channel_mismatch": 1,
        "future_timestamp": 1,
        "bad_header": 1,
    }
    assert report["channels"]["town"]["frames"]["content"] == 2
    assert list(report["channels"]) == ["town"]
    assert report["window"] == {"first_event": T0, "last_event": T0 + 1}
    letters = read_all(kafka, f"{kafka.topic}.dead-letter")
    by_reason = {dict(r.headers)["dead-letter-reason"].decode(): r for r in letters}
    assert len(letters) == 7
    assert by_reason["too_large"].value == b""
    assert dict(by_reason["too_large"].headers)["dead-letter-size"] == b"20000000"
    mismatch = by_reason["channel_mismatch"]
    assert (mismatch.key, mismatch.value) == (b"elsewhere", a_frame("c"))
    assert mismatch.timestamp == T0
    source = dict(mismatch.headers)["dead-letter-source"].decode()
    assert source == f"{kafka.topic}:0:5"


def read_all(kafka: KafkaSettings, topic: str) -> list[Any]:
    """All records of a topic with one partition."""
    consumer = KafkaConsumer(
        bootstrap_servers=kafka.bootstrap,
        auto_offset_reset="earliest",
        group_id=None,
    )
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    end = consumer.end_offsets([partition])[partition]
    found: list[Any] = []
    while len(found) < end:
        for records in consumer.poll(1000).values():
            found += records
    consumer.close()
    return found


def test_deadline_fires_in_a_silent_channel(topic: Topic, live: Live) -> None:
    """Heartbeats in other partitions move the clock."""
    kafka = topic(partitions=2)
    produce(
        kafka,
        {"value": a_frame("a"), "timestamp_ms": T0},
        {"value": a_frame("b", "ben", T0 + 9), "timestamp_ms": T0 + 9},
        heartbeat(T0 + 1_000, 1),
    )
    with live(kafka) as job:
        wait_until(job, lambda: "town" in job.board.snapshot.views["sds"].totals)
        assert job.board.snapshot.views["sds"].totals["town"].in_flight == 2
        produce(kafka, heartbeat(T0 + 120_000, 0), heartbeat(T0 + 120_000, 1))
        wait_until(job, lambda: job.progress.fired_ms == T0 + 120_000)
        # An acknowledgement at exactly the deadline would still be in time.
        assert job.board.snapshot.views["sds"].totals["town"].in_flight == 2
        produce(kafka, heartbeat(T0 + 130_000, 0), heartbeat(T0 + 130_000, 1))
        wait_until(job, lambda: job.progress.fired_ms == T0 + 130_000)
        totals = job.board.snapshot.views["sds"].totals["town"]
        assert (totals.unacknowledged, totals.unwitnessed) == (1, 1)


def test_partitions_added_to_a_running_job_are_read(topic: Topic, live: Live) -> None:
    """From their first records on."""
    kafka = topic()
    produce(kafka, {"value": a_frame("a"), "timestamp_ms": T0})
    with live(kafka) as job:
        wait_until(job, lambda: "town" in job.board.snapshot.views["sds"].totals)
        admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
        admin.create_partitions({kafka.topic: NewPartitions(3)})
        admin.close()
        value = a_frame("b", channel="village")
        produce(kafka, {"value": value, "timestamp_ms": T0 + 1, "partition": 2})
        wait_until(job, lambda: "village" in job.board.snapshot.views["sds"].totals)


def test_lost_records_stop_the_job_by_default(topic: Topic, drain: Drain) -> None:
    """The error names them; a flag lets the job continue."""
    kafka = topic()
    produce(kafka, {"value": a_frame("a"), "timestamp_ms": T0})
    drain(kafka)
    produce(
        kafka,
        {"value": a_frame("b"), "timestamp_ms": T0 + 1},
        {"value": a_frame("c"), "timestamp_ms": T0 + 2},
    )
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    admin.delete_records({TopicPartition(kafka.topic, 0): 2})
    admin.close()
    expected = str(RecordsLost(kafka.topic, 0, 1, 2))
    with pytest.raises(
        JobFailed, match=expected.replace("(", r"\(").replace(")", r"\)")
    ):
        drain(kafka)
    report = drain(kafka, skip_lost=True)
    assert report["channels"]["town"]["messages"] == 2


def test_offsets_are_committed_for_lag_tools(
    recorded: KafkaSettings, drain: Drain
) -> None:
    """After draining, the consumer group is at the end of the topic."""
    drain(recorded)
    admin = KafkaAdminClient(bootstrap_servers=recorded.bootstrap)
    group = f"{recorded.topic}-monitor"
    found = admin.list_group_offsets(group)[group]
    admin.close()
    assert sum(at.offset for at in found.values()) == 1731


def test_channels_beyond_the_label_budget_share_one(
    topic: Topic, drain: Drain, live: Live
) -> None:
    """Labels stay, later channels are ``other``, and totals are exact."""
    kafka = topic()
    produce(kafka, {"value": a_frame("a", channel="first"), "timestamp_ms": T0})
    drain(kafka, label_budget=1)
    for name in ("a second", "a third"):
        value = a_frame("a", channel=name)
        produce(kafka, {"value": value, "timestamp_ms": T0 + 1})
    assert drain(kafka, label_budget=1)["totals"]["messages"] == 3
    with live(kafka, label_budget=1) as job, status_server(job, "127.0.0.1", 0) as url:
        scraped = httpx.get(f"{url}/metrics").text
        assert 'sds_messages_total{channel="first"} 1.0' in scraped
        assert 'sds_messages_total{channel="other"} 2.0' in scraped


def test_stopping_the_query_ends_the_job(topic: Topic, live: Live) -> None:
    """Stopping the query ends the wait."""
    kafka = topic()
    with live(kafka) as job:
        job.query.stop()
        wait_for_end(job)


def test_job_that_cannot_stop_its_query_is_ended_all_the_same(
    topic: Topic, live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The board says so, and what it wrote to is closed."""
    closed: list[DeadLetterWriter] = []
    close = DeadLetterWriter.close

    def note(writer: DeadLetterWriter) -> None:
        closed.append(writer)
        close(writer)

    def fail(_: SparkSession, job: Job) -> None:
        job.query.stop()
        message = "Spark does not answer"
        raise RuntimeError(message)

    monkeypatch.setattr(DeadLetterWriter, "close", note)
    monkeypatch.setattr("streaming.job._stop", fail)
    with pytest.raises(RuntimeError, match="does not answer"), live(topic()) as job:
        assert job.board.snapshot.job.running
    assert not job.board.snapshot.job.running
    assert len(closed) == 1
