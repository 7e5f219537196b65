"""The verdict on a channel, and since when it holds (docs/figures.md, 8)."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tests.support.frames import START_MS
from tests.support.reference.acknowledgements import Acknowledgements
from tests.support.reference.filters import rate
from tests.support.reference.gaps import Gaps
from tests.support.reference.repairs import Repairs
from tests.support.reference.seen import Moment

VERDICT_WINDOW_MS = 600_000


class Span(NamedTuple):
    """Something that bears on the verdict, from one moment to before another."""

    what: str
    begins: Moment
    ends: Moment


def after(clock: int) -> Moment:
    """The first moment at which the clock has passed a time."""
    return clock + 1, -1


def out_of_window(clock: int) -> Moment:
    """When something that was at a time has left the window of the verdict."""
    return after(clock + VERDICT_WINDOW_MS)


class Verdict(Acknowledgements, Gaps, Repairs):
    """Adds the verdict at each moment."""

    @functools.cache  # noqa: B019
    def spans(self) -> list[Span]:
        """All that the verdict depends on."""
        return [
            *self._spans_of_gaps(),
            *self._spans_of_deliveries(),
            *self._spans_of_messages(),
            *self._spans_of_repairs(),
            *self._spans_of_filters(),
        ]

    def _spans_of_gaps(self) -> Iterator[Span]:
        for message_id in {i for one in self.broadcasts for i in one.history()}:
            gap, opening = self.gap(message_id), self.opening(message_id)
            if gap is None or opening is None:
                continue
            deadline = opening.clock + 300_000
            first = self.first_with_id(message_id)
            arrival = after(self.end) if first is None else first.moment
            yield Span(
                "gap", after(opening.clock + 2_000), min(arrival, after(deadline))
            )
            if gap[0] == "lost":
                yield Span(
                    "lost", after(deadline), min(arrival, out_of_window(deadline))
                )

    def _spans_of_deliveries(self) -> Iterator[Span]:
        for one in self.deliveries():
            end = one.lost or one.shown
            if end is not None:
                # Deliveries lie in the window to ten seconds, rounded up.
                step = -(-(START_MS + end.clock) // 10_000) * 10_000 - START_MS
                yield Span("pair", end.moment, out_of_window(step))
            if one.lost is not None:
                ends = out_of_window(one.lost.clock)
                if one.shown is not None:
                    ends = min(ends, one.shown.moment)
                yield Span("undelivered", one.lost.moment, ends)
            elif one.outcome == "recovered":
                assert one.shown is not None
                ends = out_of_window(one.shown.clock)
                yield Span("recovered", one.shown.moment, ends)

    def _spans_of_messages(self) -> Iterator[Span]:
        for one in self.broadcasts:
            if one.is_content:
                yield Span("content", one.moment, out_of_window(one.clock))
                if one.sender:
                    yield Span("attributed", one.moment, out_of_window(one.clock))
        for m in self.messages:
            deadline = m.clock + 120_000
            # Deadlines lie in the window to the whole second, rounded up.
            second = -(-(START_MS + deadline) // 1_000) * 1_000 - START_MS
            fate = "missed" if self.fate(m) == "unacknowledged" else "met"
            yield Span(fate, after(deadline), out_of_window(second))

    def _spans_of_repairs(self) -> Iterator[Span]:
        for message_id in {i for one in self.broadcasts for i in one.requests()}:
            _, expired, _ = self.episodes(message_id)
            for end in expired:
                yield Span("expired", after(end), out_of_window(end))

    def _spans_of_filters(self) -> Iterator[Span]:
        for sender in {one.sender for one in self.first_copies}:
            newest = self.newest(sender)
            for one, next_one in itertools.zip_longest(newest, newest[1:]):
                ends = out_of_window(one.at)
                if next_one is not None:
                    ends = min(ends, next_one.moment)
                if rate(one) > 0.01:
                    yield Span("saturated", one.moment, ends)

    def verdict_at(self, moment: Moment) -> tuple[str, str]:
        """The verdict and its reason."""
        if not self.seen or moment < (self.seen[0].clock + 30_000, -1):
            return "warming_up", "warming_up"
        standing = Counter(
            span.what for span in self.spans() if span.begins <= moment < span.ends
        )
        if standing["lost"]:
            return "failing", "lost"
        undelivered = standing["undelivered"]
        if undelivered > 0.01 * standing["pair"]:
            return "failing", "undelivered"
        missed = standing["missed"]
        if missed > 0.05 * (missed + standing["met"]):
            return "failing", "unacknowledged"
        if undelivered:
            return "degraded", "undelivered"
        if standing["gap"] or standing["recovered"]:
            return "degraded", "recovering"
        if missed:
            return "degraded", "unacknowledged"
        if standing["expired"]:
            return "degraded", "repair_expired"
        if standing["saturated"]:
            return "degraded", "bloom_saturated"
        if not standing["content"]:
            return "quiet", "quiet"
        return "ok", "ok" if standing["attributed"] else "no_senders"

    def last_moment(self) -> Moment:
        """The end, with every frame before it."""
        return self.end, self.seen[-1].place if self.seen else -1

    def verdict_since(self) -> int | None:
        """The clock at which the verdict became what it is; none before a frame."""
        if not self.seen:
            return None
        first = self.seen[0]
        moments = {first.moment, (first.clock + 30_000, -1)}
        for span in self.spans():
            moments |= {span.begins, span.ends}
        since, verdict = first.clock, ""
        for moment in sorted(moments):
            if moment[0] <= self.end and self.verdict_at(moment)[0] != verdict:
                since, verdict = moment[0], self.verdict_at(moment)[0]
        return since
