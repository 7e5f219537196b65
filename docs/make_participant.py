"""Measures what profiles lose, for docs/participant.md.

``python -m docs.make_participant`` runs it; it takes some minutes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from docs.page_part import PagePart, table
from sds_core.message_channel.events import (
    Acknowledged,
    Cause,
    Delivered,
    Missing,
    Received,
)
from sds_core.message_channel.profile import LamportRule, Profile
from sds_core.simulation.log import Entry, Happening, Presence, Transmission
from sds_core.simulation.profile_share import ProfileShare
from sds_core.simulation.scenario import Scenario
from sds_core.simulation.simulator import simulate

PART = PagePart("participant.md", "make_participant", "what profiles lose")

START_MS = 1_786_000_000_000
"""Start of each simulation, Unix ms."""

LOSS = 0.05
JOINING_SHARE = 0.5
_TALK_S = 1_800
_SETTLE_S = 3_600
"""Longer than a late participant repairs messages from before its arrival."""


class Situation(NamedTuple):
    """A group, of which a share joins late.

    Attributes:
        name: Heading of its columns.
        participants: Number of participants.
        mean_interval_s: Mean time between two messages of the channel.
        seeds: Seeds of the simulations.
    """

    name: str
    participants: int
    mean_interval_s: float
    seeds: range


SITUATIONS = (
    Situation("6 participants, a message every 20 s", 6, 20.0, range(1, 41)),
    Situation("10 participants, a message every 3 s", 10, 3.0, range(1, 7)),
)


HISTORY_SIZES = (2, 5, 10, 20)
CLOCKS = (LamportRule.COUNT, LamportRule.FOLLOW_CLOCK)


def _share(
    base: Literal["default", "spec", "js_sds", "nim_sds"], **options: object
) -> ProfileShare:
    """Return a share with the profile's own acknowledgements."""
    return ProfileShare(base=base, overrides={"possible_acks_capped": False, **options})


_SPEC = Profile.spec()
SPEC_SHARE = _share(
    "spec",
    requests_taken_per_message=_SPEC.requests_taken_per_message,
    after_request=str(_SPEC.after_request),
    repair_retention_ms=_SPEC.repair_retention_ms,
)

PROFILES = (
    SPEC_SHARE,
    *(
        _share("default", lamport_rule=str(rule), causal_history_size=size)
        for rule in CLOCKS
        for size in HISTORY_SIZES
    ),
    _share("js_sds"),
    _share("nim_sds"),
)
"""The documents', the default with other clocks and histories, the libraries'."""

_NAMES = {
    Profile(): "`Profile()`",
    Profile.spec(): "`Profile.spec()`",
    Profile.js_sds(): "`Profile.js_sds()`",
    Profile.nim_sds(): "`Profile.nim_sds()`",
}


@dataclass(kw_only=True)
class Losses:
    """What became of the messages of some simulations.

    A delivery is a message and another participant that was present when it was sent.

    Attributes:
        deliveries: Number of deliveries.
        silent: Those that never happened, and nobody knows: the sender saw the message
            acknowledged, and the receiver never received or missed it.
        reported: Those that never happened, of which either knows: the message was not
            acknowledged, or the receiver misses it, or holds it and waits for another.
        joins: Participants that joined late.
        joins_with_loss: Those to or from whom some delivery never happened.
        frames: Broadcasts.
        frame_bytes: Their bytes.
    """

    deliveries: int = 0
    silent: int = 0
    reported: int = 0
    joins: int = 0
    joins_with_loss: int = 0
    frames: int = 0
    frame_bytes: int = 0

    def count(self, entries: Iterable[Entry]) -> None:
        """Add one simulation of one channel."""
        joined_ms: dict[str, int] = {}
        due: dict[str, tuple[str, frozenset[str]]] = {}
        delivered: defaultdict[str, set[str]] = defaultdict(set)
        known: set[tuple[str, str]] = set()
        acknowledged: set[str] = set()
        for entry in entries:
            if isinstance(entry, Presence):
                joined_ms[entry.participant] = entry.at_ms
            elif isinstance(entry, Transmission):
                self.frames += 1
                self.frame_bytes += len(entry.value)
                if entry.cause is Cause.CONTENT:
                    receivers = joined_ms.keys() - {entry.by}
                    due[entry.frame.message_id] = entry.by, frozenset(receivers)
            elif isinstance(entry, Happening):
                match entry.event:
                    case Delivered(message_id):
                        delivered[message_id].add(entry.participant)
                    case Missing(message_id) | Received(message_id):
                        known.add((message_id, entry.participant))
                    case Acknowledged(message_id):
                        acknowledged.add(message_id)
        affected: set[str] = set()
        for message_id, (sender, receivers) in due.items():
            self.deliveries += len(receivers)
            for receiver in receivers - delivered[message_id]:
                affected |= {sender, receiver}
                if message_id in acknowledged and (message_id, receiver) not in known:
                    self.silent += 1
                else:
                    self.reported += 1
        late = {name for name, at_ms in joined_ms.items() if at_ms > START_MS}
        self.joins += len(late)
        self.joins_with_loss += len(late & affected)


def measured(
    share: ProfileShare, situation: Situation, seeds: Iterable[int] | None = None
) -> Losses:
    """Return what participants of a profile lose in a situation.

    Args:
        share: The profile of all.
        situation: The group.
        seeds: By default those of the situation.
    """
    scenario = Scenario.from_mapping(
        {
            "name": "losses",
            "description": situation.name,
            "duration_s": _TALK_S,
            "settle_s": _SETTLE_S,
            "participants": situation.participants,
            "channels": [
                {
                    "name": "channel",
                    "traffic": {"mean_interval_s": situation.mean_interval_s},
                }
            ],
            "profiles": [{"base": share.base, "overrides": share.overrides}],
            "network": {"loss": LOSS},
            "churn": {"joining_share": JOINING_SHARE},
        }
    )
    losses = Losses()
    for seed in situation.seeds if seeds is None else seeds:
        losses.count(simulate(scenario, seed, START_MS))
    return losses


def block(rows: Iterable[tuple[Profile, Sequence[Losses]]]) -> str:
    """Return the table, between its markers.

    Args:
        rows: Profiles, and what each loses in each situation.
    """
    head = ["clock", "history", "profile"]
    for situation in SITUATIONS:
        head += [
            f"lost ({situation.name})",
            "reported",
            "joins",
            "bytes a frame",
        ]
    lines = []
    for profile, row in rows:
        cells = [
            str(profile.lamport_rule),
            str(profile.causal_history_size),
            _NAMES.get(profile, ""),
        ]
        for losses in row:
            cells += [
                f"{losses.silent:,} of {losses.deliveries:,}",
                f"{losses.reported:,}",
                f"{losses.joins_with_loss} of {losses.joins}",
                f"{losses.frame_bytes // losses.frames:,}",
            ]
        lines.append(cells)
    return "\n".join([PART.begin, "", *table(head, lines), "", PART.end])


def main() -> None:
    """Write the table into the page."""
    rows = [
        (share.profile(), [measured(share, situation) for situation in SITUATIONS])
        for share in PROFILES
    ]
    PART.write(block(rows))


if __name__ == "__main__":
    main()
