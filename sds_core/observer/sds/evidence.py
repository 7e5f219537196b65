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
"""Length of a time step; evidence is grouped by time steps."""

Found = tuple[int, int, int]
"""Events of one kind that began at the same time and were found at the same time.

The parts are the time at which the events began, the time at which they were found, and
their number. Both times are times of the clock in Unix ms, rounded to multiples of
`STEP_MS`: the first is rounded down, and the second is rounded up.
"""


@native
@dataclass(slots=True)
class Counts:
    """Events in the window of a verdict.

    Attributes:
        messages, unacknowledged: Number of messages whose deadline was in the window,
            and number of those that are unacknowledged.
        pairs, undelivered: Number of deliveries that ended in the window, and number of
            those that are lost, without retracted losses.
        lost: Number of messages that were lost to all participants.
        recovering: Whether a gap is open, or a delivery has recovered.
        expired: Whether a repair episode expired.
        saturated: Whether the newest filter of any participant is too full.
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
    """Return the first verdict that applies, and its reason.

    The warm-up of the channel must be over.
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
    """The events that caused a bad verdict, with their times.

    Attributes:
        messages, pairs, saturated, content, attributed: See `Counts`. States from
            releases before 0.13 lack `attributed`.
        lost, undelivered, unacknowledged: All failures of each kind.
        recovered, expired: For each step in which a delivery recovered, or a repair
            episode expired, the one that began last.
        gaps: The open gap that began last, if any.
        lacking: Ids of the participants with the most lost messages, each with its part
            of `undelivered`.
        lacking_others: Number of further participants to which messages were lost.
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
        """Return the verdict and its reason without the excused evidence."""

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
