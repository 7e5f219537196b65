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
        index: of the participant in the population.
        position: among the channel's members.
        participant: its id.
        channel: where.
        clock: the participant's.
        profile: its behaviour.
        random: its chance.
        sds: its state; None before it comes, and while it is a snapshot.
        snapshot: the state while it is away, if that is what it returns with.
        present: whether it is there.
        gone: whether it is never to return.
        wake_ms: when it is to be called next.
        wake_reading_ms: what its clock says then.
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
        channel_id: names it.
        group: what it is like.
        content_topic: where it is sent.
        occasions: when there is one to speak, ms since the start.
        speakers: decides who does.
        contents: decides what is said.
        members: the participants.
        indices: the index of each in the population.
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
    """A transmission on its way.

    One object for all its receivers: there may be a hundred, and in flight at any time
    a thousand transmissions.

    Attributes:
        transmission: what is under way.
        retrieval_hint: how it can be fetched again.
        receivers: whom it has still to reach, the next one last.
        times_ms: when it does, in the same order.
    """

    transmission: Transmission
    retrieval_hint: bytes
    receivers: list[Member]
    times_ms: list[int]
