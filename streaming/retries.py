"""Decides when a query that failed is started again."""

from __future__ import annotations

from streaming.failure import JobFailed

_FIRST_S = 1.0
_LONGEST_S = 60.0
"""First and longest wait before a start, seconds; each is twice the one before."""

_STEADY_S = 120.0
"""A query that finished triggers for so long begins a new row of failures, seconds."""


class Retries:
    """Counts the failures in a row of one query.

    Three kinds of failure are told apart:

    - It passes: Kafka or the topic cannot be reached.
    - It does not pass without a person.
    - That is not known. If the query has finished a batch since its start, another
      start may do so too; else it is taken to fail in the same way.

    Args:
        longest_s: Seconds from the first failure of a row to the last start; None for
            no limit, 0 for no further start.
    """

    def __init__(self, longest_s: float | None = None) -> None:
        self._longest_s = float("inf") if longest_s is None else longest_s
        self._wait_s = _FIRST_S
        # None before the first failure of a row.
        self._give_up_s: float | None = None
        self._started_s = 0.0
        self._has_worked = False
        self._triggers = 0
        # When the query was last seen to have finished a trigger.
        self._ran_until_s = 0.0

    def note_start(self, now_s: float) -> None:
        """Take notice of a start, at a time in seconds of a monotonic clock."""
        self._started_s = self._ran_until_s = now_s
        self._has_worked = False
        self._triggers = 0

    def note_progress(self, batches: int, triggers: int, now_s: float) -> None:
        """Take notice of what the query has done since its start.

        Args:
            batches: Number of batches that it has finished.
            triggers: The same with the triggers that found no record.
            now_s: Time in seconds of the monotonic clock.
        """
        self._has_worked = batches > 0
        if triggers > self._triggers:
            self._triggers, self._ran_until_s = triggers, now_s

    def wait_after(self, failure: JobFailed, now_s: float) -> float | None:
        """Return how long to wait before another start, seconds; None for no start.

        Args:
            failure: How the query has ended.
            now_s: Time in seconds of the monotonic clock.
        """
        passes = self._has_worked if failure.passes is None else failure.passes
        if not passes:
            return None
        # The time in which the query only waited for Kafka does not count.
        ran_s = self._ran_until_s - self._started_s
        if self._give_up_s is None or ran_s >= _STEADY_S:
            self._wait_s = _FIRST_S
            self._give_up_s = now_s + self._longest_s
        if self.is_over(now_s):
            return None
        wait_s = self._wait_s
        self._wait_s = min(2 * wait_s, _LONGEST_S)
        return wait_s

    def is_over(self, now_s: float) -> bool:
        """Whether it is too late for another start."""
        return self._give_up_s is not None and now_s >= self._give_up_s
