"""When a query that failed is started again."""

from __future__ import annotations

import pytest

from streaming.failure import JobFailed
from streaming.retries import Retries

AWAY = JobFailed("no broker", unreachable=True, passes=True)
UNFORESEEN = JobFailed("ValueError: no such thing")


def waits(retries: Retries, times_s: list[float]) -> list[float | None]:
    """How long to wait after failures at these times, each soon after its start."""
    found = []
    for now_s in times_s:
        retries.note_start(now_s - 1)
        found.append(retries.wait_after(AWAY, now_s))
    return found


def test_wait_doubles_up_to_a_minute() -> None:
    """For ever, if the operator sets no limit."""
    assert waits(Retries(), [60.0 * n for n in range(9)]) == [
        1, 2, 4, 8, 16, 32, 60, 60, 60,
    ]  # fmt: skip


@pytest.mark.parametrize("batches", [0, 3])
def test_query_that_ran_for_long_begins_a_new_row_of_failures(batches: int) -> None:
    """With a short wait, and a new limit, also if the topic was quiet."""
    retries = Retries(100)
    assert waits(retries, [0, 10, 20]) == [1, 2, 4]
    retries.note_start(30)
    for triggers, now_s in enumerate((31, 90, 150), 1):
        retries.note_progress(batches, triggers, now_s)
    assert retries.wait_after(AWAY, 160) == 1
    assert not retries.is_over(259)
    assert retries.is_over(260)


@pytest.mark.parametrize("batches", [0, 1])
def test_query_that_waits_for_kafka_for_long_stays_in_its_row(batches: int) -> None:
    """`--kafka-timeout` may be as long as a steady run."""
    retries = Retries(300)
    assert waits(retries, [0]) == [1]
    for now_s in (130, 260):
        retries.note_start(now_s - 125)
        for polled_s in range(now_s - 124, now_s):
            retries.note_progress(batches, batches, polled_s)
        assert retries.wait_after(AWAY, now_s) is not None
    assert retries.wait_after(AWAY, 301) is None


def test_operator_limits_the_time_of_a_row() -> None:
    """It is counted from the first failure; before there is none."""
    retries = Retries(60)
    assert not retries.is_over(1_000_000)
    assert waits(retries, [0, 59, 60]) == [1, 2, None]
    assert retries.is_over(60)


def test_without_any_time_there_is_no_further_start() -> None:
    """The job ends with its code, as if nothing started it again."""
    assert waits(Retries(0), [5]) == [None]


@pytest.mark.parametrize(
    ("failure", "has_worked", "passes"),
    [
        (AWAY, False, True),
        (UNFORESEEN, True, True),
        (UNFORESEEN, False, False),
        (JobFailed("no longer holds offsets", passes=False), True, False),
        (JobFailed("was made anew", final=True, passes=False), True, False),
    ],
)
def test_only_a_failure_that_can_pass_is_followed_by_a_start(
    failure: JobFailed, has_worked: bool, passes: bool
) -> None:
    """An unforeseen one, if the query has finished a batch since its start."""
    retries = Retries()
    retries.note_start(0)
    retries.note_progress(int(has_worked), 1, 1)
    assert (retries.wait_after(failure, 2) is not None) is passes
