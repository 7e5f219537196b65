"""The verdict on a group over a sliding window (docs/figures.md, 14)."""

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
    """The view's settings for a verdict.

    The window stores the settings, because the code that joins parts of a group lacks
    them.

    Attributes:
        warm_up_ms: Time after a group's first record in which the group has no verdict.
        percent: Share of unacknowledged pairs above which a group is failing.
        ack_deadline_ms: Time from a MESSAGE until it counts as unacknowledged.
        horizon_ms: Time after which a tap no longer counts as showing a group.
    """

    window_ms: int = 0
    warm_up_ms: int = 0
    percent: int = 0
    ack_deadline_ms: int = 0
    horizon_ms: int = 0

    @classmethod
    def of(cls, settings: ObserverSettings) -> Rule:
        """The rule for a verdict, from the settings."""
        return cls(
            settings.verdict_window_ms,
            settings.warm_up_ms,
            settings.unacknowledged_percent,
            settings.ack_deadline_ms,
            settings.horizon_ms,
        )


class Window(msgspec.Struct, array_like=True):
    """Evidence of the verdict on a group. Times are clocks in Unix ms.

    Attributes:
        began_ms: Clock at the group's first record; None before the first record.
        message_ms: Clock at the group's latest MESSAGE; None before the first MESSAGE.
        ended: Number of pairs of id and receiver that ended in each step.
            The key is the step's end.
        unacknowledged: Number of ended pairs that are still unacknowledged.
        unanswered: Number of requests that ended unanswered in each step.
            The key is the step's end.
        taps: For each tap, the clock at its latest payload that showed the group.
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
        """Return the window at a clock, without events that have left it."""
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
        """Return the first verdict that applies at a clock, and its reason."""
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
        """Return verdict and reason at a clock; the window must be valid for it."""
        unacknowledged = sum(self.unacknowledged.values())
        return self.verdict(clock_ms, unacknowledged, sum(self.unanswered.values()))

    def judge_without(self, clock_ms: int, excused: Excused) -> tuple[Verdict, str]:
        """Return verdict and reason if some evidence is excused; see `ViewTotals`."""

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
    """Join the windows of a group's parts; at least one window is necessary."""
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
    """The end of the step to which a time belongs, Unix ms."""
    return -(-time_ms // STEP_MS) * STEP_MS


def count_in(steps: dict[int, int], time_ms: int, number: int = 1) -> None:
    """Add to the count of a time's step; remove the step if the count becomes zero."""
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
