"""Judges a channel by the evidence in a window of time (docs/figures.md, 8)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from sds_core.native import native
from sds_core.observer.rule_settings import RuleSettings, rule_settings
from sds_core.observer.settings import ObserverSettings
from sds_core.observer.verdict import Verdict
from sds_core.observer.view_totals import Excused

STEP_MS = 10_000
"""Length of a time step, ms. Evidence is counted for each time step."""

Found = tuple[int, int, int]
"""Events of one kind that began in the same time step and were found in the same step.

The parts are the time at which the events began, the time at which they were found, and
the number of events. Both are times of the channel's clock, Unix ms. The first time is
rounded down to a multiple of `STEP_MS`, and the second time is rounded up.
"""


@native
@dataclass(slots=True)
class Counts:
    """Summary of the events in the time window that a verdict covers.

    Attributes:
        messages: Number of messages whose deadline was in the window.
        unacknowledged: How many of `messages` are unacknowledged.
        pairs: Number of deliveries that ended in the window.
        undelivered: How many of `pairs` are lost. Retracted losses do not count.
        lost: Number of messages that were found lost to all participants. Retracted
            losses do not count.
        recovering: Whether a gap is open now, or a delivery recovered in the window.
        expired: Whether a repair episode expired.
        saturated: Whether the newest filter of any participant has a false-positive
            rate above the setting `saturated_rate`.
        attributed: Whether any content frame named its sender.
    """

    messages: int
    unacknowledged: int
    pairs: int
    undelivered: int
    lost: int
    recovering: bool
    expired: bool
    saturated: bool
    content: bool
    attributed: bool


@native
def verdict_of(counts: Counts, settings: RuleSettings) -> tuple[Verdict, str]:
    """Return the worst verdict for which the counts give a reason, and this reason.

    Call this function only for a channel whose warm-up is over.
    """
    if counts.lost:
        return Verdict.FAILING, "lost"
    if counts.undelivered * 100 > counts.pairs * settings.undelivered_percent:
        return Verdict.FAILING, "undelivered"
    if counts.unacknowledged * 100 > counts.messages * settings.unacknowledged_percent:
        return Verdict.FAILING, "unacknowledged"
    if counts.undelivered:
        return Verdict.DEGRADED, "undelivered"
    if counts.recovering:
        return Verdict.DEGRADED, "recovering"
    if counts.unacknowledged:
        return Verdict.DEGRADED, "unacknowledged"
    if counts.expired:
        return Verdict.DEGRADED, "repair_expired"
    if counts.saturated:
        return Verdict.DEGRADED, "bloom_saturated"
    if not counts.content:
        return Verdict.QUIET, "quiet"
    if not counts.attributed:
        return Verdict.OK, "no_senders"
    return Verdict.OK, "ok"


class Evidence(msgspec.Struct, array_like=True, frozen=True):
    """The events that caused a verdict FAILING or DEGRADED, with their times.

    Attributes:
        messages, pairs, saturated, content, attributed: See `Counts`. A state that a
            release before 0.13 saved lacks `attributed`.
        lost: All messages that were lost to all participants.
        undelivered: All lost deliveries.
        unacknowledged: All unacknowledged messages.
        recovered: For each step in which deliveries recovered, the delivery that began
            last.
        expired: For each step in which repair episodes expired, the episode that began
            last.
        gaps: The open gap that began last; empty if no gap is open.
        lacking: The participants with the most lost deliveries: the id and the lost
            deliveries of each participant. `undelivered` contains these deliveries.
        lacking_others: Number of participants with lost deliveries that are not in
            `lacking`.
    """

    messages: int
    pairs: int
    saturated: bool
    content: bool
    lost: list[Found]
    undelivered: list[Found]
    unacknowledged: list[Found]
    recovered: list[Found]
    expired: list[Found]
    gaps: list[Found]
    lacking: list[tuple[str, list[Found]]] = []
    lacking_others: int = 0
    attributed: bool = True

    def verdict_without(
        self, excused: Excused, settings: ObserverSettings
    ) -> tuple[Verdict, str]:
        """Return the verdict and its reason if excused evidence does not count."""

        def count(found: Iterable[Found]) -> int:
            return count_without(found, excused)

        counts = Counts(
            self.messages,
            count(self.unacknowledged),
            self.pairs,
            count(self.undelivered),
            count(self.lost),
            bool(count(self.gaps) or count(self.recovered)),
            bool(count(self.expired)),
            self.saturated,
            self.content,
            self.attributed,
        )
        return verdict_of(counts, rule_settings(settings))


def count_without(found: Iterable[Found], excused: Excused) -> int:
    """Return the number of events of one kind that are not excused."""
    return sum(count for since, at, count in found if not excused(since, at))


@native
def step_before(time_ms: int) -> int:
    """The last multiple of `STEP_MS` at or before a time, Unix ms."""
    return time_ms // STEP_MS * STEP_MS


@native
def step_after(time_ms: int) -> int:
    """The first multiple of `STEP_MS` at or after a time, Unix ms."""
    return -(-time_ms // STEP_MS) * STEP_MS
