"""Plans that take long, because Kafka does not answer or for another reason."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any

import pytest

from connectors.kafka.offsets import Topic
from connectors.kafka.settings import KafkaSettings
from streaming.position import Position
from streaming.settings import SourceSettings
from streaming.source import SdsFramesReader
from tests.support.batches import WALL_MS
from tests.support.topics import ListedTopic


class LateTopic:
    """A topic that answers late, a reader of the topic, and the wall clock of both.

    Attributes:
        waits_ms: How long the next plans wait for the topic, ms. While a plan waits, a
            tap writes a record to partition 0.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, partitions: int) -> None:
        self.wall_ms = WALL_MS
        self.waits_ms: Iterator[int] = iter(())
        self.plans = 0
        self.topic = ListedTopic(*[[WALL_MS]] * partitions)
        self._reader = SdsFramesReader(SourceSettings(KafkaSettings("", "frames")))
        self._end: dict[str, Any] = Position().to_json()
        monkeypatch.setattr("streaming.source._wall_ms", lambda: self.wall_ms)
        monkeypatch.setattr(self._reader, "_admission", self.topic.admission)
        monkeypatch.setattr(self.topic, "describe", self._describe)

    def plan(self) -> Position:
        """Plan the next batch, and return its end."""
        self._end = self._reader.latestOffset(self._end, None)  # type: ignore[arg-type]
        return Position.from_json(self._end)

    def _describe(self) -> Topic:
        self.plans += 1
        if wait_ms := next(self.waits_ms, 0):
            self.wall_ms += wait_ms
            self.topic.append(0, self.wall_ms)
        return Topic(None, self.topic.partitions())


@pytest.mark.parametrize("outages", [1, 2])
def test_record_that_is_written_while_a_plan_waits_is_not_from_the_future(
    monkeypatch: pytest.MonkeyPatch, outages: int
) -> None:
    """Kafka does not answer, taps buffer their records, and write them before it."""
    late = LateTopic(monkeypatch, 1)
    late.plan()
    late.waits_ms = repeat(100_000, outages)
    end = late.plan()
    assert end.clock_ms == end.admitted_ms == WALL_MS + outages * 100_000


def test_partition_is_not_idle_because_kafka_did_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Taps write what they have buffered to one partition after the other."""
    late = LateTopic(monkeypatch, 2)
    assert late.plan().clock_ms == WALL_MS
    late.waits_ms = iter([100_000])
    assert late.plan().clock_ms == WALL_MS
    late.wall_ms += 30_000
    assert late.plan().clock_ms == WALL_MS
    late.topic.append(1, WALL_MS + 50_000)
    assert late.plan().clock_ms == WALL_MS + 50_000


def test_partition_is_idle_30_s_after_kafka_has_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If its taps have written nothing until then."""
    late = LateTopic(monkeypatch, 2)
    late.plan()
    late.waits_ms = iter([100_000])
    late.plan()
    late.wall_ms += 30_001
    assert late.plan().clock_ms == WALL_MS + 100_000


def test_plans_that_always_take_long_are_not_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only the first is, as after an outage; a silent partition counts as idle."""
    late = LateTopic(monkeypatch, 2)
    late.waits_ms = repeat(11_000)
    made = []
    for _ in range(6):
        end = late.plan()
        made.append(late.plans)
    assert made == [3, 4, 5, 6, 7, 8]
    assert end.clock_ms > WALL_MS + 30_000
