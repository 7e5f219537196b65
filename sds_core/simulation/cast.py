"""State of the simulator: channels, their members, and transmissions in transit."""

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
from sds_core.wire import Frame

NEVER_MS = 1 << 62
"""Time that means "never", ms; no simulation reaches it."""


@dataclass(slots=True, eq=False)
class Member:
    """One participant in one channel.

    Attributes:
        index: Index of the participant in the population.
        position: Index among the channel's members.
        library_syncs_every_ms: Interval of the sync messages that the application sends
            through the library; None if the application sends none.
        sds: SDS state. None before the participant joins, while the state is in
            `snapshot`, and while a participant that lost its state is offline.
        snapshot: The SDS state that was stored when the participant went offline; empty
            if none is stored.
        fetch_after_ms: When the participant is online again, it fetches missed messages
            after this time. If None, it fetches none.
        missed: Messages that the participant missed while offline and will fetch.
        fetch_ms: Simulation time at which the participant fetches missed messages,
            unless it goes offline before.
        wake_ms: Simulation time at which the simulator next advances the participant's
            SDS state.
        wake_reading_ms: Reading of the participant's clock at `wake_ms`.
    """

    index: int
    position: int
    participant: str
    channel: Channel
    clock: Clock
    profile: Profile
    library_syncs_every_ms: int | None
    random: Random
    fetch_after_ms: int | None
    state: str
    sds: MessageChannel | None = None
    snapshot: bytes = b""
    present: bool = False
    gone: bool = False
    missed: list[Flight] = field(default_factory=list)
    fetch_ms: int = NEVER_MS
    wake_ms: int = NEVER_MS
    wake_reading_ms: int = NEVER_MS


@dataclass(slots=True, eq=False)
class Channel:
    """A channel and its members."""

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

    All receivers share one object, because a thousand transmissions, each to a hundred
    receivers, may be in transit at a time.

    Attributes:
        frame, value: The frame that the receivers' libraries get, and its bytes. For an
            application's sync message, the transmission has another frame and other
            bytes, because the application removes the content
            (`ProfileShare.library_syncs_every_s`).
        receivers: Members that the transmission has not reached yet. The last member in
            the list is the next receiver.
        times_ms: Arrival times at the members in `receivers`, in the same order.
    """

    transmission: Transmission
    frame: Frame
    value: bytes
    retrieval_hint: bytes
    receivers: list[Member]
    times_ms: list[int]
