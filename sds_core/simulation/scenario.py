"""A scenario: everything about a simulation but its seed and its start.

It is read from a mapping, such as a TOML file makes. Keys ending in `_s` are seconds
from the start, or lengths in seconds; `_ms` milliseconds; shares are in [0, 1].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta

from sds_core.reading import Table, TableError, read
from sds_core.simulation.delays import Delay, Lognormal
from sds_core.simulation.profile_share import ProfileShare

# Thirty days: what is longer is a slip of the unit, and infinity is a number in TOML.
LONGEST_S = 2_592_000
Seconds = Annotated[float, Meta(ge=0, le=LONGEST_S)]
PositiveSeconds = Annotated[float, Meta(gt=0, le=LONGEST_S)]
Share = Annotated[float, Meta(ge=0, le=1)]
Name = Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
# Relays carry at most 150 KB (64/WAKU2-NETWORK), the filter and the history included.
Payload = Annotated[int, Meta(ge=1, le=100_000)]
Count = Annotated[int, Meta(ge=1, le=100_000)]


class Span(Table, frozen=True, kw_only=True):
    """A stretch of the simulation: from `from_s` to just before `until_s`."""

    from_s: Seconds
    until_s: PositiveSeconds

    def __post_init__(self) -> None:
        """Check the order.

        Raises:
            ValueError: it is empty.
        """
        if self.from_s >= self.until_s:
            message = (
                f"has from_s = {self.from_s:g} and until_s = {self.until_s:g}: "
                "allowed is from_s before until_s"
            )
            raise ValueError(message)

    def holds(self, elapsed_ms: int) -> bool:
        """Tell whether a time, counted from the simulation's start, lies in it."""
        return self.from_s * 1_000 <= elapsed_ms < self.until_s * 1_000


class Spell(Span, frozen=True, kw_only=True):
    """A stretch with more or less traffic than usual.

    Attributes:
        rate: times the usual; 0 is silence.
    """

    rate: Annotated[float, Meta(ge=0, le=1_000)]


class Traffic(Table, frozen=True, kw_only=True):
    """Who says how much when.

    Attributes:
        mean_interval_s: mean of the exponentially distributed time from one occasion
            to speak to the next.
        per: whose occasions: each participant's own, or the channel's, each for one
            participant drawn from those present.
        burst: messages at an occasion.
        burst_spacing_ms: between these.
        spells: times of more or of less; where two overlap, both rates multiply.
        payload_least_bytes, payload_most_bytes: content's length, equally likely.
        ephemeral_share: of the messages, that ask for no reliability.
    """

    mean_interval_s: PositiveSeconds
    per: Literal["participant", "channel"] = "channel"
    burst: Annotated[int, Meta(ge=1, le=10_000)] = 1
    burst_spacing_ms: Annotated[int, Meta(ge=0, le=3_600_000)] = 200
    spells: tuple[Spell, ...] = ()
    payload_least_bytes: Payload = 20
    payload_most_bytes: Payload = 200
    ephemeral_share: Share = 0.0

    def __post_init__(self) -> None:
        """Check the order.

        Raises:
            ValueError: the least is above the most.
        """
        if self.payload_least_bytes > self.payload_most_bytes:
            message = (
                f"has payload_least_bytes = {self.payload_least_bytes} and "
                f"payload_most_bytes = {self.payload_most_bytes}: "
                "allowed is the least up to the most"
            )
            raise ValueError(message)


class LostTail(Table, frozen=True, kw_only=True):
    """Last messages of a channel that no other participant ever receives.

    They are sent when the scenario's duration ends, by one who was present.

    Attributes:
        messages: how many.
        sender_leaves: whether the sender falls silent for ever right after; if not,
            its sync messages and retries tell the others what they lack.
        seen_by_taps: whether the taps receive them, as far as they receive anything.
    """

    messages: Count = 1
    sender_leaves: bool = True
    seen_by_taps: bool = True


class ChannelGroup(Table, frozen=True, kw_only=True):
    """One channel, or several of a kind.

    Attributes:
        name: the channel's id; of several, `name-1`, `name-2` and so on.
        count: how many.
        participants: in each, drawn from the population; absent: all.
        traffic: of each.
        profiles: of each; absent: the scenario's.
        lost_tail: of each, if any.
    """

    name: Name
    count: Count = 1
    participants: Annotated[int, Meta(ge=2, le=10_000)] | None = None
    traffic: Traffic
    profiles: tuple[ProfileShare, ...] = ()
    lost_tail: LostTail | None = None

    def channel_ids(self) -> list[str]:
        """Return the ids of its channels."""
        if self.count == 1:
            return [self.name]
        return [f"{self.name}-{number}" for number in range(1, self.count + 1)]


class Bursts(Table, frozen=True, kw_only=True):
    """Loss in bursts: the Gilbert-Elliott model, in continuous time.

    Each link changes between a good and a bad state, independently of the others.

    Attributes:
        mean_good_s: mean length of the good state, where `loss` of the link holds.
        mean_bad_s: mean length of the bad state.
        loss: share that is lost in the bad state.
    """

    mean_good_s: PositiveSeconds
    mean_bad_s: PositiveSeconds
    loss: Share = 1.0


class Link(Table, frozen=True, kw_only=True):
    """What happens on the way from one participant to another, or to a tap.

    Attributes:
        loss: share of the transmissions that are lost, each for itself.
        bursts: loss that comes in bursts, if any.
        delay: distribution of the time under way; at least 1 ms is taken.
    """

    loss: Share = 0.0
    bursts: Bursts | None = None
    delay: Delay = Lognormal(median_ms=100.0, sigma=0.4)


class Partition(Span, frozen=True, kw_only=True):
    """A stretch in which some participants are cut off from all others.

    The taps are on the others' side.

    Attributes:
        participants: how many of the population, drawn by the seed.
        direction: what does not get through: `both`, only what they send (`outgoing`),
            or only what the others send (`incoming`).
    """

    participants: Count
    direction: Literal["both", "outgoing", "incoming"] = "both"


class Network(Link, frozen=True, kw_only=True):
    """The links between the participants: all alike, each drawn for itself.

    Attributes:
        partitions: who is cut off when.
    """

    partitions: tuple[Partition, ...] = ()


class Absences(Table, frozen=True, kw_only=True):
    """Participants that are away now and then, in all their channels at once.

    Attributes:
        share: of the participants.
        mean_present_s: mean of the exponentially distributed time until one leaves.
        mean_away_s: mean of the exponentially distributed time until it is back.
        state: what it comes back with: `restored` from a snapshot of when it left, as
            after a restart; `kept`, as after the sleep of a phone.
    """

    share: Share
    mean_present_s: PositiveSeconds
    mean_away_s: PositiveSeconds
    state: Literal["restored", "kept"] = "restored"


class Churn(Table, frozen=True, kw_only=True):
    """Who comes and goes, in all its channels at once.

    Attributes:
        joining_share: of the participants, that join at some time after the start.
        leaving_share: of the participants, that leave for good at some time.
        absences: of those that come back, if any.
    """

    joining_share: Share = 0.0
    leaving_share: Share = 0.0
    absences: Absences | None = None


class ClockSkew(Table, frozen=True, kw_only=True):
    """How wrong clocks are.

    Attributes:
        offset_ms: at most so far ahead or behind, equally likely.
        drift_ppm: at most so many millionths too fast or too slow, equally likely.
        share: of the participants; the others' clocks are right.
    """

    offset_ms: Annotated[int, Meta(ge=0, le=31_536_000_000)] = 0
    drift_ppm: Annotated[float, Meta(ge=0, le=100_000)] = 0.0
    share: Share = 1.0


class Tap(Link, frozen=True, kw_only=True):
    """An observer that writes what it receives into Kafka.

    Attributes:
        name: observer id.
        start_s: when it is switched on.
        heartbeat_interval_s: between two of its heartbeats.
        blackouts: it is down: no records, no heartbeats; its numbers go on after.
        deaf: it is up, but receives nothing: heartbeats, and no missing numbers.
        record_loss: share of its records that are lost behind it: numbers missing.
        replica_share: of the frames it records, that it records once more.
        clock_offset_ms: its clock is so far ahead; behind, if negative.
        clock_drift_ppm: its clock is so many millionths too fast.
    """

    name: Name
    start_s: Seconds = 0.0
    heartbeat_interval_s: PositiveSeconds = 5.0
    blackouts: tuple[Span, ...] = ()
    deaf: tuple[Span, ...] = ()
    record_loss: Share = 0.0
    replica_share: Share = 0.0
    clock_offset_ms: Annotated[int, Meta(ge=-86_400_000, le=86_400_000)] = 0
    clock_drift_ppm: Annotated[float, Meta(ge=-100_000, le=100_000)] = 0.0


class Scenario(Table, frozen=True, kw_only=True):
    """What happens in a simulation, up to chance; see the module for the units.

    Attributes:
        name: how it is called.
        description: what it shows, in a sentence.
        duration_s: how long new messages are sent.
        settle_s: how long after that participants still retry, repair and sync.
        participants: the population that channels draw their participants from.
        channels: at least one group.
        profiles: by share, for channels that name none; shares hold in every channel.
        network: between participants.
        churn: who comes and goes.
        clocks: of the participants.
        taps: the observers.
    """

    name: Name
    description: str
    duration_s: PositiveSeconds
    settle_s: Seconds = 0.0
    participants: Annotated[int, Meta(ge=2, le=10_000)]
    channels: Annotated[tuple[ChannelGroup, ...], Meta(min_length=1)]
    profiles: Annotated[tuple[ProfileShare, ...], Meta(min_length=1)] = (
        ProfileShare(),
    )
    network: Network = Network()
    churn: Churn = Churn()
    clocks: ClockSkew = ClockSkew()
    taps: tuple[Tap, ...] = (Tap(name="tap"),)

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> Scenario:
        """Read a scenario.

        Raises:
            TableError: it is none; says where, what stands there, what is allowed.
        """
        scenario = read(mapping, cls)
        _check_names(scenario)
        _check_population(scenario)
        _check_profiles(scenario)
        return scenario

    @property
    def duration_ms(self) -> int:
        """How long new messages are sent."""
        return round(self.duration_s * 1_000)

    @property
    def total_ms(self) -> int:
        """How long all of it takes."""
        return round((self.duration_s + self.settle_s) * 1_000)


def _check_names(scenario: Scenario) -> None:
    _refuse_twice(
        "channel",
        (
            (f"channels[{place}].name", channel_id)
            for place, group in enumerate(scenario.channels)
            for channel_id in group.channel_ids()
        ),
    )
    _refuse_twice(
        "tap",
        ((f"taps[{place}].name", tap.name) for place, tap in enumerate(scenario.taps)),
    )


def _refuse_twice(what: str, names: Iterable[tuple[str, str]]) -> None:
    seen: set[str] = set()
    for path, name in names:
        if name in seen:
            problem = f"makes a {what} {name!r}: allowed is a name not yet taken"
            raise TableError(path, problem)
        seen.add(name)


def _check_population(scenario: Scenario) -> None:
    most = scenario.participants
    wanted = [
        (f"channels[{place}].participants", group.participants or 0, most)
        for place, group in enumerate(scenario.channels)
    ] + [
        (f"network.partitions[{place}].participants", cut.participants, most - 1)
        for place, cut in enumerate(scenario.network.partitions)
    ]
    for path, count, limit in wanted:
        if count > limit:
            problem = (
                f"is {count}: allowed is up to {limit}, "
                f"as the scenario has participants = {most}"
            )
            raise TableError(path, problem)


def _check_profiles(scenario: Scenario) -> None:
    for position, share in enumerate(scenario.profiles):
        share.profile(f"profiles[{position}]")
    for place, group in enumerate(scenario.channels):
        for position, share in enumerate(group.profiles):
            share.profile(f"channels[{place}].profiles[{position}]")
