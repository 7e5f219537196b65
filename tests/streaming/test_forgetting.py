"""Channels that are forgotten, on real Kafka and real Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from kafka import KafkaProducer
from pyspark.sql import SparkSession

from connectors.kafka.settings import KafkaSettings
from sds_core.wire import Dialect, Frame, encode
from streaming.batch_log import read_batch_log
from streaming.chunk import FORGET
from streaming.cli.serving import status_server
from streaming.damage import LEDGER
from streaming.job import running_job
from streaming.ledger.ledger import Ledger
from streaming.ledger.view_register import ViewRegister
from streaming.settings import HistorySettings
from tests.support.history.stored import in_files
from tests.support.identities import assert_identities
from tests.support.streaming.jobs import job_settings, wait_for_end, wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

T0 = 1_768_478_430_000
DAY_MS = 86_400_000
Topic = Callable[..., KafkaSettings]
Drain = Callable[..., dict[str, Any]]
Live = Callable[..., Any]


def produce(kafka: KafkaSettings, at_ms: int, **messages: int) -> None:
    """Write so many messages into each channel, one millisecond apart."""
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap)
    for channel, count in messages.items():
        for number in range(count):
            frame = Frame.build(
                Dialect.SPEC,
                message_id=f"{channel}-{at_ms}-{number}",
                channel_id=channel,
                sender_id="ana",
                lamport=at_ms + number,
                content=b"hello",
            )
            producer.send(
                kafka.topic, encode(frame), partition=0, timestamp_ms=at_ms + number
            ).get(30)
    producer.close()


def messages_in(report: dict[str, Any]) -> dict[str, int]:
    """Messages of each channel."""
    return {name: one["messages"] for name, one in report["channels"].items()}


def test_silent_channel_is_forgotten_and_is_new_when_it_returns(
    topic: Topic, drain: Drain, tmp_path: Path
) -> None:
    """Sums over all channels keep what it counted; its last totals are in the history.

    In the last part one batch sees the end of the silence and the return.
    """
    kafka = topic()
    directory = tmp_path / "history"
    options = {"history": HistorySettings(directory, 30, has_topics=False)}
    produce(kafka, T0, quiet=3, busy=1)
    assert messages_in(drain(kafka, **options)) == {"quiet": 3, "busy": 1}
    # It is forgotten when the clock has passed the seven days.
    for after_ms, left in ((0, {"quiet": 3, "busy": 2}), (1, {"busy": 3})):
        produce(kafka, T0 + 2 + 7 * DAY_MS + after_ms, busy=1)
        report = drain(kafka, **options)
        assert messages_in(report) == left
        assert_identities(report)
    assert report["totals"]["messages"] == 6
    assert report["forgotten"]["count"] == 1
    last = {c: row for (c, _), row in sorted(in_files(directory).minutes.items())}
    assert last["quiet"]["messages"] == 3
    again_ms = T0 + 8 * DAY_MS
    produce(kafka, again_ms, quiet=1)
    report = drain(kafka, **options)
    assert messages_in(report) == {"quiet": 1, "busy": 3}
    assert report["channels"]["quiet"]["verdict"] == "warming_up"
    assert report["totals"]["messages"] == 7
    # A silence that ends within the batch that would find it.
    produce(kafka, again_ms + 20 * DAY_MS, quiet=2, busy=1)
    report = drain(kafka, **options)
    assert messages_in(report) == {"quiet": 2, "busy": 1}
    assert report["totals"]["messages"] == 10
    assert_identities(report)
    assert drain(kafka, **options) == report


def test_repeated_batch_forgets_once(
    topic: Topic, drain: Drain, tmp_path: Path
) -> None:
    """A job that was killed after the batch's output and before its commit."""
    kafka = topic()
    produce(kafka, T0, quiet=3)
    drain(kafka)
    produce(kafka, T0 + 8 * DAY_MS, busy=1)
    report = drain(kafka)
    assert messages_in(report) == {"busy": 1}
    assert report["totals"]["messages"] == 4
    log = read_batch_log(tmp_path / "a")
    for name in (f"{log.committed}", f".{log.committed}.crc"):
        (tmp_path / "a" / "commits" / name).unlink()
    assert drain(kafka) == report
    assert read_batch_log(tmp_path / "a") == log


def test_one_batch_and_many_forget_the_same(topic: Topic, drain: Drain) -> None:
    """Although one batch spans the silence and what comes after it."""
    kafka = topic()
    for day in (0, 1, 9, 10, 30):
        produce(kafka, T0 + day * DAY_MS, town=1)
    produce(kafka, T0 + 33 * DAY_MS, square=2)
    produce(kafka, T0 + 39 * DAY_MS, square=1)
    whole = drain(kafka, "whole")
    assert messages_in(whole) == {"square": 3}
    assert whole["totals"]["messages"] == 8
    assert drain(kafka, "many", rows=1) == whole


def test_counters_of_other_never_fall_and_labels_become_free_at_a_start(
    topic: Topic, live: Live
) -> None:
    """A forgotten channel with a label leaves no trace, one of `other` stays in it."""
    kafka = topic()
    produce(kafka, T0, east=2)
    produce(kafka, T0 + 10, west=3)
    late_ms = T0 + 8 * DAY_MS

    def scraped(url: str) -> dict[str, float]:
        lines = httpx.get(f"{url}/metrics").text.splitlines()
        begin = 'sds_messages_total{channel="'
        found = (one.removeprefix(begin) for one in lines if one.startswith(begin))
        return {
            name: float(value) for name, value in (one.split('"} ') for one in found)
        }

    with live(kafka, label_budget=1) as job, status_server(job, "127.0.0.1", 0) as url:
        wait_until(job, lambda: len(job.board.snapshot.views["sds"].totals) == 2)
        assert scraped(url) == {"east": 2, "other": 3}
        produce(kafka, late_ms, south=4)
        wait_until(
            job, lambda: job.board.snapshot.views["sds"].totals.keys() == {"south"}
        )
        # While the job runs, nobody gets the place of the forgotten one.
        assert scraped(url) == {"other": 7}
    with live(kafka, label_budget=1) as job, status_server(job, "127.0.0.1", 0) as url:
        assert scraped(url) == {"other": 7}
        produce(kafka, late_ms + 1_000, north=1)
        wait_until(job, lambda: "north" in job.board.snapshot.views["sds"].totals)
        assert scraped(url) == {"north": 1, "other": 7}
        report = job.report(0)
    assert report["totals"]["messages"] == 10
    with live(kafka, label_budget=1) as job, status_server(job, "127.0.0.1", 0) as url:
        assert scraped(url) == {"north": 1, "other": 7}


def test_requested_channel_is_forgotten_by_a_running_job_and_at_a_start(
    topic: Topic, live: Live, drain: Drain, tmp_path: Path
) -> None:
    """Without a record in the topic; once, also if the channel is back at once."""
    kafka = topic()
    produce(kafka, T0, town=3, square=1)
    with live(kafka) as job:
        wait_until(job, lambda: len(job.board.snapshot.views["sds"].totals) == 2)
        register = ViewRegister(Ledger(tmp_path / "a" / "monitor" / LEDGER))
        assert register.keys() == ["sds:square", "sds:town"]
        register.request([("sds:town", FORGET)])
        wait_until(
            job, lambda: job.board.snapshot.views["sds"].totals.keys() == {"square"}
        )
        assert job.report(0)["totals"]["messages"] == 4
        assert_identities(job.report(0))
        produce(kafka, T0 + 5_000, town=1)
        wait_until(job, lambda: "town" in job.board.snapshot.views["sds"].totals)
        assert job.board.snapshot.views["sds"].totals["town"].messages == 1
    assert messages_in(drain(kafka)) == {"town": 1, "square": 1}
    register.request([("sds:square", FORGET), ("sds:none", FORGET)])
    report = drain(kafka)
    assert messages_in(report) == {"town": 1}
    assert report["totals"]["messages"] == 5
    assert report["totals"]["frames"]["content"] == 5
    position = read_batch_log(tmp_path / "a").position
    assert position is not None
    assert position.records == 5
    assert register.keys() == ["sds:town"]


def test_fewer_days_hold_for_channels_that_are_silent_already(
    topic: Topic, drain: Drain, tmp_path: Path, spark: SparkSession
) -> None:
    """A start reviews channels for which Spark has a later timeout, or none.

    A release that forgets nothing leaves them without one.
    """
    kafka = topic()
    produce(kafka, T0, quiet=1)
    produce(kafka, T0 + 2 * DAY_MS, busy=1)
    for days, left in ((0, {"quiet", "busy"}), (7, {"quiet", "busy"}), (1, {"busy"})):
        settings = job_settings(kafka, tmp_path / "a", forget_days=days)
        with running_job(spark, settings) as job:
            wait_for_end(job)
            assert job.board.snapshot.views["sds"].totals.keys() == left
