"""How right the monitor is: what it concluded, beside what happened.

What happened is told in true time and what was seen in that of the taps, which in one
scenario is two seconds ahead: too little to matter for deadlines of minutes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from sds_core.message_channel.events import Cause
from sds_core.observer.incidents import IncidentKind
from sds_core.observer.settings import DEFAULTS
from sds_core.simulation.comparison import compare
from tests.support.accuracy.play import Play, Said
from tests.support.accuracy.seen import (
    MessageKey,
    Seen,
    Story,
    has_content,
    others_of,
    pairs_of,
    reached_at_once,
    stories_of,
    was_had,
)
from tests.support.accuracy.undelivered import Undelivered, undelivered_in
from tests.support.accuracy.verdicts import wrong_blind_ms, wrong_verdicts_ms


class Losses(NamedTuple):
    """Messages that only their sender had and that no tap saw.

    The first four are those whose deadline has passed as dependencies that were named
    after the warm-up and not seen; whether others had them is judged at that deadline.

    Attributes:
        found: Lost, and said to be.
        wrong: Said to be lost, and somebody else had it.
        missed: Lost, and not said to be.
        tap_gaps: Missed by the taps alone, and not said to be lost.
        stale: Of those found, still said to be lost at the end although somebody else
            has received it since.
        unnamed: Never received by anybody else, and named in no frame that a tap
            showed.
        hidden: Never received by anybody else, and named only in the warm-up or where
            the monitor takes it to be older than its first sight.
        trailing: Never received by anybody else, but shown by a tap: no dependency is
            missing there.
        undecided: Never received by anybody else, and named too shortly before the end.
    """

    found: int = 0
    wrong: int = 0
    missed: int = 0
    tap_gaps: int = 0
    stale: int = 0
    unnamed: int = 0
    hidden: int = 0
    trailing: int = 0
    undecided: int = 0


class Acknowledgements(NamedTuple):
    """What the monitor reported of acknowledgements.

    Attributes:
        definite: Messages said to be definitely acknowledged.
        differing: Those that only the truth or only the monitor has.
        error_ms: Sum of the differences of their latencies from the truth's.
        wrong: Those of which nobody else had the message by then.
        probable: Messages said to be probably acknowledged.
        excess: How many more that is, channel by channel, than the truth's, whose
            filters hold what was really received.
        silent: Said to be unacknowledged, and nobody else had it by the deadline.
        unshown: Said to be unacknowledged, and somebody else had it by the deadline.
    """

    definite: int = 0
    differing: int = 0
    error_ms: int = 0
    wrong: int = 0
    probable: int = 0
    excess: int = 0
    silent: int = 0
    unshown: int = 0


class Reach(NamedTuple):
    """What the first transmission of messages really reached.

    Attributes:
        pairs: Of a message that a tap showed and another participant of its dialect
            who was present when it was sent, received it later, or was active.
        reached: Those that its first sending reached.
    """

    pairs: int = 0
    reached: int = 0


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of one simulation, or the sum of several.

    Attributes:
        plays: How many simulations.
        differing: Figures of the report that are not the truth's.
        messages: With content that were sent.
        losses: Of messages to everybody.
        undelivered: Losses of messages to single participants.
        deliveries: How many pairs the monitor said to be ``first_pass``, ``recovered``
            or ``lost`` and what brought the message really: the ``first`` sending, a
            ``later`` one, or ``none`` at all.
        reach: What really arrived at once.
        acknowledgements: Of messages.
        rebroadcasts: How many rebroadcasts were called what, by real cause.
        verdicts_ms: Event time of all channels under each verdict and its reason.
        wrong_verdicts_ms: The part of it in which the verdict was wrong; see
            `wrong_verdicts`.
        old_repairs: Repairs that a tap saw, of messages older than the horizon.
        sync_repairs: Repairs that a tap saw, of sync frames.
        repair: Requests, episodes and responses, as in the report.
        gaps: Stretches in which a tap recorded nothing.
        wrong_blind_ms: Event time of all channels under the verdict blind, while a tap
            of the channel had no gap that explains it.
    """

    plays: int = 0
    differing: int = 0
    messages: int = 0
    losses: Losses = field(default_factory=Losses)
    undelivered: Undelivered = field(default_factory=Undelivered)
    deliveries: Counter[tuple[str, str]] = field(default_factory=Counter)
    reach: Reach = field(default_factory=Reach)
    acknowledgements: Acknowledgements = field(default_factory=Acknowledgements)
    rebroadcasts: Counter[tuple[Said, Cause]] = field(default_factory=Counter)
    verdicts_ms: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong_verdicts_ms: Counter[tuple[str, str]] = field(default_factory=Counter)
    old_repairs: int = 0
    sync_repairs: int = 0
    repair: Counter[str] = field(default_factory=Counter)
    gaps: int = 0
    wrong_blind_ms: int = 0

    def __add__(self, other: Figures) -> Figures:
        """Add all counts."""
        return Figures(
            *(
                _sum(getattr(self, one.name), getattr(other, one.name))
                for one in fields(self)
            )
        )


def figures_of(play: Play) -> Figures:
    """Return the figures of one simulation."""
    seen = Seen(play)
    truth, report = play.truth, play.monitor.report()
    repairs = list(_seen_repairs(truth))
    return Figures(
        plays=1,
        differing=sum(not one.same for one in compare(truth, report)),
        messages=sum(has_content(story) for _, story in stories_of(truth)),
        losses=_losses(play, seen),
        undelivered=undelivered_in(play, seen),
        deliveries=_deliveries(truth),
        reach=_reach(play, seen),
        acknowledgements=_acknowledgements(play, report),
        rebroadcasts=play.rebroadcasts,
        verdicts_ms=_verdicts_ms(play),
        wrong_verdicts_ms=wrong_verdicts_ms(play, seen),
        old_repairs=sum(
            at_ms - story["sent_ms"] > DEFAULTS.horizon_ms for story, at_ms in repairs
        ),
        sync_repairs=sum(not has_content(story) for story, _ in repairs),
        repair=Counter(report["totals"]["repair"]),
        gaps=sum(len(tap["gaps"]) for tap in truth["taps"].values()),
        wrong_blind_ms=wrong_blind_ms(play),
    )


def share(part: int, rest: int) -> float | None:
    """Return the first as a share of both, in [0, 1]; None if both are 0."""
    return part / (part + rest) if part + rest else None


def _seen_repairs(truth: Mapping[str, Any]) -> Iterator[tuple[Story, int]]:
    """Yield each repair that a tap saw: the message's story, and when it was sent."""
    for _, story in stories_of(truth):
        for sending in story["transmissions"]:
            if sending["cause"] == Cause.REPAIR and sending["seen_by"]:
                yield story, sending["at_ms"]


def _verdicts_ms(play: Play) -> Counter[tuple[str, str]]:
    spent_ms: Counter[tuple[str, str]] = Counter()
    for span in play.verdicts:
        spent_ms[span.verdict, span.reason] += span.to_ms - span.from_ms
    return spent_ms


def _losses(play: Play, seen: Seen) -> Losses:
    counts: Counter[str] = Counter()
    incidents = play.monitor.incidents
    unexplained = {key[::2] for key in incidents if key[1] == IncidentKind.LOST}
    for key, story in stories_of(play.truth):
        gap = story["gap"]
        if gap is not None and gap["outcome"] in ("lost", "tap_gap"):
            incident = incidents.get((key[0], IncidentKind.LOST, key[1]))
            unexplained.discard(key)
            if was_had(story, gap["deadline_ms"]):
                counts["tap_gaps" if incident is None else "wrong"] += 1
            elif incident is None:
                counts["missed"] += 1
            else:
                counts["found"] += 1
                counts["stale"] += incident.ended_ms is None and bool(others_of(story))
        elif has_content(story) and story["never_received"] and not others_of(story):
            counts[_unseeable(key, story, seen)] += 1
    counts["wrong"] += len(unexplained)
    return Losses(**counts)


def _unseeable(key: MessageKey, story: Story, seen: Seen) -> str:
    """Return why a message that nobody else received is not found to be lost."""
    if key in seen.first:
        return "trailing"
    if story["gap"] is not None:
        return "undecided"
    return "hidden" if key in seen.named else "unnamed"


def _reach(play: Play, seen: Seen) -> Reach:
    first = [reached_at_once(story, who) for _, story, who, _ in pairs_of(play, seen)]
    return Reach(len(first), sum(first))


def _deliveries(truth: Mapping[str, Any]) -> Counter[tuple[str, str]]:
    """What a correct monitor concludes of each pair, and what happened.

    The monitor tells only how many there are of each, which is compared with the truth.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for _, story in stories_of(truth):
        for who, delivery in story["deliveries"].items():
            said = delivery["outcome"]
            if said == "open":
                continue
            if who not in story["received"]:
                really = "none"
            else:
                really = "first" if reached_at_once(story, who) else "later"
            counts["lost" if said == "retracted" else said, really] += 1
    return counts


def _acknowledgements(play: Play, report: Mapping[str, Any]) -> Acknowledgements:
    stories = dict(stories_of(play.truth))
    told = {
        (channel, one.message_id): one
        for channel, acknowledged in play.monitor.acknowledgements.items()
        for one in acknowledged
    }
    true_ms = {
        (channel, message_id): latency_ms
        for channel, figures in play.truth["channels"].items()
        for message_id, latency_ms in figures["ack_latencies"]
    }
    excess = sum(
        max(
            0,
            report["channels"][channel]["acknowledged"]["probable"]
            - figures["acknowledged"]["probable"],
        )
        for channel, figures in play.truth["channels"].items()
    )
    unacknowledged = [
        was_had(stories[channel, message_id], incident.found_ms)
        for (channel, kind, message_id), incident in play.monitor.incidents.items()
        if kind == IncidentKind.UNACKNOWLEDGED
    ]
    return Acknowledgements(
        definite=len(told),
        differing=len(told.keys() ^ true_ms.keys()),
        error_ms=sum(
            abs(one.latency_ms - true_ms[key])
            for key, one in told.items()
            if key in true_ms
        ),
        wrong=sum(
            not was_had(stories[key], one.t0_ms + one.latency_ms)
            for key, one in told.items()
        ),
        probable=report["totals"]["acknowledged"]["probable"],
        excess=excess,
        silent=unacknowledged.count(False),
        unshown=unacknowledged.count(True),
    )


def _sum(one: Any, other: Any) -> Any:
    """Add numbers, tuples of numbers, or counters."""
    if isinstance(one, tuple):
        return type(one)(*map(_sum, one, other))
    return one + other


def total(figures: Iterable[Figures]) -> Figures:
    """Add the figures of several simulations."""
    return sum(figures, Figures())
