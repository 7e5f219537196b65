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
        found.append(retries.wait_after(AWAY, False, now_s))
    return found


def test_wait_doubles_up_to_a_minute() -> None:
    """For ever, if the operator sets no limit."""
    assert waits(Retries(), [60.0 * n for n in range(9)]) == [
        1, 2, 4, 8, 16, 32, 60, 60, 60,
    ]  # fmt: skip


def test_query_that_worked_for_long_begins_a_new_row_of_failures() -> None:
    """With a short wait, and a new limit."""
    retries = Retries(100)
    assert waits(retries, [0, 10, 20]) == [1, 2, 4]
    retries.note_start(30)
    retries.note_work(150)
    assert retries.wait_after(AWAY, True, 150) == 1
    assert not retries.is_over(249)
    assert retries.is_over(250)


def test_query_that_only_waited_for_kafka_does_not_begin_a_new_row() -> None:
    """It waits for --kafka-timeout, 120 s, and fails; --retry-for ends nevertheless."""
    retries = Retries(300)
    found = []
    for now_s in (0.0, 125.0, 250.0, 375.0):
        retries.note_start(now_s)
        found.append(retries.wait_after(AWAY, False, now_s + 121))
    assert found == [1, 2, 4, None]


def test_time_after_the_last_work_is_not_steady() -> None:
    """A query that worked for some seconds and then waited for minutes."""
    retries = Retries(300)
    assert waits(retries, [0]) == [1]
    retries.note_start(1)
    retries.note_work(20)
    assert retries.wait_after(AWAY, True, 200) == 2


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
        (JobFailed("no longer has the unread offsets", passes=False), True, False),
        (JobFailed("was recreated", final=True, passes=False), True, False),
    ],
)
def test_only_a_failure_that_can_pass_is_followed_by_a_start(
    failure: JobFailed, has_worked: bool, passes: bool
) -> None:
    """An unforeseen one, if the query has finished a batch since its start."""
    assert (Retries().wait_after(failure, has_worked, 0) is not None) is passes


def test_batch_that_is_too_large_is_planned_again_without_a_limit_of_time() -> None:
    """Also if the operator wants no retries: few starts make it small enough."""
    too_large = JobFailed("too large", passes=True, too_large=True)
    for longest_s, start_s in ((0.0, 5.0), (60.0, 500.0)):
        retries = Retries(longest_s)
        if longest_s:
            assert waits(retries, [0]) == [1]
        retries.note_start(start_s)
        for now_s in (start_s + 1, start_s + 300):
            assert retries.wait_after(too_large, False, now_s) == 1
            assert not retries.is_over(now_s)
