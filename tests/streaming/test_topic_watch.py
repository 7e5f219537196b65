"""The watch of the topic, on a real broker."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import replace

import pytest
from kafka import KafkaAdminClient

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_topic
from streaming.board import Board
from streaming.position import PartitionPosition, Position
from streaming.topic_watch import watched_topic
from tests.support.kafka import NOBODY, TopicMaker, refused_sockets_stay_open
from tests.support.waiting import wait_for

pytestmark = pytest.mark.kafka


def test_answers_of_kafka_are_put_on_the_board(kafka_topic: TopicMaker) -> None:
    """Again and again, with how far the topic reaches."""
    topic = kafka_topic()
    board = Board()
    begin_ms = time.time_ns() // 1_000_000
    with watched_topic(topic.settings, board, None) as watch:
        wait_for(lambda: watch.ends is not None)
        first = board.snapshot.job.kafka
        topic.write(time_ms=5_000)
        wait_for(lambda: watch.ends is not None and watch.ends.ends == {0: 1})
        assert watch.ends is not None
        assert watch.ends.newest[0].timestamp_ms == 5_000
        assert first.answered_ms is not None
        assert first.answered_ms >= begin_ms
        assert board.snapshot.job.kafka.answered_s > first.answered_s


def test_silence_is_measured_by_what_arrives(kafka_topic: TopicMaker) -> None:
    """Whatever the records' times are; the watch begins a new measurement."""
    topic = kafka_topic()
    topic.write(time_ms=5_000)
    board = Board()
    begin_s = time.monotonic()
    with watched_topic(topic.settings, board, None) as watch:
        wait_for(lambda: watch.ends is not None)
        first_s = board.snapshot.job.arrivals.grew_s
        assert first_s is not None
        assert first_s >= begin_s
        answered_s = board.snapshot.job.kafka.answered_s
        wait_for(lambda: board.snapshot.job.kafka.answered_s > answered_s)
        assert board.snapshot.job.arrivals.grew_s == first_s
        topic.write(time_ms=1_000)
        wait_for(lambda: (board.snapshot.job.arrivals.grew_s or 0) > first_s)


def test_clocks_of_taps_are_measured_at_the_end_of_the_topic(
    kafka_topic: TopicMaker,
) -> None:
    """Each one, also of records that become dead letters, but not of a backlog."""
    topic = kafka_topic(3)
    offsets_ms = {"good": 0, "slow": -90_000, "fast": 90_000}

    def heartbeats(taps: Mapping[str, int]) -> None:
        now_ms = time.time_ns() // 1_000_000
        for partition in range(3):
            for tap, offset_ms in taps.items():
                headers = [("observer", tap.encode()), ("kind", b"heartbeat")]
                topic.write(
                    partition=partition, time_ms=now_ms + offset_ms, headers=headers
                )

    board = Board()
    for _ in range(3):
        heartbeats({"old": -3_600_000})
    with watched_topic(topic.settings, board, None) as watch:
        wait_for(lambda: watch.ends is not None)

        def are_known() -> bool:
            heartbeats(offsets_ms)
            return len(board.snapshot.job.clock.taps) == len(offsets_ms)

        wait_for(are_known)
    found = board.snapshot.job.clock.taps
    assert found.keys() == offsets_ms.keys()
    for tap, offset_ms in offsets_ms.items():
        assert -3_000 < found[tap] - offset_ms <= 100
    assert board.snapshot.job.clock.skewed_taps.keys() == {"slow", "fast"}


@pytest.mark.parametrize("commits", [True, False])
def test_transaction_that_hangs_does_not_look_like_an_idle_topic(
    kafka_topic: TopicMaker, monkeypatch: pytest.MonkeyPatch, commits: bool
) -> None:
    """Its records and those after it are behind until it ends, one way or the other."""
    monkeypatch.setattr("streaming.topic_watch.WITHHELD_S", 0.5)
    topic = kafka_topic()
    topic.write(time_ms=1_000)
    board = Board()
    with watched_topic(topic.settings, board, None) as watch:
        watch.follow(Position(1_001, partitions={0: PartitionPosition(1)}))
        with topic.transaction([2_000, 3_000], commit=commits):
            topic.write(time_ms=4_000)
            wait_for(lambda: board.snapshot.job.records_withheld == 3)
            assert board.snapshot.job.records_behind == 3
            assert not board.snapshot.ok
        wait_for(lambda: board.snapshot.job.records_withheld == 0)
        watch.follow(Position(4_001, partitions={0: PartitionPosition(5)}))
        wait_for(lambda: board.snapshot.job.records_behind == 0)


def test_offsets_are_committed_at_the_latest_at_the_end(
    kafka_topic: TopicMaker,
) -> None:
    """Only the newest ones count."""
    topic = kafka_topic()
    for _ in range(3):
        topic.write()
    group = f"{topic.settings.topic}-watch"
    with watched_topic(topic.settings, Board(), group) as watch:
        wait_for(lambda: watch.ends is not None)
        for offset in (1, 3):
            watch.follow(Position(partitions={0: PartitionPosition(offset)}))
    admin = KafkaAdminClient(bootstrap_servers=topic.settings.bootstrap)
    found = admin.list_group_offsets(group)[group]
    admin.close()
    assert [at.offset for at in found.values()] == [3]


def test_lag_is_measured_from_the_newest_batch(kafka_topic: TopicMaker) -> None:
    """With each answer, although nothing else happens."""
    topic = kafka_topic()
    topic.write(time_ms=5_000)
    board = Board()
    with watched_topic(topic.settings, board, None) as watch:
        wait_for(lambda: watch.ends is not None)
        assert board.snapshot.job.event_time_lag_seconds is None
        watch.follow(Position(5_000, partitions={0: PartitionPosition(1)}))
        assert board.snapshot.job.event_time_lag_seconds == 0
        topic.write(time_ms=12_500)
        wait_for(lambda: board.snapshot.job.records_behind == 1)
        assert board.snapshot.job.event_time_lag_seconds == 7.5


@refused_sockets_stay_open
def test_reason_why_kafka_does_not_answer_is_put_on_the_board() -> None:
    """It has never answered: known is since when it is asked."""
    board = Board()
    with watched_topic(NOBODY, board, None) as watch:
        wait_for(lambda: board.snapshot.job.kafka.cause)
        assert "127.0.0.1:1 cannot be reached" in board.snapshot.job.kafka.cause
        assert board.snapshot.job.kafka.answered_ms is None
        assert board.snapshot.job.kafka.is_awaited
        assert board.snapshot.as_of(time.monotonic() + 16).job.kafka.is_stale
        assert watch.ends is None
        watch.check()


@refused_sockets_stay_open
def test_broker_that_hangs_does_not_answer() -> None:
    """It takes connections and requests, and answers later."""
    board = Board()

    def is_stale() -> bool:
        return board.snapshot.as_of(time.monotonic()).job.kafka.is_stale

    with EmbeddedBroker() as broker:
        settings = KafkaSettings(broker.bootstrap, "frames")
        ensure_topic(settings, settings.topic)
        with watched_topic(settings, board, None) as watch:
            wait_for(lambda: watch.ends is not None)
            os.kill(broker.pid, signal.SIGSTOP)
            try:
                wait_for(is_stale)
            finally:
                os.kill(broker.pid, signal.SIGCONT)
            wait_for(lambda: not is_stale())


def test_missing_topic_is_an_answer_too(kafka_topic: TopicMaker) -> None:
    """The query ends with that error: Kafka itself is there."""
    settings: KafkaSettings = replace(kafka_topic().settings, topic="no-such-topic")
    board = Board()
    with watched_topic(settings, board, None):
        wait_for(lambda: board.snapshot.job.kafka.cause)
        assert "no-such-topic does not exist" in board.snapshot.job.kafka.cause
        assert board.snapshot.job.kafka.answered_ms is not None
