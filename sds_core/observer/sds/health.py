"""Determines the verdict of a channel from recent events (docs/figures.md, 8)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from itertools import islice
from typing import Any

import msgspec

from sds_core.native import native
from sds_core.observer.deadlines import NEVER, later
from sds_core.observer.rule_settings import RuleSettings
from sds_core.observer.sds.evidence import (
    Counts,
    Evidence,
    Found,
    step_after,
    step_before,
    verdict_of,
)
from sds_core.observer.verdict import Verdict

_BUCKET_MS = 1_000

_MOST_LOSSES = 2_000
"""Number of the oldest losses of one kind that are dropped at a time.

They are dropped when more than twice this number are stored. The verdict does not need
all losses: one lost message in the window is enough for FAILING.
"""

_MOST_NAMED = 10
"""Maximum number of participants that the evidence of a verdict names."""

_MOST_RETRIED = 200
"""Maximum number of messages whose retries are counted.

Beyond this number, the messages whose latest retry is oldest are dropped.
"""


class HealthState(msgspec.Struct, array_like=True):
    """The events in the verdict's window, and the verdict.

    Unless an event time is stated, times are those of the channel's clock, Unix ms. A
    step is a time step of `evidence.STEP_MS`.

    Attributes:
        first_ms: Time of the channel's first frame; None before this frame.
        last_content_ms: Time of the latest content frame; None if the window has no
            content frame.
        last_expired_ms: Time at which a repair episode last expired; None if no episode
            expired in the window.
        losses: For each lost dependency, the time when its loss was found. The keys are
            fingerprints of message ids. Retracted losses are excluded.
        ended: For each second, the number of messages whose deadline passed in this
            second, and how many of these messages are unacknowledged. The keys are the
            ends of the seconds, ascending.
        undelivered: For each lost delivery, the time when its loss was found. The keys
            are the message's order and the participant's index. Retracted losses are
            excluded.
        last_recovered_ms: Time at which a delivery last recovered; None if no delivery
            recovered in the window.
        saturated: Participants whose newest filter has a false-positive rate above the
            limit: event time of this filter, by participant index.
        since_ms: Time at which the current verdict began; None before the first
            verdict.
        pairs: For each step, the number of deliveries that ended in this step, lost or
            not. The keys are the ends of the steps, ascending.
        lacked: For each delivery in `undelivered`, the event time of the first frame
            that showed that the participant lacks the message. Empty in states that
            releases before 0.8 wrote.
        recovered: For each step in which deliveries recovered, the start of the
            delivery that began last. The start is the event time of the first frame
            that showed the lack, rounded down to a step. The keys are the ends of the
            steps, ascending.
        expired: For each step in which repair episodes expired, the start of the
            episode that began last, rounded down to a step. The keys are the ends of
            the steps, ascending.
        newest_gap_ms: Latest time at which a history first named an id that became a
            gap; 0 before the first gap.
        last_attributed_ms: Time of the latest content frame that names its sender; None
            if the window has no such frame.
        retries: For each message, the number of retries and the time of the latest
            retry. The keys are fingerprints of message ids, in order of the latest
            retry.
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
    pairs: dict[int, int] = {}
    lacked: dict[int, dict[int, int]] = {}
    recovered: dict[int, int] = {}
    expired: dict[int, int] = {}
    newest_gap_ms: int = 0
    last_attributed_ms: int | None = None
    retries: dict[int, tuple[int, int]] = {}


_LATEST = (
    "last_content_ms",
    "last_attributed_ms",
    "last_expired_ms",
    "last_recovered_ms",
)
"""Fields of `HealthState` that store when an event of one kind last occurred.

Such a field is None if no event of this kind occurred in the window.
"""


@native
class Health:
    """Determines a channel's verdict from the events in a window of time.

    The window ends at the channel's clock.

    Attributes:
        edge_ms: Until the clock exceeds this time, only a new event can change the
            verdict, Unix ms.
    """

    _settings: RuleSettings
    _state: HealthState
    _messages: int
    _missed: int
    _pairs: int
    _undelivered: Counter[tuple[int, int]]
    _undelivered_count: int
    _lost: Counter[int]
    edge_ms: int

    def __init__(self, settings: RuleSettings, state: HealthState) -> None:
        self._settings = settings
        self._state = state
        self._messages = sum(count for count, _ in state.ended.values())
        self._missed = sum(missed for _, missed in state.ended.values())
        self._pairs = sum(state.pairs.values())
        # Number of lost deliveries by two times, both rounded to steps: when a frame
        # first showed that the participant lacks the message, and when the loss was
        # found.
        self._undelivered = Counter(
            self._span_of(order, by, found_ms)
            for order, lost_to in state.undelivered.items()
            for by, found_ms in lost_to.items()
        )
        self._undelivered_count = self._undelivered.total()
        # For each step, the number of dependencies whose loss was found in this step.
        # The keys are the ends of the steps.
        self._lost = Counter([step_after(ms) for ms in state.losses.values()])
        self.edge_ms = self.next_edge_ms()

    def record(self, clock_ms: int) -> None:
        """Record that the channel had a frame; its first frame begins the warm-up."""
        if self._state.first_ms is None:
            self._state.first_ms = clock_ms
            self.edge_ms = min(self.edge_ms, self._warm_up_end_ms())

    def in_warm_up(self, clock_ms: int) -> bool:
        """Whether the channel is in its warm-up, in which no gap opens."""
        first_ms = self._state.first_ms
        return first_ms is None or clock_ms <= first_ms + self._settings.warm_up_ms

    def content(self, clock_ms: int, is_attributed: bool) -> None:
        """Record a content frame, and whether it names its sender."""
        self._state.last_content_ms = clock_ms
        if is_attributed:
            self._state.last_attributed_ms = clock_ms
        self._leaves_after(clock_ms)

    def deadline_passed(self, deadline_ms: int, unacknowledged: bool) -> None:
        """Record that the acknowledgement deadline of a message has passed."""
        end_ms = -(-deadline_ms // _BUCKET_MS) * _BUCKET_MS
        messages, missed = self._state.ended.get(end_ms, (0, 0))
        self._state.ended[end_ms] = (messages + 1, missed + unacknowledged)
        self._messages += 1
        self._missed += unacknowledged
        # When the oldest messages leave the window, the share of unacknowledged
        # messages changes, so the verdict may change.
        self._leaves_after(next(iter(self._state.ended)))

    def lost(self, key: int, time_ms: int) -> None:
        """Record a lost dependency."""
        losses = self._state.losses
        self.retracted(key)
        losses[key] = time_ms
        self._lost[step_after(time_ms)] += 1
        # Many old losses are deleted at a time, because the search for the first entry
        # of a dictionary visits all deleted entries before it.
        if len(losses) > 2 * _MOST_LOSSES:
            for old in list(islice(losses, _MOST_LOSSES)):
                self.retracted(old)
        self._leaves_after(time_ms)

    def retracted(self, key: int) -> None:
        """Remove a dependency from the recorded losses, if it is one of them.

        This method is called, for example, when the dependency arrives.
        """
        found_ms = self._state.losses.pop(key, None)
        if found_ms is not None:
            _subtract(self._lost, step_after(found_ms))

    def retried(self, key: int, clock_ms: int) -> None:
        """Record a retry of a message. Retries do not affect the verdict."""
        retries = self._state.retries
        count, _ = retries.pop(key, (0, 0))
        retries[key] = count + 1, clock_ms
        edge_ms = clock_ms - self._settings.verdict_window_ms
        while True:
            oldest = next(iter(retries))
            if len(retries) <= _MOST_RETRIED and retries[oldest][1] >= edge_ms:
                return
            del retries[oldest]

    def gap_opened(self, named_ms: int) -> None:
        """Record that a gap has opened for an id that was first named at `named_ms`."""
        self._state.newest_gap_ms = max(self._state.newest_gap_ms, named_ms)

    def pairs_ended(self, count: int, time_ms: int) -> None:
        """Record that `count` deliveries ended, lost or not."""
        if not count:
            return
        pairs, end_ms = self._state.pairs, step_after(time_ms)
        pairs[end_ms] = pairs.get(end_ms, 0) + count
        self._pairs += count
        # When the oldest deliveries leave the window, the share of lost deliveries
        # changes, so the verdict may change.
        self._leaves_after(next(iter(pairs)))

    def undelivered(self, order: int, by: int, time_ms: int, lacked_ms: int) -> None:
        """Record that a message counts as lost to a participant."""
        undelivered = self._state.undelivered
        self.delivered(order, by)
        undelivered.setdefault(order, {})[by] = time_ms
        self._state.lacked.setdefault(order, {})[by] = lacked_ms
        self._undelivered[self._span_of(order, by, time_ms)] += 1
        self._undelivered_count += 1
        if self._undelivered_count > 2 * _MOST_LOSSES:
            pairs = ((one, who) for one, lost in undelivered.items() for who in lost)
            for old in list(islice(pairs, _MOST_LOSSES)):
                self.delivered(*old)
        self._leaves_after(time_ms)

    def delivered(self, order: int, by: int) -> None:
        """Remove a delivery from the recorded losses, if it is one of them.

        This method is called, for example, when the participant shows that it has the
        message.
        """
        lost_to = self._state.undelivered.get(order, {})
        found_ms = lost_to.get(by)
        if found_ms is not None:
            _subtract(self._undelivered, self._span_of(order, by, found_ms))
            self._undelivered_count -= 1
            del lost_to[by]
            lacked = self._state.lacked.get(order, {})
            lacked.pop(by, None)
            if not lacked:
                self._state.lacked.pop(order, None)
        if not lost_to:
            self._state.undelivered.pop(order, None)

    def recovered(self, time_ms: int, lacked_ms: int) -> None:
        """Record that a participant received a message that it lacked before.

        A frame at `lacked_ms` first showed the lack.
        """
        self._state.last_recovered_ms = time_ms
        _begin_last(self._state.recovered, time_ms, lacked_ms)
        self._leaves_after(time_ms)

    def expired(self, time_ms: int) -> None:
        """Record a repair episode that expired."""
        self._state.last_expired_ms = later(self._state.last_expired_ms, time_ms)
        # The dialect of the episode is unknown here, so its start is calculated with
        # the longest repair window.
        settings = self._settings
        longest_ms = max(settings.repair_window_spec_ms, settings.repair_window_nim_ms)
        began_ms = time_ms - longest_ms
        _begin_last(self._state.expired, time_ms, began_ms)
        self._leaves_after(time_ms)

    def filter(self, by: int, time_ms: int, rate: float) -> None:
        """Record the false-positive rate (0 to 1) of a participant's newest filter."""
        if rate > self._settings.saturated_rate:
            self._state.saturated[by] = time_ms
            self._leaves_after(time_ms)
        else:
            self._state.saturated.pop(by, None)

    def judge(self, clock_ms: int, gaps_open: int) -> None:
        """Determine the verdict at `clock_ms`. Call this method after every event."""
        has_left = clock_ms > self.edge_ms
        if has_left:
            self._forget(clock_ms)
        state = self._state
        verdict, state.reason = self._verdict(clock_ms, gaps_open)
        if verdict is not state.verdict or state.since_ms is None:
            state.verdict, state.since_ms = verdict, clock_ms
        if has_left:
            self.edge_ms = self.next_edge_ms()

    def evidence(
        self, clock_ms: int, gaps_open: int, name: Callable[[int], str]
    ) -> Evidence | None:
        """The evidence for the verdict; None if it is neither FAILING nor DEGRADED."""
        state, settings = self._state, self._settings
        if state.verdict not in (Verdict.FAILING, Verdict.DEGRADED):
            return None
        # `judge` keeps events that have left the window if they do not affect the
        # verdict, so they are dropped here.
        self._forget(clock_ms)
        ack_ms, gap_ms = settings.ack_deadline_ms, settings.gap_deadline_ms
        gaps: list[Found] = []
        if gaps_open:
            gaps = [(step_before(state.newest_gap_ms), step_after(clock_ms), 1)]
        return Evidence(
            self._messages,
            self._pairs,
            bool(state.saturated),
            state.last_content_ms is not None,
            [
                (step_before(found_ms - gap_ms), found_ms, count)
                for found_ms, count in sorted(self._lost.items())
            ],
            [(*span, count) for span, count in sorted(self._undelivered.items())],
            [
                (step_before(end_ms - ack_ms), step_after(end_ms), missed)
                for end_ms, (_, missed) in state.ended.items()
                if missed
            ],
            [(began_ms, end_ms, 1) for end_ms, began_ms in state.recovered.items()],
            [(began_ms, end_ms, 1) for end_ms, began_ms in state.expired.items()],
            gaps,
            *self._lacking(name),
            state.last_attributed_ms is not None,
        )

    def _lacking(
        self, name: Callable[[int], str]
    ) -> tuple[list[tuple[str, list[Found]]], int]:
        spans: defaultdict[int, Counter[tuple[int, int]]] = defaultdict(Counter)
        for order, lost_to in self._state.undelivered.items():
            for by, found_ms in lost_to.items():
                spans[by][self._span_of(order, by, found_ms)] += 1
        most = sorted(spans, key=lambda by: (-spans[by].total(), by))[:_MOST_NAMED]
        lacking = [
            (name(by), [(*span, count) for span, count in sorted(spans[by].items())])
            for by in most
        ]
        return lacking, len(spans) - len(most)

    def _verdict(self, clock_ms: int, gaps_open: int) -> tuple[Verdict, str]:
        state = self._state
        if state.first_ms is None or clock_ms <= self._warm_up_end_ms():
            return Verdict.WARMING_UP, "warming_up"
        return verdict_of(
            Counts(
                self._messages,
                self._missed,
                self._pairs,
                self._undelivered_count,
                len(state.losses),
                gaps_open > 0 or state.last_recovered_ms is not None,
                state.last_expired_ms is not None,
                bool(state.saturated),
                state.last_content_ms is not None,
                state.last_attributed_ms is not None,
            ),
            self._settings,
        )

    def _span_of(self, order: int, by: int, found_ms: int) -> tuple[int, int]:
        lacked_ms = self._state.lacked.get(order, {}).get(
            by, found_ms - self._settings.delivery_deadline_ms
        )
        return step_before(lacked_ms), step_after(found_ms)

    def _warm_up_end_ms(self) -> int:
        first_ms = self._state.first_ms
        return NEVER if first_ms is None else first_ms + self._settings.warm_up_ms - 1

    def _leaves_after(self, time_ms: int) -> None:
        edge_ms = time_ms + self._settings.verdict_window_ms
        self.edge_ms = min(self.edge_ms, edge_ms)

    def next_edge_ms(self) -> int:
        """Time after which the verdict may change without a new event, or `NEVER`."""
        state = self._state
        latest = (getattr(state, name) for name in _LATEST)
        times = [ms for ms in latest if ms is not None]
        times += state.losses.values()
        times += state.saturated.values()
        for lost_to in state.undelivered.values():
            times += lost_to.values()
        if state.undelivered and state.pairs:
            times.append(next(iter(state.pairs)))
        if self._missed:
            times.append(next(iter(state.ended)))
        edge_ms = min(times, default=NEVER) + self._settings.verdict_window_ms
        if state.verdict is Verdict.WARMING_UP:
            edge_ms = min(edge_ms, self._warm_up_end_ms())
        return min(edge_ms, NEVER)

    def _forget(self, clock_ms: int) -> None:
        state = self._state
        edge_ms = clock_ms - self._settings.verdict_window_ms
        for key in [key for key, time in state.losses.items() if time < edge_ms]:
            self.retracted(key)
        for by in [by for by, time in state.saturated.items() if time < edge_ms]:
            del state.saturated[by]
        for order, lost_to in list(state.undelivered.items()):
            for by in [by for by, time in lost_to.items() if time < edge_ms]:
                self.delivered(order, by)
        for end_ms in [end for end in state.ended if end < edge_ms]:
            messages, missed = state.ended.pop(end_ms)
            self._messages -= messages
            self._missed -= missed
        for end_ms in [end for end in state.pairs if end < edge_ms]:
            self._pairs -= state.pairs.pop(end_ms)
        for began in (state.recovered, state.expired):
            for end_ms in [end for end in began if end < edge_ms]:
                del began[end_ms]
        for name in _LATEST:
            latest_ms = getattr(state, name)
            if latest_ms is not None and latest_ms < edge_ms:
                setattr(state, name, None)


def _begin_last(began: dict[int, int], time_ms: int, began_ms: int) -> None:
    end_ms = step_after(time_ms)
    began[end_ms] = max(began.get(end_ms, 0), step_before(began_ms))


def _subtract(counter: Counter[Any], key: Hashable) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
