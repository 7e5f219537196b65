"""How right the monitor is about messages that are lost to single participants."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import NamedTuple

from sds_core.observer.settings import DEFAULTS
from tests.support.accuracy.play import Lack, Play
from tests.support.accuracy.seen import NEVER_MS, Seen, Spoken, pairs_of


class Undelivered(NamedTuple):
    """Pairs of a message that a tap showed and another participant that lacks it.

    Whether it does is judged at the deadline, 300 s after a frame of the participant
    first showed that it lacked the message.

    Attributes:
        found: Lacking, and said to be.
        wrong: Said to be lacking, and received by then; or the participant had come
            back from more than 300 s away less than 300 s before.
        missed: Lacking, not said to be, and a frame showed it: the participant was
            active before the message, and a first copy of its own, with a greater
            Lamport timestamp, was composed after the deadline and without the message,
            and none with it before.
        behind: Lacking, not said to be, and all such frames had Lamport timestamps
            that were not greater: these show nothing.
        unseeable: Lacking, not said to be, and there was no such frame, or only one
            shortly after a long silence, in which it may have been away.
    """

    found: int = 0
    wrong: int = 0
    missed: int = 0
    behind: int = 0
    unseeable: int = 0


def undelivered_in(play: Play, seen: Seen) -> Undelivered:
    """Compare what the monitor said of each pair with what happened."""
    counts: Counter[str] = Counter()
    unexplained = set(play.undelivered)
    for key, story, who, first in pairs_of(play, seen):
        received_ms = story["received"].get(who, NEVER_MS)
        said = play.undelivered.get((*key, who))
        unexplained.discard((*key, who))
        if said is not None:
            right = is_lasting(play, key[0], who, said, received_ms)
            counts["found" if right else "wrong"] += 1
        elif received_ms > first.at_ms + DEFAULTS.delivery_deadline_ms:
            counts[_unsaid(key[0], who, first, received_ms, seen)] += 1
    counts["wrong"] += len(unexplained)
    return Undelivered(
        counts["found"],
        counts["wrong"],
        **{name: counts[name] for name in ("missed", "behind", "unseeable")},
    )


def is_lasting(
    play: Play, channel: str, who: str, said: Lack, received_ms: int
) -> bool:
    """Whether a participant really lacked a message for as long as its deadline.

    Args:
        play: The simulation.
        channel: Where.
        who: The participant.
        said: What the monitor said of it.
        received_ms: When it received the message.
    """
    deadline_ms = DEFAULTS.delivery_deadline_ms
    # The way from the participant to the tap takes a moment.
    back_ms = said.found_ms - deadline_ms + DEFAULTS.delivery_grace_ms
    moves = play.witness.moves[channel, who]
    is_just_back = any(
        returned_ms - left_ms > deadline_ms and returned_ms > back_ms
        for (left_ms, _), (returned_ms, is_present) in itertools.pairwise(moves)
        if is_present and said.since_ms < returned_ms <= said.found_ms
    )
    return received_ms > said.since_ms + deadline_ms and not is_just_back


def _unsaid(channel: str, who: str, first: Spoken, received_ms: int, seen: Seen) -> str:
    """Return why a participant that lacks a message is not reported to lack it."""
    frames = list(seen.lacking(channel, who, first, received_ms))
    if not frames or not seen.was_active(channel, who, first):
        return "unseeable"
    usable = [one for one in frames if (one.lamport or 0) > (first.lamport or 0)]
    if not usable:
        return "behind"
    since_ms, deadline_ms = usable[0].at_ms, DEFAULTS.delivery_deadline_ms
    returns_ms = seen.returns_ms(channel, who)
    for one in usable:
        # A silent participant may have been away; once it has the time anew.
        back_ms = [ms for ms in returns_ms if since_ms < ms <= one.at_ms]
        begin_ms = back_ms[0] if len(back_ms) == 1 else since_ms
        if one.composed_ms > begin_ms + deadline_ms:
            return "missed"
    return "unseeable"
