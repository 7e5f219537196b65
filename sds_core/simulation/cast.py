"""What the simulator moves: members of channels, channels, transmissions under way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

import numpy as np

from sds_core.message_channel.channel import MessageChannel
from sds_core.message_channel.profile import Profile
from sds_core.simulation.clock import Clock
from sds_core.simulation.links import Indices
from sds_core.simulation.log import Transmission
from sds_core.simulation.scenario import ChannelGroup

NEVER_MS = 1 << 62
"""A time that is never reached, ms."""


@dataclass(slots=True, eq=False)
class Member:
    """One participant in one channel.

    Attributes:
        index: Index of the participant in the population.
        position: Index among the channel's members.
        participant: Participant id.
        channel: Channel that it is a member of.
        clock: Clock of the participant, which may be wrong.
        profile: Its options.
        random: Its source of chance.
        sds: Its SDS state; None before it joins and while it is stored as a snapshot.
        snapshot: Stored state while it is away and will be restored.
        present: Whether it is online.
        gone: Whether it has left for good.
        wake_ms: When it must be called next, simulation time.
        wake_reading_ms: The same time as its own clock shows it.
    """

    index: int
    position: int
    participant: str
    channel: Channel
    clock: Clock
    profile: Profile
    random: Random
    sds: MessageChannel | None = None
    snapshot: bytes = b""
    present: bool = False
    gone: bool = False
    wake_ms: int = NEVER_MS
    wake_reading_ms: int = NEVER_MS


@dataclass(slots=True, eq=False)
class Channel:
    """One channel.

    Attributes:
        channel_id: Channel id.
        group: Its settings.
        content_topic: Waku content topic of its messages.
        occasions: Times at which somebody sends, ms since the start.
        speakers: Chance of who sends.
        contents: Chance of what is sent.
        members: Its participants.
        indices: Index of each member in the population.
    """

    channel_id: str
    group: ChannelGroup
    content_topic: str
    occasions: Iterator[int]
    speakers: Random
    contents: Random
    members: list[Member] = field(default_factory=list)
    indices: Indices = field(default_factory=lambda: np.zeros(0, np.intp))


@dataclass(slots=True, eq=False)
class Flight:
    """A transmission that has not reached all its receivers yet.

    One object for all receivers: there may be a hundred receivers, and a thousand
    transmissions under way at a time.

    Attributes:
        transmission: The transmission.
        retrieval_hint: Hint to fetch it again.
        receivers: Members that it still has to reach, the next one last.
        times_ms: When it reaches each of them, in the same order.
    """

    transmission: Transmission
    retrieval_hint: bytes
    receivers: list[Member]
    times_ms: list[int]
