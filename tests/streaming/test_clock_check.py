"""How a job compares its clock, with clocks that are given."""

from __future__ import annotations

import logging

import pytest

from connectors.kafka.settings import KafkaUnreachable
from sds_core.observer.clock import ClockFigures, NewRecord
from streaming.clock_check import ClockCheck

NOW_MS = 1_786_276_990_000


class Clocks:
    """A machine's clock and Kafka's, and a check that compares them.

    Attributes:
        passed_ms: Time since the beginning, milliseconds.
        behind_ms: By how much the machine's clock is behind; None if Kafka does not
            tell its time.
        answer_ms: How long Kafka takes to answer, milliseconds.
        asked: How often it was asked.
        check: The check.
    """

    def __init__(self) -> None:
        self.passed_ms = 0
        self.behind_ms: int | None = 0
        self.answer_ms = 0
        self.asked = 0
        self.check = ClockCheck(
            self._kafka_ms, self._wall_ms, lambda: self.passed_ms / 1000
        )

    def compare(self, behind_ms: int | None) -> ClockFigures:
        """Compare half a minute later; returns the result."""
        self.passed_ms += 30_000
        self.behind_ms = behind_ms
        self.check.compare()
        return self.check.figures

    def _wall_ms(self) -> int:
        return NOW_MS + self.passed_ms

    def _kafka_ms(self) -> int | None:
        self.asked += 1
        self.passed_ms += self.answer_ms // 2
        told_ms = self._wall_ms()
        self.passed_ms += self.answer_ms // 2
        return None if self.behind_ms is None else told_ms + self.behind_ms


@pytest.fixture
def clocks() -> Clocks:
    """Clocks that agree."""
    return Clocks()


@pytest.mark.parametrize("behind_ms", [0, 120_000, -120_000])
def test_difference_is_that_in_the_middle_of_the_question(
    clocks: Clocks, behind_ms: int
) -> None:
    """However long the answer takes, within limits."""
    clocks.answer_ms = 1_800
    assert clocks.compare(behind_ms).behind_ms == behind_ms


def test_slow_answer_does_not_count(clocks: Clocks) -> None:
    """The difference from before stays."""
    assert clocks.compare(7_000).behind_ms == 7_000
    clocks.answer_ms = 2_400
    assert clocks.compare(9_000).behind_ms == 7_000


def test_difference_is_forgotten_if_all_answers_are_slow(clocks: Clocks) -> None:
    """After five minutes new records count instead."""
    clocks.compare(7_000)
    clocks.answer_ms = 2_400
    found = [clocks.compare(0).behind_ms for _ in range(12)]
    assert found[:8] == [7_000] * 8
    assert found[-1] is None


def test_kafka_is_asked_every_half_minute(clocks: Clocks) -> None:
    """Not each time that the job looks at its figures."""
    for _ in range(90):
        clocks.check.compare()
        clocks.passed_ms += 1_000
    assert clocks.asked == 3


def test_kafka_that_is_away_leaves_the_difference(clocks: Clocks) -> None:
    """It is asked again half a minute later."""
    clocks.compare(7_000)

    def away() -> int:
        raise KafkaUnreachable("broker:9092")

    clocks.check = ClockCheck(away, lambda: NOW_MS, lambda: 0.0)
    with pytest.raises(KafkaUnreachable):
        clocks.check.compare()
    clocks.check.compare()
    assert clocks.check.figures == ClockFigures()


def test_each_change_is_logged_once(
    clocks: Clocks, caplog: pytest.LogCaptureFixture
) -> None:
    """From 5 s on as a warning, from 30 s on as an error with what follows from it."""
    with caplog.at_level(logging.INFO):
        for behind_ms in (100, 6_000, 6_100, 120_000, 119_000, 7_000, 10, 10):
            clocks.compare(behind_ms)
    behind = "this machine's clock is {} s behind Kafka's: set both clocks by NTP"
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", behind.format("6.0")),
        (
            "ERROR",
            f"{behind.format('120.0')}; records that are more than a minute in the "
            "future become dead letters",
        ),
        ("WARNING", behind.format("7.0")),
        ("INFO", "this machine's clock no longer seems to differ from other clocks"),
    ]


def test_records_ahead_are_logged_if_kafka_does_not_tell_its_time(
    clocks: Clocks, caplog: pytest.LogCaptureFixture
) -> None:
    """With both causes that this may have."""
    clocks.compare(None)
    clocks.check.observe(NewRecord("tap", NOW_MS + 40_000, NOW_MS) for _ in range(3))
    assert clocks.check.figures == ClockFigures(None, 40_000, {"tap": 40_000})
    (record,) = caplog.records
    assert "it is slow, or the clock of a tap is fast" in record.getMessage()
