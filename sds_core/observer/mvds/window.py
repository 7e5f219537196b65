"""Judges a group by the evidence in a sliding window (docs/figures.md, 14)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from sds_core.observer.settings import ObserverSettings
from sds_core.observer.summing import added
from sds_core.observer.verdict import Verdict
from sds_core.observer.view_totals import Excused

STEP_MS = 10_000
"""Length of the steps into which events in the window are grouped."""


class Rule(msgspec.Struct, array_like=True, frozen=True):
    """The settings from which the verdict on a group is derived.

    A `Window` stores its settings, because the code that joins the parts of a group
    reads them there.

    Attributes:
        warm_up_ms: Length of the period after a group's first record in which the
            verdict is `warming_up`.
        percent: Percentage of unacknowledged pairs of message and receiver above which
            a group is failing.
        ack_deadline_ms: Time after which a MESSAGE without an ACK counts as
            unacknowledged.
        horizon_ms: If a tap sends no record of a group for this time, the group no
            longer lists the tap.
    """

    window_ms: int = 0
    warm_up_ms: int = 0
    percent: int = 0
    ack_deadline_ms: int = 0
    horizon_ms: int = 0

    @classmethod
    def of(cls, settings: ObserverSettings) -> Rule:
        """Return the rule for these settings."""
        return cls(
            settings.verdict_window_ms,
            settings.warm_up_ms,
            settings.unacknowledged_percent,
            settings.ack_deadline_ms,
            settings.horizon_ms,
        )


class Window(msgspec.Struct, array_like=True):
    """The evidence for the verdict on a group. Times are in the view's clock, Unix ms.

    Attributes:
        began_ms: Clock at the group's first record; None before that record.
        message_ms: Clock at the group's latest MESSAGE; None before the first MESSAGE.
        ended: For each step, the number of pairs of message and receiver for which the
            wait for an ACK ended, with or without an ACK. The key is the end of the
            step.
        unacknowledged: For each step, the number of pairs whose deadline passed in the
            step, and which are still unacknowledged.
        unanswered: For each step, the number of requests whose deadline passed without
            an answer.
        taps: For each tap, the clock at its latest payload with a record of the group.
        rule: Settings of the verdict.
    """

    began_ms: int | None = None
    message_ms: int | None = None
    ended: dict[int, int] = {}
    unacknowledged: dict[int, int] = {}
    unanswered: dict[int, int] = {}
    taps: dict[str, int] = {}
    rule: Rule = Rule()

    def at(self, clock_ms: int) -> Window:
        """Return a copy of the window without the events that left it by `clock_ms`."""
        edge_ms = clock_ms - self.rule.window_ms
        taps_ms = clock_ms - self.rule.horizon_ms
        return Window(
            self.began_ms,
            self.message_ms,
            _steps_since(self.ended, edge_ms),
            _steps_since(self.unacknowledged, edge_ms),
            _steps_since(self.unanswered, edge_ms),
            {tap: seen for tap, seen in self.taps.items() if seen >= taps_ms},
            self.rule,
        )

    def verdict(
        self, clock_ms: int, unacknowledged: int, unanswered: int
    ) -> tuple[Verdict, str]:
        """Return the verdict that follows from both counts, and its reason."""
        rule = self.rule
        if self.began_ms is None or clock_ms <= self.began_ms + rule.warm_up_ms:
            return Verdict.WARMING_UP, "warming_up"
        if unacknowledged * 100 > sum(self.ended.values()) * rule.percent:
            return Verdict.FAILING, "unacknowledged"
        if unacknowledged:
            return Verdict.DEGRADED, "unacknowledged"
        if unanswered:
            return Verdict.DEGRADED, "unanswered"
        if self.message_ms is None or self.message_ms < clock_ms - rule.window_ms:
            return Verdict.QUIET, "quiet"
        return Verdict.OK, "ok"

    def judge(self, clock_ms: int) -> tuple[Verdict, str]:
        """Return verdict and reason; call this on the result of `at(clock_ms)`."""
        unacknowledged = sum(self.unacknowledged.values())
        return self.verdict(clock_ms, unacknowledged, sum(self.unanswered.values()))

    def judge_without(self, clock_ms: int, excused: Excused) -> tuple[Verdict, str]:
        """Return the verdict that follows from unexcused evidence, and its reason.

        See `ViewTotals.verdict_without`.
        """

        def count(found: Mapping[int, int]) -> int:
            lead_ms = self.rule.ack_deadline_ms + STEP_MS
            return sum(
                number
                for end_ms, number in found.items()
                if not excused(end_ms - lead_ms, end_ms)
            )

        unacknowledged = count(self.unacknowledged)
        return self.verdict(clock_ms, unacknowledged, count(self.unanswered))


def joined(windows: Sequence[Window]) -> Window:
    """Join the windows of the parts of one group into one window."""
    began = [one.began_ms for one in windows if one.began_ms is not None]
    messages = [one.message_ms for one in windows if one.message_ms is not None]
    return Window(
        min(began, default=None),
        max(messages, default=None),
        added(one.ended for one in windows),
        added(one.unacknowledged for one in windows),
        added(one.unanswered for one in windows),
        _latest(one.taps for one in windows),
        windows[0].rule,
    )


def step_after(time_ms: int) -> int:
    """The end of the step that contains a time, Unix ms."""
    return -(-time_ms // STEP_MS) * STEP_MS


def count_in(steps: dict[int, int], time_ms: int, number: int = 1) -> None:
    """Add a number to the count of the step that contains a time.

    If the sum is 0, remove the step.
    """
    step = step_after(time_ms)
    steps[step] = steps.get(step, 0) + number
    if not steps[step]:
        del steps[step]


def _steps_since(steps: Mapping[int, int], edge_ms: int) -> dict[int, int]:
    return {end_ms: number for end_ms, number in steps.items() if end_ms >= edge_ms}


def _latest(found: Iterable[Mapping[str, int]]) -> dict[str, int]:
    latest: dict[str, int] = {}
    for one in found:
        for tap, clock_ms in one.items():
            latest[tap] = max(latest.get(tap, clock_ms), clock_ms)
    return latest
