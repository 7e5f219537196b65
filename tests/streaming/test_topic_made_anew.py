"""A topic that is deleted and recreated under its name: Kafka's id shows it."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.producer import TopicRecord, write
from connectors.kafka.settings import KafkaSettings
from streaming.batch_log import read_batch_log
from streaming.failure import JobFailed
from streaming.job import Job, running_job
from streaming.settings import JobSettings, Window
from tests.support.kafka import KafkaTopic
from tests.support.streaming.jobs import job_settings, wait_until
from tests.support.streaming.records import T0, messages
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

Topic = Callable[..., KafkaSettings]
Drain = Callable[..., dict[str, Any]]

MADE_ANEW = "was deleted and recreated.*--on-lost-records skip.*a new --checkpoint"
STARTS = 5
"""Most starts of a job that finds no topic for a moment: the supervisor does them."""


def make_anew(kafka: KafkaSettings, records: list[TopicRecord]) -> None:
    """Delete a topic, make it again, and fill it."""
    KafkaTopic(kafka).make_anew()
    write(records, kafka)


def test_topic_made_anew_with_more_records_stops_the_job(
    topic: Topic, drain: Drain
) -> None:
    """Otherwise as many of its records as were read before would be skipped."""
    kafka = topic()
    write(messages("old", 100), kafka)
    drain(kafka)
    make_anew(kafka, messages("new", 300))
    with pytest.raises(JobFailed, match=MADE_ANEW) as caught:
        drain(kafka)
    assert caught.value.final
    assert kafka.topic in str(caught.value)


def test_topic_made_anew_is_read_from_its_start_with_skip_lost(
    topic: Topic, drain: Drain, caplog: pytest.LogCaptureFixture
) -> None:
    """The figures of the old topic stay, and the next start finds nothing new."""
    kafka = topic()
    write(messages("old", 100), kafka)
    drain(kafka)
    make_anew(kafka, messages("new", 300))
    report = drain(kafka, skip_lost=True)
    assert {name: one["messages"] for name, one in report["channels"].items()} == {
        "old": 100,
        "new": 300,
    }
    assert (
        "recreated: the job continues at the start of the new topic, and at least 0"
        in caplog.text
    )
    assert drain(kafka) == report


def test_records_known_to_be_lost_with_the_topic_are_counted(
    topic: Topic, spark: SparkSession, tmp_path: Path
) -> None:
    """Those that the old topic held beyond the last batch when it was planned."""
    kafka = topic()
    write(messages("old", 100), kafka)
    settings = job_settings(kafka, tmp_path / "a", rows=60, until_caught_up=False)
    with running_job(spark, settings) as job:
        wait_until(job, lambda: "old" in job.board.snapshot.views["sds"].totals)
    stop_after_first_batch(settings.checkpoint)
    position = read_batch_log(settings.checkpoint).position
    assert position is not None
    read = position.records
    assert 0 < read < 100
    make_anew(kafka, messages("new", 300))
    settings = job_settings(kafka, tmp_path / "a", skip_lost=True)
    with running_job(spark, settings) as job:
        wait_until(job, lambda: has_read(job, "new", 300))
        wait_until(job, lambda: job.board.snapshot.job.records_lost == 100 - read)


def stop_after_first_batch(checkpoint: Path) -> None:
    """Leave a checkpoint as a job leaves it that ends after its first batch."""
    for directory in ("offsets", "commits"):
        for path in (checkpoint / directory).iterdir():
            if path.name not in ("0", ".0.crc"):
                path.unlink()


@pytest.mark.parametrize("skip_lost", [False, True])
def test_batch_that_was_planned_for_the_old_topic_is_not_read_from_the_new_one(
    topic: Topic, spark: SparkSession, tmp_path: Path, drain: Drain, skip_lost: bool
) -> None:
    """A job that was killed in a batch repeats it before it plans another."""
    kafka = topic()
    write(messages("old", 100), kafka)
    drain(kafka)
    stop_after_first_batch(tmp_path / "a")
    shutil.rmtree(tmp_path / "a" / "commits")
    make_anew(kafka, messages("new", 300))
    settings = job_settings(kafka, tmp_path / "a", skip_lost=skip_lost)
    with running_job(spark, settings) as job:
        if not skip_lost:
            with pytest.raises(JobFailed, match=MADE_ANEW):
                wait_until(job, lambda: False, 240)
            return
        wait_until(job, lambda: has_read(job, "new", 300))
        wait_until(job, lambda: job.board.snapshot.job.records_lost == 100)
        assert "old" not in job.board.snapshot.views["sds"].totals


def test_topic_made_anew_under_a_running_job_stops_it(
    topic: Topic, spark: SparkSession, tmp_path: Path
) -> None:
    """It reads no record of the new topic, however many there are."""
    kafka = topic()
    write(messages("old", 100), kafka)
    settings = job_settings(kafka, tmp_path / "a", until_caught_up=False)
    with running_job(spark, settings) as job:
        wait_until(job, lambda: has_read(job, "old", 100))
        make_anew(kafka, messages("new", 300))
        failure = failure_of(job)
    if failure.unreachable:  # It had looked while there was no topic.
        with running_job(spark, settings) as job:
            failure = failure_of(job)
    assert failure.final
    assert "was deleted and recreated" in str(failure)
    assert "new" not in job.board.snapshot.views["sds"].totals


def test_topic_made_anew_under_a_running_job_is_read_with_skip_lost(
    topic: Topic, spark: SparkSession, tmp_path: Path
) -> None:
    """From its start, and what comes later too."""
    kafka = topic()
    write(messages("old", 100), kafka)
    settings = job_settings(
        kafka, tmp_path / "a", until_caught_up=False, skip_lost=True
    )

    def make_anew_in(job: Job) -> None:
        wait_until(job, lambda: has_read(job, "old", 100))
        make_anew(kafka, messages("new", 300))

    def read_on(job: Job) -> None:
        wait_until(job, lambda: has_read(job, "new", 300))
        write(messages("later", 1), kafka)
        wait_until(job, lambda: has_read(job, "later", 1))
        assert has_read(job, "old", 100)

    steps = [make_anew_in, read_on]
    for _ in range(STARTS):
        with running_job(spark, settings) as job:
            try:
                while steps:
                    steps[0](job)
                    del steps[0]
            except JobFailed as failure:
                # It had looked while there was no topic.
                if not failure.unreachable:
                    raise
            else:
                return
    pytest.fail("it did not go on")


def has_read(job: Job, channel: str, count: int) -> bool:
    """Whether a job has read so many messages of a channel."""
    channels = job.board.snapshot.views["sds"].totals
    return channel in channels and channels[channel].messages == count


def failure_of(job: Job) -> JobFailed:
    """The error with which a job ends."""
    with pytest.raises(JobFailed) as caught:
        wait_until(job, lambda: False, 240)
    return caught.value


def test_topic_made_anew_under_a_replay_gives_no_report(
    topic: Topic, spark: SparkSession, tmp_path: Path
) -> None:
    """The replay ends with an error: records of both topics would be mixed."""
    kafka = topic()
    write(messages("old", 1_000), kafka)
    window = Window(T0, T0 + 10_000_000)
    settings = job_settings(kafka, tmp_path / "a", rows=5)
    source = settings.source
    settings = JobSettings(
        type(source)(kafka, limits=source.limits, window=window),
        settings.checkpoint,
        until_caught_up=True,
        dead_letter_topic=None,
        group=None,
    )
    with running_job(spark, settings) as job:
        wait_until(job, lambda: "old" in job.board.snapshot.views["sds"].totals)
        thread = threading.Thread(
            target=make_anew, args=(kafka, messages("new", 2_000))
        )
        thread.start()
        failure = failure_of(job)
        thread.join()
    # A worker may have looked while there was no topic, or no such offset.
    text = str(failure)
    assert any(
        cause in text
        for cause in (
            "was deleted and recreated",
            "does not exist",
            "no longer has the unread",
        )
    ), text


def test_position_stores_the_id_that_kafkas_tools_print(
    topic: Topic, drain: Drain, tmp_path: Path
) -> None:
    """22 characters of URL-safe base64."""
    kafka = topic()
    write(messages("old", 1), kafka)
    drain(kafka)
    newest = wait_for(lambda: sorted((tmp_path / "a" / "offsets").glob("[0-9]*")))[-1]
    position = json.loads(newest.read_text().splitlines()[-1])
    assert len(position["topic_id"]) == 22
