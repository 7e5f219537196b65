"""Verdict on a channel over a sliding window (docs/figures.md, 8)."""

from __future__ import annotations

from itertools import islice

import msgspec

from sds_core.observer.deadlines import later
from sds_core.observer.settings import ObserverSettings
from sds_core.observer.verdict import Verdict

_BUCKET_MS = 1_000

_NEVER = 1 << 62

_MOST_LOSSES = 2_000
"""Losses of each kind that are kept, the latest: any one in the window decides."""


class HealthState(msgspec.Struct, array_like=True):
    """Events in the window, and the verdict. Times are clocks in Unix ms.

    Attributes:
        first_ms: Clock at the channel's first record; None before it.
        last_content_ms: Clock at the latest content frame; None if there is none in
            the window.
        last_expired_ms: When the latest repair episode expired; None as above.
        losses: When each lost message was found, by fingerprint; without those that
            were retracted.
        ended: Number of messages whose deadline fell in a second, and how many of them
            were unacknowledged, by the end of the second, ascending.
        undelivered: When each lost delivery was found, by order of the message and
            participant index; without those that were retracted.
        last_recovered_ms: When the latest delivery recovered; None as above.
        saturated: Event time of the newest filter, by participant index, of each
            participant whose filter has a false-positive rate over the limit.
        verdict, reason: The current verdict and its reason.
        since_ms: When the verdict began; None before the first.
    """

    first_ms: int | None = None
    last_content_ms: int | None = None
    last_expired_ms: int | None = None
    losses: dict[int, int] = {}
    ended: dict[int, tuple[int, int]] = {}
    undelivered: dict[int, dict[int, int]] = {}
    last_recovered_ms: int | None = None
    saturated: dict[int, int] = {}
    verdict: Verdict = Verdict.WARMING_UP
    reason: str = "warming_up"
    since_ms: int | None = None


class Health:
    """Judges a channel by the events in the window before its clock."""

    def __init__(self, settings: ObserverSettings, state: HealthState) -> None:
        self._settings = settings
        self._state = state
        self._messages = sum(count for count, _ in state.ended.values())
        self._missed = sum(missed for _, missed in state.ended.values())
        self._undelivered = sum(map(len, state.undelivered.values()))
        # A lower bound: no event leaves the window before it.
        self._edge_ms = self._next_edge_ms()

    def record(self, clock_ms: int) -> None:
        """Record a frame of the channel."""
        if self._state.first_ms is None:
            self._state.first_ms = clock_ms
            self._edge_ms = min(self._edge_ms, self._warm_up_end_ms())

    def in_warm_up(self, clock_ms: int) -> bool:
        """Whether the channel is in its warm-up, in which no gap opens."""
        first_ms = self._state.first_ms
        return first_ms is None or clock_ms <= first_ms + self._settings.warm_up_ms

    def content(self, clock_ms: int) -> None:
        """Record a content frame."""
        self._state.last_content_ms = clock_ms
        self._leaves_after(clock_ms)

    def deadline_passed(self, deadline_ms: int, unacknowledged: bool) -> None:
        """Record that the deadline of a message has passed."""
        end_ms = -(-deadline_ms // _BUCKET_MS) * _BUCKET_MS
        messages, missed = self._state.ended.get(end_ms, (0, 0))
        self._state.ended[end_ms] = (messages + 1, missed + unacknowledged)
        self._messages += 1
        self._missed += unacknowledged
        # An acknowledged message that leaves the window changes the ratio too.
        self._leaves_after(next(iter(self._state.ended)))

    def lost(self, key: int, time_ms: int) -> None:
        """Record a lost dependency."""
        losses = self._state.losses
        losses[key] = time_ms
        # Many at once, since each search for the first steps over those deleted.
        if len(losses) > 2 * _MOST_LOSSES:
            for old in list(islice(losses, _MOST_LOSSES)):
                del losses[old]
        self._leaves_after(time_ms)

    def retracted(self, key: int) -> None:
        """Remove the loss of a dependency that has arrived."""
        self._state.losses.pop(key, None)

    def undelivered(self, order: int, by: int, time_ms: int) -> None:
        """Record a message that is lost to a participant."""
        undelivered = self._state.undelivered
        undelivered.setdefault(order, {})[by] = time_ms
        self._undelivered += 1
        if self._undelivered > 2 * _MOST_LOSSES:
            pairs = ((one, who) for one, lost in undelivered.items() for who in lost)
            for old in list(islice(pairs, _MOST_LOSSES)):
                self.delivered(*old)
        self._leaves_after(time_ms)

    def delivered(self, order: int, by: int) -> None:
        """Remove the loss of a message that a participant now has."""
        lost_to = self._state.undelivered.get(order, {})
        self._undelivered -= lost_to.pop(by, None) is not None
        if not lost_to:
            self._state.undelivered.pop(order, None)

    def recovered(self, time_ms: int) -> None:
        """Record a delivery that recovered."""
        self._state.last_recovered_ms = time_ms
        self._leaves_after(time_ms)

    def expired(self, time_ms: int) -> None:
        """Record a repair episode that expired."""
        self._state.last_expired_ms = later(self._state.last_expired_ms, time_ms)
        self._leaves_after(time_ms)

    def filter(self, by: int, time_ms: int, rate: float) -> None:
        """Record the false-positive rate of a participant's newest filter, a ratio."""
        if rate > self._settings.saturated_rate:
            self._state.saturated[by] = time_ms
            self._leaves_after(time_ms)
        else:
            self._state.saturated.pop(by, None)

    def judge(self, clock_ms: int, gaps_open: int) -> None:
        """Update the verdict to the clock. Call this after every event."""
        has_left = clock_ms > self._edge_ms
        if has_left:
            self._forget(clock_ms)
        state = self._state
        verdict, state.reason = self._verdict(clock_ms, gaps_open)
        if verdict is not state.verdict or state.since_ms is None:
            state.verdict, state.since_ms = verdict, clock_ms
        if has_left:
            self._edge_ms = self._next_edge_ms()

    @property
    def edge_ms(self) -> int:
        """Until the clock passes this, the verdict does not change without an event.

        Unix ms. A lower bound; `next_change_ms` is exact but slower.
        """
        return self._edge_ms

    @property
    def next_change_ms(self) -> int | None:
        """Deadline after which the verdict may change by itself; None if never."""
        edge_ms = self._next_edge_ms()
        return None if edge_ms == _NEVER else edge_ms

    def _verdict(self, clock_ms: int, gaps_open: int) -> tuple[Verdict, str]:
        state = self._state
        if state.first_ms is None or clock_ms <= self._warm_up_end_ms():
            return Verdict.WARMING_UP, "warming_up"
        if state.losses or state.undelivered:
            return Verdict.FAILING, "lost"
        limit = self._messages * self._settings.unacknowledged_percent
        if self._missed * 100 > limit:
            return Verdict.FAILING, "unacknowledged"
        if gaps_open or state.last_recovered_ms is not None:
            return Verdict.DEGRADED, "recovering"
        if self._missed:
            return Verdict.DEGRADED, "unacknowledged"
        if state.last_expired_ms is not None:
            return Verdict.DEGRADED, "repair_expired"
        if state.saturated:
            return Verdict.DEGRADED, "bloom_saturated"
        if state.last_content_ms is None:
            return Verdict.QUIET, "quiet"
        return Verdict.OK, "ok"

    def _warm_up_end_ms(self) -> int:
        """Last moment of the warm-up, Unix ms; `_NEVER` before the first record."""
        first_ms = self._state.first_ms
        return _NEVER if first_ms is None else first_ms + self._settings.warm_up_ms - 1

    def _leaves_after(self, time_ms: int) -> None:
        """Note that an event at this time leaves the window later."""
        edge_ms = time_ms + self._settings.verdict_window_ms
        self._edge_ms = min(self._edge_ms, edge_ms)

    def _next_edge_ms(self) -> int:
        """Deadline at which the next event leaves the window; `_NEVER` if none does."""
        state = self._state
        latest = (
            state.last_content_ms,
            state.last_expired_ms,
            state.last_recovered_ms,
        )
        times = [ms for ms in latest if ms is not None]
        times += state.losses.values()
        times += state.saturated.values()
        for lost_to in state.undelivered.values():
            times += lost_to.values()
        if self._missed:
            times.append(next(iter(state.ended)))
        edge_ms = min(times, default=_NEVER) + self._settings.verdict_window_ms
        if state.verdict is Verdict.WARMING_UP:
            edge_ms = min(edge_ms, self._warm_up_end_ms())
        return min(edge_ms, _NEVER)

    def _forget(self, clock_ms: int) -> None:
        """Forget events before the window."""
        state = self._state
        edge_ms = clock_ms - self._settings.verdict_window_ms
        for key in [key for key, time in state.losses.items() if time < edge_ms]:
            del state.losses[key]
        for by in [by for by, time in state.saturated.items() if time < edge_ms]:
            del state.saturated[by]
        for order, lost_to in list(state.undelivered.items()):
            for by in [by for by, time in lost_to.items() if time < edge_ms]:
                self.delivered(order, by)
        for end_ms in [end for end in state.ended if end < edge_ms]:
            messages, missed = state.ended.pop(end_ms)
            self._messages -= messages
            self._missed -= missed
        if state.last_content_ms is not None and state.last_content_ms < edge_ms:
            state.last_content_ms = None
        if state.last_expired_ms is not None and state.last_expired_ms < edge_ms:
            state.last_expired_ms = None
        if state.last_recovered_ms is not None and state.last_recovered_ms < edge_ms:
            state.last_recovered_ms = None
