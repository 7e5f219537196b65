"""Shows past verdicts as a strip of bars, a sentence, and rows of a table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from connectors.web import words
from connectors.web.sources import StoredViews, shown_until_ms
from sds_core.observer.minutes import MINUTE_MS
from sds_core.observer.shown_verdicts import (
    DAY_MS,
    NOT_WATCHED,
    WORST_FIRST,
    Span,
    minutes_by_verdict,
    spans_of,
    worst,
)
from sds_core.observer.verdict import Verdict

LISTED_SPANS = 100
"""Maximum number of rows in the table, which open pages request again and again."""

_HOUR_MS = 3_600_000
_MOST_BARS = 96
_STEPS_MS = (60_000, 300_000, 900_000)
"""Possible lengths of a step in a strip of at most 24 hours, ms, shortest first. The
strip has the first length with which `_MOST_BARS` steps cover its time."""

_WIDTH, _HEIGHT = 10, 16

_PIECES = {
    Verdict.FAILING.value: ((0, 16),),
    Verdict.BLIND.value: ((0, 6), (10, 6)),
    Verdict.DEGRADED.value: ((5, 11),),
    Verdict.OK.value: ((10, 6),),
    Verdict.WARMING_UP.value: ((13, 3),),
    Verdict.QUIET.value: ((14, 2),),
    NOT_WATCHED: ((7, 2),),
}
"""Verdict -> top and height of each piece of its bar. The bars of two verdicts differ
in shape, so they can be distinguished without colours."""

_ALWAYS_NAMED = (Verdict.FAILING.value, Verdict.BLIND.value, NOT_WATCHED)
_FINE = (Verdict.OK.value, Verdict.QUIET.value)


@dataclass(frozen=True, slots=True)
class Strip:
    """The shown verdicts of a view as bars, and the start and end of the strip, UTC."""

    picture: Markup
    begin: str
    end: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A view's shown verdicts of the last 24 hours, for the view's page.

    Attributes:
        heading: Heading with the period that the strip covers; less than 24 hours if
            earlier verdicts are unknown.
        step: Length of a step of the strip, in words.
        spans: At most `LISTED_SPANS` spans, newest first. Each has its start and end in
            UTC, its verdict as a key of `words.SHOWN`, and its reason.
        hidden: Number of earlier spans that `spans` omits.
    """

    heading: str
    step: str
    sentence: str
    strip: Strip
    spans: Sequence[tuple[str, str, str, str]]
    hidden: int


def hour_strips(stored: StoredViews | None, names: Collection[str]) -> dict[str, Strip]:
    """Return the strips of the last hour for the views in `names`, by name."""
    until_ms = shown_until_ms(stored)
    if stored is None or until_ms is None:
        return {}
    since_ms = until_ms - _HOUR_MS
    found = stored.find_verdicts(names, since_ms, until_ms)
    return {
        name: _strip(spans_of(rows, since_ms, until_ms), since_ms, until_ms, MINUTE_MS)
        for name, rows in found.items()
    }


def shown_of(stored: StoredViews | None, name: str) -> Shown | None:
    """Return a view's shown verdicts of the last 24 hours; None if unknown."""
    until_ms = shown_until_ms(stored)
    if stored is None or until_ms is None:
        return None
    since_ms = until_ms - DAY_MS
    rows = stored.find_verdicts([name], since_ms, until_ms).get(name, ())
    spans = spans_of(rows, since_ms, until_ms)
    if not spans:
        return None
    begin_ms = spans[0].begin_ms
    step_ms = next(one for one in _STEPS_MS if one * _MOST_BARS >= until_ms - begin_ms)
    time = "of the last 24 h"
    if begin_ms > since_ms:
        time = f"since {words.since(begin_ms, until_ms)}"
    newest = spans[: -LISTED_SPANS - 1 : -1]
    return Shown(
        f"Verdicts {time}",
        words.duration(step_ms),
        _sentence(spans, time),
        # The strip starts and ends at multiples of the step.
        _strip(
            spans,
            begin_ms // step_ms * step_ms,
            -(-until_ms // step_ms) * step_ms,
            step_ms,
        ),
        [
            (
                words.since(one.begin_ms, until_ms),
                words.since(one.end_ms, until_ms),
                one.verdict,
                words.past_reason(one.reason),
            )
            for one in newest
        ],
        len(spans) - len(newest),
    )


def _sentence(spans: Sequence[Span], time: str) -> str:
    minutes = minutes_by_verdict(spans)
    fine = sum(minutes[verdict] for verdict in _FINE)
    others = [
        f"{words.SHOWN[verdict].lower()} {words.number(minutes[verdict])} min"
        for verdict in WORST_FIRST
        if verdict in _ALWAYS_NAMED or (minutes[verdict] and verdict not in _FINE)
    ]
    share = words.share(fine, sum(minutes.values()), 1)
    return f"OK or quiet {share} {time}; {', '.join(others)}."


def _strip(spans: Sequence[Span], since_ms: int, until_ms: int, step_ms: int) -> Strip:
    count = (until_ms - since_ms) // step_ms
    label = ", ".join(
        f"{words.SHOWN[verdict]} {words.number(minutes)} min"
        for verdict, minutes in minutes_by_verdict(spans).items()
        if minutes
    )
    begin, end = words.since(since_ms, until_ms), words.since(until_ms, until_ms)
    picture = Markup(
        '<svg class="strip" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" '
        'aria-label="{} to {}: {}">{}</svg>'
    ).format(
        _WIDTH * count,
        _HEIGHT,
        begin,
        end,
        label or "nothing is known",
        Markup().join(
            bar.drawn(until_ms) for bar in _bars(spans, since_ms, step_ms, count)
        ),
    )
    return Strip(picture, begin, end)


class _Bar(NamedTuple):
    """One bar, for consecutive steps that show the same verdict."""

    first: int
    steps: int
    spans: Sequence[Span]

    def continues_in(self, found: Sequence[Span]) -> bool:
        return (
            len(self.spans) == len(found) == 1
            and self.spans[0].end_ms == found[0].begin_ms
            and self.spans[0][2:] == found[0][2:]
        )

    def longer(self, found: Sequence[Span]) -> _Bar:
        span = self.spans[0]._replace(end_ms=found[0].end_ms)
        return _Bar(self.first, self.steps + 1, [span])

    def drawn(self, until_ms: int) -> Markup:
        verdict = worst(self.spans).verdict
        left, width = _WIDTH * self.first, _WIDTH * self.steps
        path = "".join(
            f"M{left} {top}h{width}v{height}h-{width}z"
            for top, height in _PIECES[verdict]
        )
        begin = words.since(self.spans[0].begin_ms, until_ms)
        end = words.since(self.spans[-1].end_ms, until_ms)
        parts = [
            f"{_named(one)} {words.number(_minutes(one))} min" for one in self.spans
        ]
        what = "; ".join(parts) if len(parts) > 1 else _named(self.spans[0])
        return Markup(
            '<path class="{}" d="{}"><title>{} to {}: {}</title></path>'
        ).format(verdict, path, begin, end, what)


def _bars(spans: Sequence[Span], since_ms: int, step_ms: int, count: int) -> list[_Bar]:
    if step_ms == MINUTE_MS:
        # Fast path for the start page, which has hundreds of strips. Spans consist of
        # whole minutes, so each span can be a bar.
        return [
            _Bar((span.begin_ms - since_ms) // step_ms, _minutes(span), [span])
            for span in spans
        ]
    bars: list[_Bar] = []
    for number in range(count):
        found = _within(spans, since_ms + number * step_ms, step_ms)
        if bars and bars[-1].continues_in(found):
            bars[-1] = bars[-1].longer(found)
        elif found:
            bars.append(_Bar(number, 1, found))
    return bars


def _within(spans: Sequence[Span], begin_ms: int, step_ms: int) -> list[Span]:
    end_ms = begin_ms + step_ms
    return [
        span._replace(
            begin_ms=max(span.begin_ms, begin_ms), end_ms=min(span.end_ms, end_ms)
        )
        for span in spans
        if span.begin_ms < end_ms and span.end_ms > begin_ms
    ]


def _named(span: Span) -> str:
    return f"{words.SHOWN[span.verdict]}, {words.past_reason(span.reason)}"


def _minutes(span: Span) -> int:
    return (span.end_ms - span.begin_ms) // MINUTE_MS
