"""What the taps saw of a simulation, beside what happened, indexed for lookups."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sds_core.observer.settings import DEFAULTS
from sds_core.wire import Dialect, FrameKind
from tests.support.accuracy.play import Play

NEVER_MS = 1 << 62

Story = Mapping[str, Any]
"""What became of a message, as the truth tells it."""

MessageKey = tuple[str, str]
"""Channel and message id."""


class Spoken(NamedTuple):
    """A first copy that a tap saw."""

    place: int
    at_ms: int
    composed_ms: int
    dialect: Dialect
    lamport: int | None


class Seen:
    """What the taps saw, indexed for lookups.

    Attributes:
        first: First copy of each content message.
        named: Messages that a frame other than their own names.
        spoken: First copies by channel and sender, in topic order.
    """

    def __init__(self, play: Play) -> None:
        self.first: dict[MessageKey, Spoken] = {}
        self.named: set[MessageKey] = set()
        self.spoken: defaultdict[tuple[str, str], list[Spoken]] = defaultdict(list)
        numbers: set[int] = set()
        shown: set[MessageKey] = set()
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
            spoken = Spoken(
                place, sighting.at_ms, sent.at_ms, frame.dialect, frame.lamport
            )
            if sent.is_of_message:
                if (channel, own) in shown:
                    continue
                shown.add((channel, own))
                # What is sent again carries what it was composed with.
                sent_ms = play.truth["messages"][channel][own]["sent_ms"]
                spoken = spoken._replace(composed_ms=sent_ms)
                if frame.kind is FrameKind.CONTENT:
                    self.first[channel, own] = spoken
            self.spoken[channel, frame.sender_id].append(spoken)

    def next_frame_ms(self, channel: str, who: str, after_ms: int) -> int:
        """When a participant's first frame composed at a time or later was seen."""
        return min(
            (
                one.at_ms
                for one in self.spoken[channel, who]
                if one.composed_ms >= after_ms
            ),
            default=NEVER_MS,
        )

    def returns_ms(self, channel: str, who: str) -> list[int]:
        """When a participant spoke after a silence longer than the deadline."""
        times_ms = [one.at_ms for one in self.spoken[channel, who]]
        latest_ms = itertools.accumulate(times_ms, max)
        return [
            at_ms
            for before_ms, at_ms in zip(latest_ms, times_ms[1:], strict=False)
            if at_ms - before_ms > DEFAULTS.delivery_deadline_ms
        ]

    def was_active(self, channel: str, who: str, first: Spoken) -> bool:
        """Whether a participant sent before a first copy, within the horizon."""
        since_ms = first.at_ms - DEFAULTS.horizon_ms
        return any(
            one.place < first.place and since_ms <= one.at_ms < first.at_ms
            for one in self.spoken[channel, who]
        )

    def lacking(
        self, channel: str, who: str, first: Spoken, until_ms: int
    ) -> Iterator[Spoken]:
        """Frames of a participant that were composed without a message.

        After the message and its grace, and before the participant received it.

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
            if one.at_ms > first.at_ms + DEFAULTS.delivery_grace_ms:
                yield one


def has_content(story: Story) -> bool:
    """Whether a message is no sync frame that a library takes for one."""
    return str(story["kind"]) == FrameKind.CONTENT


def stories_of(truth: Mapping[str, Any]) -> Iterator[tuple[MessageKey, Story]]:
    """Return every message that was sent, sync frames that are repaired included."""
    for channel, stories in truth["messages"].items():
        for message_id, story in stories.items():
            if story["transmissions"]:
                yield (channel, message_id), story


def others_of(story: Story) -> dict[str, int]:
    """Return who else received a message, and when."""
    return {
        who: at_ms for who, at_ms in story["received"].items() if who != story["sender"]
    }


def was_had(story: Story, by_ms: int) -> bool:
    """Whether any other participant had a message by a time."""
    return any(at_ms <= by_ms for at_ms in others_of(story).values())


def reached_at_once(story: Story, who: str) -> bool:
    """Whether the first sending of a message reached a participant.

    What it fetched later from a Store node did not reach it at once.
    """
    latest_ms = story["sent_ms"] + DEFAULTS.delivery_grace_ms
    return story["received_in"].get(who) == 0 and story["received"][who] <= latest_ms


def pairs_of(play: Play, seen: Seen) -> Iterator[tuple[MessageKey, Story, str, Spoken]]:
    """Yield each message that a tap saw with each receiver and its first copy."""
    members: defaultdict[str, dict[str, Dialect]] = defaultdict(dict)
    for (channel, who), dialect in play.witness.dialects.items():
        members[channel][who] = dialect
    for key, story in stories_of(play.truth):
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
