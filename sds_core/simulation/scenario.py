"""A scenario: all settings of a simulation except its seed and its start.

A scenario is read from a mapping, for example from a TOML file. If a key ends in `_s`,
its value is a duration, or a time since the simulation's start, in seconds. If a key
ends in `_ms`, its value is in milliseconds. Shares are in [0, 1].
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta

from sds_core.reading import Table, TableError, contradiction, read
from sds_core.simulation.delays import Delay, Lognormal
from sds_core.simulation.profile_share import ProfileShare
from sds_core.text import shown

# The maximum of a time is thirty days. A longer time is probably in a wrong unit, or
# infinite (TOML allows infinite numbers).
LONGEST_S = 2_592_000
Seconds = Annotated[float, Meta(ge=0, le=LONGEST_S)]
PositiveSeconds = Annotated[float, Meta(gt=0, le=LONGEST_S)]
Share = Annotated[float, Meta(ge=0, le=1)]
Name = Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
# The maximum is the length of a segment (RELIABLE-CHANNEL-API, "Message segmentation").
# It is below the 150 KiB that relays carry (64/WAKU2-NETWORK), because a frame also
# contains a bloom filter and a causal history.
Payload = Annotated[int, Meta(ge=1, le=102_400)]
Count = Annotated[int, Meta(ge=1, le=100_000)]

LEAST_ABOVE_MOST = "the minimum must not exceed the maximum"


def selected(share: float, participants: int) -> int:
    """Return how many participants a share selects: their product, rounded."""
    return round(share * participants)


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
        """Return whether the period contains a time since the simulation's start."""
        return self.from_s * 1_000 <= elapsed_ms < self.until_s * 1_000


class Spell(Span, frozen=True, kw_only=True):
    """A period in which the rate of messages differs from the usual rate.

    Attributes:
        rate: factor by which the usual rate is multiplied. If it is 0, no messages are
            sent.
    """

    rate: Annotated[float, Meta(ge=0, le=1_000)]


class Traffic(Table, frozen=True, kw_only=True):
    """Who sends messages, when, and how many.

    Attributes:
        mean_interval_s: mean time between two occasions. At each occasion, one
            participant sends `burst` messages. The times between occasions are
            exponentially distributed.
        per: to what `mean_interval_s` applies. `participant`: each participant has its
            own occasions. `channel`: the channel has occasions, and at each of them, a
            random participant that is present sends.
        burst: number of messages that the participant sends at an occasion.
        burst_spacing_ms: time between two messages of the same occasion.
        spells: periods with more or less traffic. If two periods overlap, their rates
            are multiplied.
        payload_least_bytes, payload_most_bytes: minimum and maximum length of a
            message's content. Lengths are uniformly distributed between them.
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
        """Raise ValueError if the minimum length is above the maximum length."""
        least, most = self.payload_least_bytes, self.payload_most_bytes
        if least > most:
            raise contradiction(
                LEAST_ABOVE_MOST, payload_least_bytes=least, payload_most_bytes=most
            )


class LostTail(Table, frozen=True, kw_only=True):
    """The last messages of a channel, which no other participant ever receives.

    When `duration_s` ends, a participant that is present sends these messages. Their
    retries and repairs are lost, too.

    Attributes:
        messages: number of messages.
        sender_leaves: whether the sender then leaves the channel and never returns. If
            the sender stays, its sync messages show the other participants which
            messages they lack.
        seen_by_taps: whether taps can receive the messages.
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
        profiles: profiles of the participants in each channel. If omitted, the
            scenario's profiles.
        lost_tail: messages that each channel loses at its end. If omitted, none.
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
        mean_good_s: mean duration of the good state. In this state, `Link.loss` is the
            share of transmissions that are lost.
        mean_bad_s: mean duration of the bad state.
        loss: share of transmissions that are lost in the bad state.
    """

    mean_good_s: PositiveSeconds
    mean_bad_s: PositiveSeconds
    loss: Share = 1.0


class Link(Table, frozen=True, kw_only=True):
    """Loss and delay between two participants, or between a participant and a tap.

    Attributes:
        loss: share of transmissions that are lost. Each loss is independent of the
            others.
        bursts: loss in bursts. If omitted, no bursts occur.
        delay: distribution of the delay. A delay is at least 1 ms.
    """

    loss: Share = 0.0
    bursts: Bursts | None = None
    delay: Delay = Lognormal(median_ms=100.0, sigma=0.4)


class Partition(Span, frozen=True, kw_only=True):
    """A period in which a group of participants is cut off from the other participants.

    Frames between participants of the group still arrive. If the group's outgoing
    traffic is cut off, the taps do not receive the group's frames either.

    Attributes:
        participants: number of participants in the group. The seed decides which
            participants are in the group.
        direction: which traffic of the group is cut off: `outgoing`, `incoming`, or
            `both`.
    """

    participants: Count
    direction: Literal["both", "outgoing", "incoming"] = "both"


class Network(Link, frozen=True, kw_only=True):
    """The links between participants.

    All links have the same settings, but loss and delay are drawn separately for each
    link.

    Attributes:
        partitions: periods in which participants are cut off.
        lossless_until_s: until this time since the simulation's start, the links lose
            no transmissions. Partitions still apply.
    """

    partitions: tuple[Partition, ...] = ()
    lossless_until_s: Seconds = 0.0


class Absences(Table, frozen=True, kw_only=True):
    """Participants that are sometimes offline. They go offline in all their channels.

    Attributes:
        share: share of all participants that are sometimes offline.
        mean_present_s: mean time until a present participant leaves.
        mean_away_s: mean time until an absent participant returns.
        lengths: distribution of the times online and of the times offline:
            `exponential` or `regular`. `regular`: every time equals its mean, except
            the first time online, which has a random length up to the mean.
        least_away_s, most_away_s: minimum and maximum time offline. A drawn time
            outside of these limits is set to the nearer limit.
        fetch_after_s: time from the return until the participant fetches the missed
            messages from a Store node. If omitted, the participant does not fetch them.
        state: the participant's SDS state after the return. `restored`: the participant
            resumes from a snapshot made when it left, as after a restart. `kept`: the
            state does not change, as when a phone sleeps. `lost`: the state is empty,
            but the participant's id is the same.
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
        """Raise ValueError if the minimum time offline is above the maximum."""
        least, most = self.least_away_s, self.most_away_s
        if least > most:
            raise contradiction(LEAST_ABOVE_MOST, least_away_s=least, most_away_s=most)


class Churn(Table, frozen=True, kw_only=True):
    """Participants that join and leave. They join and leave all their channels at once.

    Attributes:
        joining_share: share of participants that join after the simulation's start.
        leaving_share: share of participants that leave forever.
        absences: participants that leave and return: one table, or several tables. Each
            table applies to different participants. If omitted, no participant returns.
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
            A participant's clock never runs backwards: instead of a jump by -5 ms, it
            stands still for 5 ms.
        share: share of participants whose clocks have these errors. The other clocks
            are correct.
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
            heartbeats. After such a period, the tap's sequence numbers continue.
        deaf: periods in which the tap runs but receives nothing. The tap still sends
            heartbeats, and its sequence numbers have no gap.
        record_loss: share of the tap's records that are lost on the way to the Kafka
            topic. Their sequence numbers are missing from the topic.
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
    """Settings that the scenarios of all protocols have.

    The module's docstring explains the units.

    Attributes:
        name: name of the scenario.
        description: purpose of the scenario, in one sentence.
        duration_s: length of the period in which new messages are sent.
        settle_s: length of the period that begins when `duration_s` ends. In this
            period, participants only retry, repair and sync.
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
        participants: size of the population from which channels draw their
            participants.
        channels: groups of channels. At least one group is needed.
        profiles: profiles of the participants in channel groups that have no own
            `profiles`. The shares apply in every channel of such a group.
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
            TableError: the mapping is not a valid scenario. The error names the invalid
                value, its position in the mapping, and the allowed values.
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
    names = _ChannelNames()
    for place, group in enumerate(scenario.channels):
        if (name := names.add(group)) is not None:
            raise _not_unique("channel", f"channels[{place}].name", name)
    seen: set[str] = set()
    for place, tap in enumerate(scenario.taps):
        if tap.name in seen:
            raise _not_unique("tap", f"taps[{place}].name", tap.name)
        seen.add(tap.name)


def _not_unique(what: str, path: str, name: str) -> TableError:
    problem = (
        f"must be unique, but an earlier {what} also has the name {shown(name)}: give "
        "another name"
    )
    return TableError(path, problem)


class _ChannelNames:
    """The ids of the channels of groups; the ids of a large group are not made."""

    def __init__(self) -> None:
        self._single: set[str] = set()
        # For single ids of the form `name-number`, the least number of each name.
        self._least: dict[str, int] = {}
        self._counts: dict[str, int] = {}

    def add(self, group: ChannelGroup) -> str | None:
        """Add a group; if an earlier group has an id of this group, return the id."""
        name, count = group.name, group.count
        if count > 1:
            if name in self._counts:
                return f"{name}-1"
            least = self._least.get(name)
            if least is not None and least <= count:
                return f"{name}-{least}"
            self._counts[name] = count
            return None
        base, _, end = name.rpartition("-")
        number = int(end) if re.fullmatch("[1-9][0-9]*", end) else None
        if name in self._single or (number or math.inf) <= self._counts.get(base, 0):
            return name
        self._single.add(name)
        if number is not None:
            self._least[base] = min(number, self._least.get(base, number))
        return None


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
