"""What the watch of the topic logs if a step fails for a reason that is not Kafka's."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import pytest

from connectors.kafka.offsets import TimedOffset
from streaming import topic_watch
from streaming.board import Board
from streaming.position import PartitionPosition, Position
from streaming.topic_watch import TopicEnds, TopicWatch
from tests.support.waiting import wait_for


class _Offsets:
    """Answers, except for the calls that fail; counts those."""

    def __init__(self, *failing: str) -> None:
        self.failing = set(failing)
        self.failures = 0

    def partitions(self) -> Sequence[int]:
        self.fail("partitions")
        return [0]

    def latest(self, partitions: Sequence[int]) -> Mapping[int, int]:
        return {0: 5}

    def written(self, partitions: Sequence[int]) -> Mapping[int, int]:
        return {0: 5}

    def newest(self, partitions: Sequence[int]) -> Mapping[int, TimedOffset]:
        return {0: TimedOffset(4, 1_000)}

    def broker_time_ms(self) -> int | None:
        self.fail("broker_time_ms")
        return None

    def commit(self, group: str, offsets: Mapping[int, int]) -> None:
        self.fail("commit")

    def close(self) -> None:
        pass

    def fail(self, call: str) -> None:
        if call in self.failing:
            self.failures += 1
            raise ValueError(call)


class _Tail:
    """Has no new records."""

    def read(self, begins: Mapping[int, int], ends: Mapping[int, int]) -> list[None]:
        return []

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(topic_watch, "_EVERY_S", 0.01)
    monkeypatch.setattr("streaming.clock_check._INTERVAL_S", 0.0)
    caplog.set_level(logging.INFO, logger="sds-monitor")


def _watch_of(offsets: _Offsets) -> TopicWatch:
    watch = TopicWatch(offsets, _Tail(), Board(), "group")  # type: ignore[arg-type]
    watch.follow(Position(partitions={0: PartitionPosition(3)}))
    watch.start()
    return watch


@pytest.mark.parametrize(
    ("call", "line"),
    [
        ("partitions", "the end of the topic cannot be read: ValueError('partitions')"),
        (
            "broker_time_ms",
            "clocks cannot be compared with Kafka's: ValueError('broker_time_ms')",
        ),
        ("commit", "offsets cannot be committed: ValueError('commit')"),
    ],
)
def test_failed_step_is_logged_once_by_its_own_name(
    call: str, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    """However often it fails; the traceback is logged with it."""
    offsets = _Offsets(call)
    watch = _watch_of(offsets)
    try:
        wait_for(lambda: offsets.failures >= 3)
    finally:
        watch.close()
    assert [record.getMessage() for record in caplog.records] == [line]
    assert caplog.records[0].exc_info is not None


def test_step_that_fails_again_after_a_success_is_logged_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its success in between is not logged."""
    offsets = _Offsets("broker_time_ms")
    watch = _watch_of(offsets)
    try:
        wait_for(lambda: offsets.failures >= 2)
        offsets.failing.clear()
        ends = watch.ends
        wait_for(lambda: watch.ends is not ends)
        ends = watch.ends
        wait_for(lambda: watch.ends is not ends)
        offsets.failing.add("broker_time_ms")
        wait_for(lambda: len(caplog.records) == 2)
    finally:
        watch.close()
    assert {record.getMessage() for record in caplog.records} == {
        "clocks cannot be compared with Kafka's: ValueError('broker_time_ms')"
    }


@pytest.mark.parametrize(
    ("newest", "lag_s"),
    [
        # The job has read both partitions to their ends.
        ({0: TimedOffset(4, 9_000), 1: TimedOffset(2, 400_000)}, 2.0),
        # Partition 1 has a new record.
        ({0: TimedOffset(4, 9_000), 1: TimedOffset(3, 13_000)}, 6.0),
        # A partition has been added.
        ({0: TimedOffset(4, 9_000), 2: TimedOffset(0, 14_000)}, 7.0),
    ],
)
def test_entry_that_was_read_and_did_not_count_is_no_lag(
    newest: Mapping[int, TimedOffset], lag_s: float
) -> None:
    """It was from the future when it was read, or is the end of a transaction."""
    board = Board()
    watch = TopicWatch(_Offsets(), _Tail(), board, None)  # type: ignore[arg-type]
    watch.ends = TopicEnds(500_000, {}, newest, {})
    partitions = {0: PartitionPosition(5, 9_000), 1: PartitionPosition(3, 7_000)}
    watch.follow(Position(7_000, partitions=partitions))
    assert board.snapshot.job.event_time_lag_seconds == lag_s
