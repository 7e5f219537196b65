"""The verdict on a channel over a sliding window (observer model, section 8)."""

from __future__ import annotations

import msgspec

from sds_core.observer.settings import ObserverSettings
from sds_core.observer.totals import Verdict

_BUCKET_MS = 1_000


class HealthState(msgspec.Struct, array_like=True):
    """What happened lately.

    Attributes:
        first_ms: The channel's clock at its first record.
        last_content_ms: The clock at its latest content frame.
        last_expired_ms: When a repair episode last expired.
        losses: When each loss that is not retracted was found, by fingerprint.
        ended: Messages whose deadline fell in a second, and how many of them were
            unacknowledged, by the second's end in Unix ms, in order.
    """

    first_ms: int | None = None
    last_content_ms: int | None = None
    last_expired_ms: int | None = None
    losses: dict[int, int] = {}
    ended: dict[int, tuple[int, int]] = {}


class Health:
    """Judges a channel by what happened in the window before its clock."""

    def __init__(self, settings: ObserverSettings, state: HealthState) -> None:
        self._settings = settings
        self._state = state

    def record(self, clock_ms: int) -> None:
        """A frame of the channel was read."""
        if self._state.first_ms is None:
            self._state.first_ms = clock_ms

    def in_warm_up(self, clock_ms: int) -> bool:
        """Whether the channel's first seconds last, in which no gap opens."""
        first_ms = self._state.first_ms
        return first_ms is None or clock_ms <= first_ms + self._settings.warm_up_ms

    def content(self, clock_ms: int) -> None:
        """A content frame was seen."""
        self._state.last_content_ms = clock_ms

    def deadline_passed(self, deadline_ms: int, unacknowledged: bool) -> None:
        """The deadline of one message has passed."""
        end_ms = -(-deadline_ms // _BUCKET_MS) * _BUCKET_MS
        messages, missed = self._state.ended.get(end_ms, (0, 0))
        self._state.ended[end_ms] = (messages + 1, missed + unacknowledged)

    def lost(self, key: int, time_ms: int) -> None:
        """A dependency was found lost."""
        self._state.losses[key] = time_ms

    def retracted(self, key: int) -> None:
        """A dependency that was found lost has come."""
        self._state.losses.pop(key, None)

    def expired(self, time_ms: int) -> None:
        """A repair episode expired."""
        latest = self._state.last_expired_ms
        self._state.last_expired_ms = (
            time_ms if latest is None else max(latest, time_ms)
        )

    def judge(self, clock_ms: int, gaps_open: int) -> tuple[Verdict, str]:
        """The verdict and its reason as of the clock."""
        state = self._state
        self._forget(clock_ms)
        if state.first_ms is None or (
            clock_ms - state.first_ms < self._settings.warm_up_ms
        ):
            return Verdict.WARMING_UP, "warming_up"
        if state.losses:
            return Verdict.FAILING, "lost"
        messages = sum(count for count, _ in state.ended.values())
        missed = sum(count for _, count in state.ended.values())
        if missed * 100 > messages * self._settings.unacknowledged_percent:
            return Verdict.FAILING, "unacknowledged"
        if gaps_open:
            return Verdict.DEGRADED, "recovering"
        if missed:
            return Verdict.DEGRADED, "unacknowledged"
        if state.last_expired_ms is not None:
            return Verdict.DEGRADED, "repair_expired"
        if state.last_content_ms is None:
            return Verdict.QUIET, "quiet"
        return Verdict.OK, "ok"

    def next_change_ms(self) -> int | None:
        """The earliest time at which the verdict may change by itself.

        A deadline: the change shows when the clock has passed it.
        """
        state = self._state
        ends = [*state.losses.values()]
        if any(missed for _, missed in state.ended.values()):
            ends.append(next(iter(state.ended)))
        if state.last_expired_ms is not None:
            ends.append(state.last_expired_ms)
        if state.last_content_ms is not None:
            ends.append(state.last_content_ms)
        return min(ends) + self._settings.verdict_window_ms if ends else None

    def warm_up_end_ms(self) -> int | None:
        """The last moment of the warm-up; None before the first record."""
        first_ms = self._state.first_ms
        return None if first_ms is None else first_ms + self._settings.warm_up_ms - 1

    def state(self) -> HealthState:
        """Form for the blob."""
        return self._state

    def _forget(self, clock_ms: int) -> None:
        """Forget what lies before the window; it begins just after its edge."""
        state = self._state
        edge_ms = clock_ms - self._settings.verdict_window_ms
        for key in [key for key, time in state.losses.items() if time < edge_ms]:
            del state.losses[key]
        for end_ms in [end for end in state.ended if end < edge_ms]:
            del state.ended[end_ms]
        if state.last_expired_ms is not None and state.last_expired_ms < edge_ms:
            state.last_expired_ms = None
        if state.last_content_ms is not None and state.last_content_ms < edge_ms:
            state.last_content_ms = None
