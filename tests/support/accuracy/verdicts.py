"""How long the monitor had verdicts for which nothing that happened is a reason."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from sds_core.observer.incidents import IncidentKind
from sds_core.observer.settings import DEFAULTS
from tests.support.accuracy.play import Play, VerdictSpan
from tests.support.accuracy.seen import (
    NEVER_MS,
    Seen,
    pairs_of,
    reached_at_once,
    stories_of,
    was_had,
)
from tests.support.accuracy.undelivered import is_lasting

_WINDOW_MS = DEFAULTS.verdict_window_ms + 1_000
"""How long something counts in a verdict; events leave the window in whole seconds."""

_BAD = ("failing", "degraded")
_LOSSES = ("lost", "undelivered")

_TOLD_MS = 2 * DEFAULTS.tap_hole_ms
"""How much later than a gap of a tap a record may show it."""

Spans = list[tuple[int, int]]
"""Event times from and to, Unix ms."""


def wrong_verdicts_ms(play: Play, seen: Seen) -> Counter[tuple[str, str]]:
    """Return the event time under wrong verdicts, by verdict and reason.

    Failing and degraded are wrong while nothing that really happened gives their
    reason, ok and quiet while a real loss that was found is in the window. What a
    filter's fill says is always right; `wrong_blind_ms` judges blind.
    """
    causes = _causes(play, seen)
    wrong_ms: Counter[tuple[str, str]] = Counter()
    for span in play.verdicts:
        length_ms = span.to_ms - span.from_ms
        found = [one for name in _LOSSES for one in causes[span.channel, name]]
        if span.verdict in ("ok", "quiet"):
            wrong = _covered(span, found)
        elif (
            span.verdict not in ("failing", "degraded")
            or span.reason == "bloom_saturated"
        ):
            continue
        else:
            wrong = length_ms - _covered(span, causes[span.channel, span.reason])
        if wrong:
            wrong_ms[span.verdict, span.reason] += wrong
    return wrong_ms


def wrong_blind_ms(play: Play) -> int:
    """Return the event time of all channels that were wrongly called blind.

    A channel is rightly blind while each tap that showed it had a gap in the window.
    """
    taps: defaultdict[str, set[str]] = defaultdict(set)
    for sighting in play.witness.sightings:
        taps[sighting.transmission.channel_id].add(sighting.tap)
    explained = {
        name: [
            (gap["from_ms"], gap["until_ms"] + _TOLD_MS + _WINDOW_MS)
            for gap in tap["gaps"]
        ]
        for name, tap in play.truth["taps"].items()
    }
    wrong_ms = 0
    for span in play.verdicts:
        if span.verdict == "blind":
            least_ms = min(_covered(span, explained[tap]) for tap in taps[span.channel])
            wrong_ms += span.to_ms - span.from_ms - least_ms
    return wrong_ms


def _causes(play: Play, seen: Seen) -> defaultdict[tuple[str, str], Spans]:
    """When each reason is right, by channel and reason."""
    causes: defaultdict[tuple[str, str], Spans] = defaultdict(list)
    stories = dict(stories_of(play.truth))
    for (channel, kind, message_id), incident in play.monitor.incidents.items():
        story = stories.get((channel, message_id))
        ended_ms = NEVER_MS if incident.ended_ms is None else incident.ended_ms
        until_ms = incident.found_ms + _WINDOW_MS
        if story is None or kind == IncidentKind.UNDELIVERED:
            continue
        if was_had(story, incident.found_ms):
            continue
        if kind == IncidentKind.LOST:
            until_ms = min(until_ms, ended_ms)
        causes[channel, kind].append((incident.found_ms, until_ms))
    for (channel, message_id, who), said in play.undelivered.items():
        story = stories.get((channel, message_id))
        if story is None:
            continue
        received_ms = story["received"].get(who, NEVER_MS)
        if is_lasting(play, channel, who, said, received_ms):
            shown_ms = seen.next_frame_ms(channel, who, received_ms)
            until_ms = min(said.found_ms + _WINDOW_MS, shown_ms)
            causes[channel, "undelivered"].append((said.found_ms, until_ms))
    misses = [(key, story, who) for key, story, who, _ in pairs_of(play, seen)]
    # What no tap saw is missing all the same.
    misses += [
        (key, story, who)
        for key, story in stories.items()
        if key not in seen.first
        for who in (*story["received"], *story["never_received"])
    ]
    for (channel, _), story, who in misses:
        if reached_at_once(story, who):
            continue
        received_ms = story["received"].get(who, NEVER_MS)
        until_ms = seen.next_frame_ms(channel, who, received_ms) + _WINDOW_MS
        causes[channel, "recovering"].append((story["sent_ms"], until_ms))
        # A request may expire after the message has come.
        until_ms += DEFAULTS.repair_window_nim_ms
        causes[channel, "repair_expired"].append((story["sent_ms"], until_ms))
    return causes


def _covered(span: VerdictSpan, causes: Iterable[tuple[int, int]]) -> int:
    """How long at least one of the causes held in a span."""
    covered_ms, until_ms = 0, span.from_ms
    for from_ms, to_ms in sorted(causes):
        begin_ms, end_ms = max(from_ms, until_ms), min(to_ms, span.to_ms)
        if end_ms > begin_ms:
            covered_ms += end_ms - begin_ms
            until_ms = end_ms
    return covered_ms
