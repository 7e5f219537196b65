"""A scenario: all settings of a simulation except its seed and its start.

A scenario is read from a mapping, for example from a TOML file. Keys that end in `_s`
are durations in seconds, or seconds from the start. Keys that end in `_ms` are
milliseconds. Shares are in [0, 1].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta

from sds_core.reading import Table, TableError, contradiction, read
from sds_core.simulation.delays import Delay, Lognormal
from sds_core.simulation.profile_share import ProfileShare
from sds_core.text import shown

# The maximum is thirty days, because a longer time is probably in a wrong unit, or
# infinite (TOML allows infinite numbers).
LONGEST_S = 2_592_000
Seconds = Annotated[float, Meta(ge=0, le=LONGEST_S)]
PositiveSeconds = Annotated[float, Meta(gt=0, le=LONGEST_S)]
Share = Annotated[float, Meta(ge=0, le=1)]
Name = Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
# Relays carry at most 150 KB (64/WAKU2-NETWORK), including filter and history.
Payload = Annotated[int, Meta(ge=1, le=100_000)]
Count = Annotated[int, Meta(ge=1, le=100_000)]

LEAST_ABOVE_MOST = "the minimum must not exceed the maximum"


class Span(Table, frozen=True, kw_only=True):
    """A period of the simulation. It includes `from_s` and excludes `until_s`."""

    from_s: Seconds
    until_s: PositiveSeconds

    def __post_init__(self) -> None:
        """Raise ValueError if the period is empty."""
        if self.from_s >= self.until_s:
            rule = "from_s must be before until_s"
            raise contradiction(rule, from_s=self.from_s, until_s=self.until_s)

    def holds(self, elapsed_ms: int) -> bool:
        """Return whether a time since the simulation's start is in the period."""
        return self.from_s * 1_000 <= elapsed_ms < self.until_s * 1_000


class Spell(Span, frozen=True, kw_only=True):
    """A period in which the rate of messages differs from the usual rate.

    Attributes:
        rate: factor on the usual rate. With 0, no messages are sent.
    """

    rate: Annotated[float, Meta(ge=0, le=1_000)]


class Traffic(Table, frozen=True, kw_only=True):
    """Who sends messages, when, and how many.

    Attributes:
        mean_interval_s: mean time between two occasions to send. The times are
            exponentially distributed.
        per: With `participant`, every participant has its own occasions. With
            `channel`, one random present participant sends at each occasion.
        burst: number of messages sent at an occasion.
        burst_spacing_ms: time between messages of a burst.
        spells: periods with more or less traffic. If two overlap, their rates are
            multiplied.
        payload_least_bytes, payload_most_bytes: minimum and maximum length of the
            content. Lengths are uniformly distributed.
        ephemeral_share: share of messages that are ephemeral.
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
        """Raise ValueError if the minimum is above the maximum."""
        least, most = self.payload_least_bytes, self.payload_most_bytes
        if least > most:
            raise contradiction(
                LEAST_ABOVE_MOST, payload_least_bytes=least, payload_most_bytes=most
            )


class LostTail(Table, frozen=True, kw_only=True):
    """Messages at a channel's end that no other participant ever receives.

    A present participant sends these messages when `duration_s` ends.

    Attributes:
        messages: number of these messages.
        sender_leaves: whether the sender sends nothing afterwards. If the sender stays,
            its sync messages show the others which messages they lack. Retries and
            repairs of these messages are lost, too.
        seen_by_taps: whether taps can receive these messages.
    """

    messages: Count = 1
    sender_leaves: bool = True
    seen_by_taps: bool = True


class ChannelGroup(Table, frozen=True, kw_only=True):
    """One channel, or several channels with the same settings.

    Attributes:
        name: the channel's id. Several channels have the ids `name-1`, `name-2` and so
            on.
        count: number of channels.
        participants: number of participants in each channel, drawn from the population.
            If omitted, all participants.
        traffic: traffic of each channel.
        profiles: profiles in each channel. If omitted, the scenario's profiles.
        lost_tail: lost messages at the end of each channel. If omitted, none.
    """

    name: Name
    count: Count = 1
    participants: Annotated[int, Meta(ge=2, le=10_000)] | None = None
    traffic: Traffic
    profiles: tuple[ProfileShare, ...] = ()
    lost_tail: LostTail | None = None

    def channel_ids(self) -> list[str]:
        """Return the ids of the channels."""
        if self.count == 1:
            return [self.name]
        return [f"{self.name}-{number}" for number in range(1, self.count + 1)]


class Bursts(Table, frozen=True, kw_only=True):
    """Loss in bursts: the Gilbert-Elliott model, in continuous time.

    Each link alternates between a good and a bad state, independently of other links.

    Attributes:
        mean_good_s: mean duration of the good state, in which the link's `loss`
            applies.
        mean_bad_s: mean duration of the bad state.
        loss: share of transmissions that are lost in the bad state.
    """

    mean_good_s: PositiveSeconds
    mean_bad_s: PositiveSeconds
    loss: Share = 1.0


class Link(Table, frozen=True, kw_only=True):
    """Loss and delay between two participants, or between a participant and a tap.

    Attributes:
        loss: share of transmissions that are lost, independently of each other.
        bursts: loss in bursts. If omitted, no bursts occur.
        delay: distribution of the delay. A delay is at least 1 ms.
    """

    loss: Share = 0.0
    bursts: Bursts | None = None
    delay: Delay = Lognormal(median_ms=100.0, sigma=0.4)


class Partition(Span, frozen=True, kw_only=True):
    """A period in which a group of participants is cut off from the other participants.

    Inside the group, frames still arrive. If outgoing traffic is cut off, the taps do
    not receive it either.

    Attributes:
        participants: number of participants that are cut off. The seed decides which
            ones.
        direction: which traffic of these participants is cut off: `outgoing`,
            `incoming`, or `both`.
    """

    participants: Count
    direction: Literal["both", "outgoing", "incoming"] = "both"


class Network(Link, frozen=True, kw_only=True):
    """The links between participants. They have equal settings, but separate draws.

    Attributes:
        partitions: periods in which participants are cut off.
        lossless_until_s: until this time, counted from the start, the links lose
            nothing.
    """

    partitions: tuple[Partition, ...] = ()
    lossless_until_s: Seconds = 0.0


class Absences(Table, frozen=True, kw_only=True):
    """Participants that are sometimes offline, in all their channels at the same time.

    Attributes:
        share: share of all participants.
        mean_present_s: mean time until a present participant leaves.
        mean_away_s: mean time until an absent participant returns.
        lengths: distribution of these times: `exponential` or `regular`. With
            `regular`, every time equals its mean, but the first presence has a random
            length.
        least_away_s, most_away_s: minimum and maximum time offline. A drawn time
            outside of these limits is set to the nearer limit.
        fetch_after_s: time from the return until the participant fetches the missed
            messages from a Store node. If omitted, never.
        state: SDS state after the return. `restored`: the participant resumes from a
            snapshot made when it left, as after a restart. `kept`: the state does not
            change, as when a phone sleeps. `lost`: the state is empty, but the
            participant's id is the same.
    """

    share: Share
    mean_present_s: PositiveSeconds
    mean_away_s: PositiveSeconds
    lengths: Literal["exponential", "regular"] = "exponential"
    least_away_s: Seconds = 0.0
    most_away_s: PositiveSeconds = LONGEST_S
    fetch_after_s: Seconds | None = None
    state: Literal["restored", "kept", "lost"] = "restored"

    def __post_init__(self) -> None:
        """Raise ValueError if the minimum is above the maximum."""
        least, most = self.least_away_s, self.most_away_s
        if least > most:
            raise contradiction(LEAST_ABOVE_MOST, least_away_s=least, most_away_s=most)


class Churn(Table, frozen=True, kw_only=True):
    """Participants that join and leave, in all their channels at the same time.

    Attributes:
        joining_share: share of participants that join after the start.
        leaving_share: share of participants that leave forever.
        absences: participants that leave and return: one table, or several for distinct
            participants. If omitted, none.
    """

    joining_share: Share = 0.0
    leaving_share: Share = 0.0
    absences: Absences | tuple[Absences, ...] = ()

    @property
    def patterns(self) -> tuple[Absences, ...]:
        """The tables of `absences`, as a tuple."""
        patterns = self.absences
        return (patterns,) if isinstance(patterns, Absences) else patterns


class ClockJump(Table, frozen=True, kw_only=True):
    """A jump of a clock.

    Attributes:
        at_s: time of the jump.
        by_ms: size of the jump; negative if the clock is set back.
    """

    at_s: Seconds
    by_ms: Annotated[int, Meta(ge=-86_400_000, le=86_400_000)]


class ClockSkew(Table, frozen=True, kw_only=True):
    """Errors of the participants' clocks.

    Attributes:
        offset_ms: maximum offset in either direction. Offsets are uniformly
            distributed.
        drift_ppm: maximum drift in either direction, millionths. Drifts are uniformly
            distributed.
        mean_jump_interval_s: mean time between two jumps of a clock. The times are
            exponentially distributed. If omitted, no clock jumps.
        jump_ms: maximum jump in either direction. Jumps are uniformly distributed.
            After a negative jump, the clock stands still until time has caught up.
        share: share of participants with wrong clocks.
    """

    offset_ms: Annotated[int, Meta(ge=0, le=31_536_000_000)] = 0
    drift_ppm: Annotated[float, Meta(ge=0, le=100_000)] = 0.0
    mean_jump_interval_s: PositiveSeconds | None = None
    jump_ms: Annotated[int, Meta(ge=0, le=86_400_000)] = 0
    share: Share = 1.0


class Tap(Link, frozen=True, kw_only=True):
    """An observer that writes the frames that it receives to Kafka.

    Attributes:
        name: observer id.
        start_s: time when the tap starts.
        heartbeat_interval_s: time between two heartbeats.
        blackouts: periods in which the tap is down: it sends neither records nor
            heartbeats. Its sequence numbers continue afterwards.
        deaf: periods in which the tap runs but receives nothing. It still sends
            heartbeats, and no sequence numbers are missing.
        record_loss: share of the tap's records that are lost on the way to the topic,
            so that sequence numbers are missing.
        replica_share: share of frames that the tap records twice.
        clock_offset_ms: offset of the tap's clock; positive if the clock is ahead.
        clock_drift_ppm: drift of the tap's clock, millionths; positive if the clock is
            too fast.
        clock_jumps: jumps of the tap's clock.
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
    clock_jumps: tuple[ClockJump, ...] = ()


class BaseScenario(Table, frozen=True, kw_only=True):
    """Settings for all protocols. The module's docstring has the units.

    Attributes:
        name: name of the scenario.
        description: purpose of the scenario, in one sentence.
        duration_s: length of the period in which new messages are sent.
        settle_s: length of the period after `duration_s`, in which participants only
            retry, repair and sync.
        network: links between participants.
        taps: the observers.
    """

    name: Name
    description: str
    duration_s: PositiveSeconds
    settle_s: Seconds = 0.0
    network: Network = Network()
    taps: tuple[Tap, ...] = (Tap(name="tap"),)

    @property
    def duration_ms(self) -> int:
        """Length of the period in which new messages are sent, ms."""
        return round(self.duration_s * 1_000)

    @property
    def total_ms(self) -> int:
        """Length of the whole simulation, ms."""
        return round((self.duration_s + self.settle_s) * 1_000)


class Scenario(BaseScenario, frozen=True, kw_only=True):
    """Settings of a simulation of SDS.

    Attributes:
        participants: the population from which channels draw their participants.
        channels: groups of channels. At least one is needed.
        profiles: profiles of the participants in groups without `profiles`. The shares
            apply in every channel.
        churn: participants that join and leave.
        clocks: errors of the participants' clocks.
    """

    participants: Annotated[int, Meta(ge=2, le=10_000)]
    channels: Annotated[tuple[ChannelGroup, ...], Meta(min_length=1)]
    profiles: Annotated[tuple[ProfileShare, ...], Meta(min_length=1)] = (
        ProfileShare(),
    )
    churn: Churn = Churn()
    clocks: ClockSkew = ClockSkew()

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> Scenario:
        """Read a scenario.

        Raises:
            TableError: the mapping is not a scenario. The error has position, value and
                allowed values.
        """
        scenario = read(mapping, cls)
        _check_names(scenario)
        _check_absences(scenario)
        _check_population(scenario)
        _check_profiles(scenario)
        return scenario


def _check_absences(scenario: Scenario) -> None:
    shares = sum(pattern.share for pattern in scenario.churn.patterns)
    if shares > 1:
        problem = f"have shares whose sum is {shares:g}, but the maximum is 1"
        raise TableError("churn.absences", problem)


def _check_names(scenario: Scenario) -> None:
    channels = [
        ("channel", f"channels[{place}].name", channel_id)
        for place, group in enumerate(scenario.channels)
        for channel_id in group.channel_ids()
    ]
    taps = [
        ("tap", f"taps[{place}].name", tap.name)
        for place, tap in enumerate(scenario.taps)
    ]
    seen: set[tuple[str, str]] = set()
    for what, path, name in channels + taps:
        if (what, name) in seen:
            problem = (
                f"must be unique, but an earlier {what} also has the name "
                f"{shown(name)}: give another name"
            )
            raise TableError(path, problem)
        seen.add((what, name))


def _check_population(scenario: Scenario) -> None:
    most = scenario.participants
    counts = [
        (f"channels[{place}].participants", group.participants or 0, most)
        for place, group in enumerate(scenario.channels)
    ] + [
        (f"network.partitions[{place}].participants", cut.participants, most - 1)
        for place, cut in enumerate(scenario.network.partitions)
    ]
    for path, count, limit in counts:
        if count > limit:
            problem = (
                f"is {count}, but the maximum is {limit}, "
                f"because the scenario has {most} participants"
            )
            raise TableError(path, problem)


def _check_profiles(scenario: Scenario) -> None:
    for position, share in enumerate(scenario.profiles):
        share.profile(f"profiles[{position}]")
    for place, group in enumerate(scenario.channels):
        for position, share in enumerate(group.profiles):
            share.profile(f"channels[{place}].profiles[{position}]")
