"""Decides when a failed query is restarted."""

from __future__ import annotations

from streaming.failure import JobFailed

_FIRST_S = 1.0
_LONGEST_S = 60.0
"""First and maximum time to wait before a restart, seconds.

Each wait is twice as long as the previous wait, up to the maximum.
"""

_STEADY_S = 120.0
"""If a query has worked for this time, seconds, its next failure counts as first."""


class Retries:
    """Computes how long to wait after each failure of a query.

    The class distinguishes four kinds of failure:

    - The batch is too large: the next start plans a smaller batch.
    - The failure is temporary: Kafka or the topic cannot be reached.
    - The failure lasts until a person removes the cause.
    - The kind is unknown. If the query has finished a batch since its start, the next
      start may succeed; otherwise, the next start is assumed to fail in the same way.

    `longest_s` is the maximum time, seconds, from the first of several consecutive
    failures to the last restart. If it is None, the time is unlimited. If it is 0, the
    query is restarted only if its batch is too large.
    """

    def __init__(self, longest_s: float | None = None) -> None:
        self._longest_s = float("inf") if longest_s is None else longest_s
        self._wait_s = _FIRST_S
        # Time after which the query is not restarted; None before the first failure.
        self._give_up_s: float | None = None
        # Start of the newest query, and the last time at which the query was known to
        # work.
        self._started_s = self._worked_s = float("-inf")

    def note_start(self, now_s: float) -> None:
        """Record that a query starts at `now_s`, seconds of a monotonic clock."""
        self._started_s = self._worked_s = now_s

    def note_work(self, now_s: float) -> None:
        """Record that the query works: see `streaming.progress.Progress.works`."""
        self._worked_s = now_s

    def wait_after(
        self, failure: JobFailed, has_worked: bool, now_s: float
    ) -> float | None:
        """Return the wait before a restart, seconds; None if no restart is allowed.

        `has_worked` says whether the query has finished a batch since its start.
        """
        if failure.too_large:
            # Each restart plans a smaller batch, and a few restarts suffice, so no time
            # limit applies.
            self._give_up_s = None
            return _FIRST_S
        if not (has_worked if failure.passes is None else failure.passes):
            return None
        worked_s = self._worked_s - self._started_s
        if self._give_up_s is None or worked_s >= _STEADY_S:
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
