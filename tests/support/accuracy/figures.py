"""How right the monitor is: what it concluded, beside what happened.

What happened is told in true time and what was seen in that of the taps, which in one
scenario is two seconds ahead: too little to matter for deadlines of minutes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from sds_core.message_channel.events import Cause
from sds_core.observer.incidents import IncidentKind
from sds_core.observer.settings import DEFAULTS
from sds_core.simulation.comparison import compare
from sds_core.wire import Dialect, FrameKind
from tests.support.accuracy.play import Play, Said

_NEVER_MS = 1 << 62

Story = Mapping[str, Any]
"""What became of a message, as the truth tells it."""

MessageKey = tuple[str, str]
"""Channel and message id."""


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


class Undelivered(NamedTuple):
    """Pairs of a message that a tap showed and another participant that lacks it.

    Whether it does is judged at the deadline, 300 s after the tap showed the message.

    Attributes:
        found: Lacking, and said to be.
        wrong: Said to be lacking, and received by then.
        missed: Lacking, not said to be, and a frame showed it: the participant was
            active before the message, and a first copy of its own, with a greater
            Lamport timestamp, was composed after the deadline and without the message,
            and none with it before.
        behind: Lacking, not said to be, and all such frames had Lamport timestamps
            that were not greater: these show nothing.
        unseeable: Lacking, not said to be, and there was no such frame.
    """

    found: int = 0
    wrong: int = 0
    missed: int = 0
    behind: int = 0
    unseeable: int = 0


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
    seen = _Seen(play)
    truth, report = play.truth, play.monitor.report()
    return Figures(
        plays=1,
        differing=sum(not one.same for one in compare(truth, report)),
        messages=sum(1 for _ in _stories(truth)),
        losses=_losses(play, seen),
        undelivered=_undelivered(play, seen),
        deliveries=_deliveries(truth),
        reach=_reach(play, seen),
        acknowledgements=_acknowledgements(play, report),
        rebroadcasts=play.rebroadcasts,
        verdicts_ms=play.verdicts_ms,
    )


def share(part: int, rest: int) -> float | None:
    """Return the first as a share of both, in [0, 1]; None if both are 0."""
    return part / (part + rest) if part + rest else None


class _Spoken(NamedTuple):
    """A first copy that a tap saw."""

    place: int
    at_ms: int
    composed_ms: int
    dialect: Dialect
    lamport: int | None


class _Seen:
    """What the taps saw, indexed for lookups.

    Attributes:
        first: First copy of each message.
        named: Messages that a frame other than their own names.
        spoken: First copies by channel and sender, in topic order.
    """

    def __init__(self, play: Play) -> None:
        self.first: dict[MessageKey, _Spoken] = {}
        self.named: set[MessageKey] = set()
        self.spoken: defaultdict[tuple[str, str], list[_Spoken]] = defaultdict(list)
        numbers: set[int] = set()
        for place, sighting in enumerate(play.witness.sightings):
            sent, frame = sighting.transmission, sighting.transmission.frame
            if sent.number in numbers:
                continue
            numbers.add(sent.number)
            channel, own = sent.channel_id, frame.message_id
            self.named.update(
                (channel, entry.message_id)
                for entry in frame.causal_history
                if entry.message_id != own
            )
            spoken = _Spoken(
                place, sighting.at_ms, sent.at_ms, frame.dialect, frame.lamport
            )
            if frame.kind is FrameKind.CONTENT:
                if (channel, own) in self.first:
                    continue
                # What is sent again carries what it was composed with.
                sent_ms = play.truth["messages"][channel][own]["sent_ms"]
                spoken = spoken._replace(composed_ms=sent_ms)
                self.first[channel, own] = spoken
            self.spoken[channel, frame.sender_id].append(spoken)

    def was_active(self, channel: str, who: str, first: _Spoken) -> bool:
        """Whether a participant sent before a first copy, within the horizon."""
        since_ms = first.at_ms - DEFAULTS.horizon_ms
        return any(
            one.place < first.place and since_ms <= one.at_ms < first.at_ms
            for one in self.spoken[channel, who]
        )

    def lacking(
        self, channel: str, who: str, first: _Spoken, until_ms: int
    ) -> Iterator[_Spoken]:
        """Frames of a participant that were composed without a message.

        After the deadline, and before it is first seen to have it.

        Args:
            channel: Where.
            who: The participant.
            first: First copy of the message.
            until_ms: When the participant received it.
        """
        frames = self.spoken[channel, who]
        begin = bisect_right(frames, first.place, key=lambda one: one.place)
        for one in frames[begin:]:
            if one.lamport is None:
                # Ephemeral: without a filter.
                continue
            if one.composed_ms >= until_ms:
                return
            if one.composed_ms > first.at_ms + DEFAULTS.delivery_deadline_ms:
                yield one


def _stories(truth: Mapping[str, Any]) -> Iterator[tuple[MessageKey, Story]]:
    """Return every message that was sent."""
    for channel, stories in truth["messages"].items():
        for message_id, story in stories.items():
            if story["transmissions"]:
                yield (channel, message_id), story


def _others(story: Story) -> dict[str, int]:
    """Return who else received a message, and when."""
    return {
        who: at_ms for who, at_ms in story["received"].items() if who != story["sender"]
    }


def _was_had(story: Story, by_ms: int) -> bool:
    """Whether any other participant had a message by a time."""
    return any(at_ms <= by_ms for at_ms in _others(story).values())


def _losses(play: Play, seen: _Seen) -> Losses:
    counts: Counter[str] = Counter()
    incidents = play.monitor.incidents
    unexplained = {key[::2] for key in incidents if key[1] == IncidentKind.LOST}
    for key, story in _stories(play.truth):
        gap = story["gap"]
        if gap is not None and gap["outcome"] in ("lost", "tap_gap"):
            incident = incidents.get((key[0], IncidentKind.LOST, key[1]))
            unexplained.discard(key)
            if _was_had(story, gap["deadline_ms"]):
                counts["tap_gaps" if incident is None else "wrong"] += 1
            elif incident is None:
                counts["missed"] += 1
            else:
                counts["found"] += 1
                counts["stale"] += incident.ended_ms is None and bool(_others(story))
        elif story["never_received"] and not _others(story):
            counts[_unseeable(key, story, seen)] += 1
    counts["wrong"] += len(unexplained)
    return Losses(**counts)


def _unseeable(key: MessageKey, story: Story, seen: _Seen) -> str:
    """Return why a message that nobody else received is not found to be lost."""
    if key in seen.first:
        return "trailing"
    if story["gap"] is not None:
        return "undecided"
    return "hidden" if key in seen.named else "unnamed"


def _pairs(play: Play, seen: _Seen) -> Iterator[tuple[MessageKey, Story, str, _Spoken]]:
    """Yield each message that a tap saw with each receiver and its first copy."""
    members: defaultdict[str, dict[str, Dialect]] = defaultdict(dict)
    for (channel, who), dialect in play.witness.dialects.items():
        members[channel][who] = dialect
    for key, story in _stories(play.truth):
        first = seen.first.get(key)
        if first is None:
            continue
        present = {*story["received"], *story["never_received"]}
        for who, dialect in members[key[0]].items():
            if (
                who != story["sender"]
                and dialect is first.dialect
                and (who in present or seen.was_active(key[0], who, first))
            ):
                yield key, story, who, first


def _undelivered(play: Play, seen: _Seen) -> Undelivered:
    counts: Counter[str] = Counter()
    unexplained = set(play.undelivered)
    for key, story, who, first in _pairs(play, seen):
        received_ms = story["received"].get(who, _NEVER_MS)
        said = (*key, who) in unexplained
        unexplained.discard((*key, who))
        if received_ms <= first.at_ms + DEFAULTS.delivery_deadline_ms:
            counts["wrong"] += said
        elif said:
            counts["found"] += 1
        else:
            counts[_unsaid(key[0], who, first, received_ms, seen)] += 1
    counts["wrong"] += len(unexplained)
    return Undelivered(**counts)


def _unsaid(
    channel: str, who: str, first: _Spoken, received_ms: int, seen: _Seen
) -> str:
    """Return why a participant that lacks a message is not reported to lack it."""
    frames = list(seen.lacking(channel, who, first, received_ms))
    if not frames or not seen.was_active(channel, who, first):
        return "unseeable"
    is_usable = any((one.lamport or 0) > (first.lamport or 0) for one in frames)
    return "missed" if is_usable else "behind"


def _reach(play: Play, seen: _Seen) -> Reach:
    first = [
        story["received_in"].get(who) == 0 for _, story, who, _ in _pairs(play, seen)
    ]
    return Reach(len(first), sum(first))


def _deliveries(truth: Mapping[str, Any]) -> Counter[tuple[str, str]]:
    """What a correct monitor concludes of each pair, and what happened.

    The monitor tells only how many there are of each, which is compared with the truth.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for _, story in _stories(truth):
        for who, delivery in story["deliveries"].items():
            said = delivery["outcome"]
            if said == "open":
                continue
            if who not in story["received"]:
                really = "none"
            else:
                really = "first" if story["received_in"].get(who) == 0 else "later"
            counts["lost" if said == "retracted" else said, really] += 1
    return counts


def _acknowledgements(play: Play, report: Mapping[str, Any]) -> Acknowledgements:
    stories = dict(_stories(play.truth))
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
        _was_had(stories[channel, message_id], incident.found_ms)
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
            not _was_had(stories[key], one.t0_ms + one.latency_ms)
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
