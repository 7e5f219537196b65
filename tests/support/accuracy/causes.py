"""How often a stated cause is the one that the scenario made.

A statement is right only if the scenario makes this cause, and if what it says is true
of what really happened, of which the monitor saw only a part. In a network in which
everybody loses the same share at random, a statement about one participant is wrong
even if all losses are really its own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from connectors.simulator.records import simulated_records
from connectors.simulator.scenario_files import load_scenario
from sds_core.observer.blindness import causes_of
from sds_core.observer.causes import Cause
from sds_core.observer.incidents import IncidentKind
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.settings import DEFAULTS
from sds_core.observer.verdict import Verdict
from sds_core.simulation.log import Entry, Presence
from sds_core.simulation.scenario import Scenario
from sds_core.simulation.truth import Truth
from tests.support.accuracy.seen import Story, stories_of, was_had
from tests.support.accuracy.suite import NAMES, scenario_of
from tests.support.monitor import Monitor, batches

KINDS = (
    "one_sender",
    "one_participant",
    "tap_gap",
    "no_repair_requests",
    "filters_saturated",
    "retries_ended",
)

_START_MS = 1_760_000_000_000
_PARTITIONS = 4
_STEP_MS = 10_000
"""Time between two looks at what the monitor states."""

_LEAST = 3
_MOSTLY = 0.9
"""Share of the real failures that a common sender or participant must have."""

_LOOK_BACK_MS = 3 * DEFAULTS.verdict_window_ms
"""A failure is found some minutes after its message, and counts in one window."""


def made_scenario(name: str, **changes: Any) -> Scenario:
    """Return a scenario of one channel, `name`, of six participants who talk a lot."""
    profile, base = changes.pop("profile", {}), changes.pop("base", "spec")
    interval_s = changes.pop("interval_s", 4)
    mapping: dict[str, Any] = {
        "name": name,
        "description": "a scenario with a known cause",
        "duration_s": 900,
        "settle_s": 450,
        "participants": 6,
        "profiles": [{"base": base, "overrides": profile}],
        "channels": [{"name": name, "traffic": {"mean_interval_s": interval_s}}],
    }
    return Scenario.from_mapping(mapping | changes)


_NO_RETRIES = {"max_retries": 0, "causal_history_size": 20, "lost_after_ms": 60_000}
_MENDS_NOTHING = _NO_RETRIES | {"repair": False}


def _cut(from_s: int, until_s: int, direction: str, participants: int = 1) -> Any:
    span = {"from_s": from_s, "until_s": until_s}
    cut = span | {"participants": participants, "direction": direction}
    return {"partitions": [cut]}


_MADE = (
    made_scenario(
        "cut-sender",
        interval_s=3,
        profile=_MENDS_NOTHING | {"causal_history_size": 100},
        network=_cut(200, 380, "outgoing"),
    ),
    made_scenario(
        "cut-receiver", profile=_MENDS_NOTHING, network=_cut(200, 300, "incoming")
    ),
    made_scenario("deaf", network=_cut(200, 640, "incoming")),
    made_scenario("split", network=_cut(200, 640, "both", participants=3)),
    made_scenario("half-deaf", network=_cut(200, 640, "incoming", participants=3)),
    made_scenario("without-repair", profile=_MENDS_NOTHING, network={"loss": 0.03}),
    made_scenario("with-repair", profile=_NO_RETRIES, network={"loss": 0.25}),
    made_scenario(
        "small-filters",
        base="nim_sds",
        profile={
            "bloom": {"capacity": 60, "error_rate": 0.001},
            "bloom_rollover_ids": None,
            "bloom_kept_ids": 30,
        },
    ),
    made_scenario(
        "gives-up",
        interval_s=8,
        participants=3,
        profile={"max_retries": 1, "repair": False, "sync_interval_ms": 300_000},
        network={"loss": 0.75},
    ),
    made_scenario(
        "tail",
        network={"loss": 0.01},
        channels=[
            {
                "name": "tail",
                "traffic": {"mean_interval_s": 8},
                "lost_tail": {"messages": 8},
            }
        ],
    ),
)

CAUSED: Mapping[str, frozenset[str]] = {
    # Who was away lacks what was sent meanwhile, and nobody else does.
    "churn": frozenset({"one_participant"}),
    "partition": frozenset({"one_sender", "one_participant"}),
    "unrepaired": frozenset({"no_repair_requests"}),
    "cut-sender": frozenset({"one_sender", "no_repair_requests"}),
    "cut-receiver": frozenset({"one_participant", "no_repair_requests"}),
    "deaf": frozenset({"one_participant"}),
    "without-repair": frozenset({"no_repair_requests"}),
    "small-filters": frozenset({"filters_saturated"}),
    "gives-up": frozenset({"retries_ended", "no_repair_requests"}),
    "unheard": frozenset({"tap_gap"}),
    "tap-blind": frozenset({"tap_gap"}),
}
"""The causes that scenarios make; the others make none."""

_UNHEARD = Path(__file__).parents[2] / "e2e" / "unheard.toml"


def _scenarios() -> Iterator[Scenario]:
    yield from map(scenario_of, NAMES)
    unheard = load_scenario(str(_UNHEARD))
    assert isinstance(unheard, Scenario)
    yield unheard
    yield from _MADE


CAUSE_SCENARIOS: Mapping[str, Scenario] = {one.name: one for one in _scenarios()}
"""The scenarios of the other tables, and those that make a cause or could feign one."""


class Statement(NamedTuple):
    """A cause that was stated.

    Attributes:
        channel: The channel.
        cause: As it was stated first.
        is_right: Whether it was right whenever it was stated.
        from_ms, to_ms: Event time of the first and the last look at it.
    """

    channel: str
    cause: Cause
    is_right: bool
    from_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True)
class CauseFigures:
    """What was stated in one simulation, or the sum of several.

    Attributes:
        right, wrong: Statements by kind. One about the same participant or tap of a
            channel counts once, and is wrong if it ever was.
        bad: Channels that were failing or degraded at some time.
        explained: Those of them with a statement.
        made: Of `bad` those in which the scenario makes a cause, by its kind.
        found: Those of them in which it was stated rightly.
        statements: All of them.
    """

    right: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    bad: int = 0
    explained: int = 0
    made: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    statements: tuple[Statement, ...] = ()

    def __add__(self, other: CauseFigures) -> CauseFigures:
        """Add all counts."""
        return CauseFigures(
            self.right + other.right,
            self.wrong + other.wrong,
            self.bad + other.bad,
            self.explained + other.explained,
            self.made + other.made,
            self.found + other.found,
            self.statements + other.statements,
        )


class _Witness(Truth):
    """Truth that also stores profiles of participants, and when they were present."""

    def __init__(self, scenario: str, seed: int) -> None:
        super().__init__(scenario, seed)
        self.profiles: dict[tuple[str, str], Any] = {}
        self.moves: defaultdict[tuple[str, str], list[tuple[int, bool]]] = defaultdict(
            list
        )

    def add(self, entry: Entry) -> None:
        """Add the next entry of the log."""
        match entry:
            case Presence(channel_id=channel, participant=who, profile=profile):
                self.profiles[channel, who] = profile
                self.moves[channel, who].append((entry.at_ms, entry.present))
        super().add(entry)


class _Look(NamedTuple):
    """What really happened until a look at a channel.

    Attributes:
        monitor: The monitor.
        channel: The channel.
        stories: What became of its messages.
        profiles: Profiles of its participants.
        moves: When each of them came or left, in order.
        at_ms: Event time of the look.
    """

    monitor: Monitor
    channel: str
    stories: Mapping[str, Story]
    profiles: Mapping[str, Any]
    moves: Mapping[str, list[tuple[int, bool]]]
    at_ms: int

    def failures(self) -> Iterator[tuple[str, str, str]]:
        """Yield message, sender and participant of deliveries that are overdue now.

        What has arrived since has not failed. They fail too if the participant was
        away when the message was sent, was there before, and is back.
        """
        deadline_ms = DEFAULTS.delivery_deadline_ms
        for message_id, story in self.stories.items():
            sent_ms = story["sent_ms"]
            if not 0 <= self.at_ms - deadline_ms - sent_ms <= _LOOK_BACK_MS:
                continue
            late = [
                who
                for who, received_ms in story["received"].items()
                if received_ms > self.at_ms and who != story["sender"]
            ]
            away = [
                who
                for who, moves in self.moves.items()
                if who not in (story["sender"], *story["received"])
                and moves[0][0] <= sent_ms
                and [present for at_ms, present in moves if at_ms <= self.at_ms][-1]
            ]
            for who in {*late, *story["never_received"], *away}:
                yield message_id, story["sender"], who


def judge(scenario: Scenario, seed: int) -> CauseFigures:
    """Simulate, and judge each cause that the monitor states meanwhile."""
    witness = _Witness(scenario.name, seed)
    records = list(simulated_records(scenario, seed, _START_MS, _PARTITIONS, witness))
    stories: dict[str, dict[str, Story]] = {}
    for (channel, message_id), story in stories_of(witness.document()):
        stories.setdefault(channel, {})[message_id] = story
    monitor, looked_ms = Monitor(), 0
    bad: set[str] = set()
    found: dict[tuple[str, str, tuple[str, ...]], Statement] = {}
    for batch, clock_ms in batches(records, 5):
        monitor.read(batch, clock_ms)
        if clock_ms < looked_ms + _STEP_MS:
            continue
        looked_ms = clock_ms
        snapshot = monitor.snapshot
        for channel, totals in snapshot.views["sds"].totals.items():
            if totals.verdict in (Verdict.FAILING, Verdict.DEGRADED):
                bad.add(channel)
            profiles = {
                who: one for (at, who), one in witness.profiles.items() if at == channel
            }
            moves = {
                who: one for (at, who), one in witness.moves.items() if at == channel
            }
            for cause in causes_of(snapshot, totals, CHANNELS):
                own = stories.get(channel, {})
                look = _Look(monitor, channel, own, profiles, moves, clock_ms)
                is_made = cause.kind in CAUSED.get(scenario.name, ())
                is_right = is_made and _IS_TRUE[cause.kind](look, cause)
                key = channel, cause.kind, tuple(cause.names)
                known = found.get(key)
                if known is None:
                    known = Statement(channel, cause, True, clock_ms, clock_ms)
                found[key] = known._replace(
                    is_right=known.is_right and is_right, to_ms=clock_ms
                )
    statements = tuple(found.values())
    made = CAUSED.get(scenario.name, frozenset())
    stated = {(one.channel, one.cause.kind) for one in statements if one.is_right}
    return CauseFigures(
        Counter(one.cause.kind for one in statements if one.is_right),
        Counter(one.cause.kind for one in statements if not one.is_right),
        len(bad),
        len({one.channel for one in statements} & bad),
        Counter(kind for kind in made for _ in bad),
        Counter(kind for channel, kind in stated if channel in bad),
        statements,
    )


def _is_common(place: int, look: _Look, cause: Cause) -> bool:
    """Whether a participant has nearly all failures, as sender or as recipient.

    Args:
        place: Of the participant in `_Look.failures`.
        look: What happened.
        cause: Names the participant.
    """
    (name,) = cause.names
    failed = {(one[0], one[place]) for one in look.failures()}
    own = sum(who == name for _, who in failed)
    return own >= _LEAST and own >= _MOSTLY * len(failed)


def _nobody_repairs(look: _Look, cause: Cause) -> bool:
    del cause
    return not any(profile.repair for profile in look.profiles.values())


def _filters_are_full(look: _Look, cause: Cause) -> bool:
    """Whether at least half of the participants received more than filters hold."""
    del cause
    received: Counter[str] = Counter()
    for story in look.stories.values():
        received[story["sender"]] += story["sent_ms"] <= look.at_ms
        received.update(
            who for who, at_ms in story["received"].items() if at_ms <= look.at_ms
        )
    full = [
        received[who] > profile.bloom.capacity and profile.bloom_rollover_ids is None
        for who, profile in look.profiles.items()
    ]
    return 2 * sum(full) >= len(full)


def _gave_up(look: _Look, cause: Cause) -> bool:
    """Whether senders retried messages that nobody has, and never do so again."""
    senders = cause.evidence["senders"]
    assert not isinstance(senders, int)
    given_up = [
        story
        for story in look.stories.values()
        if story["sender"] in senders
        and 0 <= look.at_ms - story["sent_ms"] <= _LOOK_BACK_MS
        and not was_had(story, look.at_ms)
        and len(story["transmissions"]) > 1
        and story["transmissions"][-1]["at_ms"] < look.at_ms
    ]
    return len(given_up) >= _LEAST


def _tap_missed(look: _Look, cause: Cause) -> bool:
    """Whether others had most of the messages that were found to have failed."""
    del cause
    had = [
        was_had(look.stories[message_id], incident.found_ms)
        for (channel, kind, message_id), incident in look.monitor.incidents.items()
        if channel == look.channel
        and kind != IncidentKind.UNDELIVERED
        and incident.found_ms >= look.at_ms - DEFAULTS.verdict_window_ms
    ]
    return 2 * sum(had) > len(had)


_IS_TRUE: Mapping[str, Callable[[_Look, Cause], bool]] = {
    "one_sender": partial(_is_common, 1),
    "one_participant": partial(_is_common, 2),
    "no_repair_requests": _nobody_repairs,
    "filters_saturated": _filters_are_full,
    "retries_ended": _gave_up,
    "tap_gap": _tap_missed,
}
