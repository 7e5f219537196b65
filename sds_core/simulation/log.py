"""The log of a simulation: everything that happens, as values.

The simulator yields entries in order of time. The taps' records and the truth are both
derived from the entries. Times are Unix ms according to the simulation's clock, unless
an attribute names the clock of a participant or tap.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from sds_core.message_channel.events import Cause, Event
from sds_core.message_channel.profile import Profile
from sds_core.wire import Frame

_SPEC = Profile.spec()

PUBSUB_TOPIC = "/waku/2/rs/1/0"
META = b""
"""The pubsub topic and `meta` of the Waku message around each frame."""


class Transmission(NamedTuple):
    """A frame that is sent once to all participants of its channel.

    Attributes:
        number: Number of the transmission, counted from 0.
        by: Participant that sent the frame. If the frame is a repair, its `sender_id`
            is not this participant, but the message's sender.
        cause: Why the frame was sent. Outside of a simulation, only the sender knows
            this.
        frame: The frame. If a sync frame has a cause other than `Cause.SYNC`, the
            sender's library treats it as a message: its id stays the same, and enters
            causal histories.
        value: The frame's bytes. All transmissions of a message have the same bytes.
        waku_hash: Waku message hash of this transmission, `0x` and 64 hex digits.
        waku_timestamp_ns: the time in the Waku message, according to the sender's
            clock.
    """

    number: int
    at_ms: int
    channel_id: str
    by: str
    cause: Cause
    frame: Frame
    value: bytes
    waku_hash: str
    waku_timestamp_ns: int

    @property
    def is_of_message(self) -> bool:
        """Whether the sender's library remembers and repairs the frame as a message."""
        return self.cause not in (Cause.SYNC, Cause.EPHEMERAL)


class Arrival(NamedTuple):
    """A transmission reached a participant."""

    at_ms: int
    participant: str
    transmission: Transmission


class Happening(NamedTuple):
    """A participant emitted an event to its application."""

    at_ms: int
    channel_id: str
    participant: str
    event: Event


class Presence(NamedTuple):
    """A participant joined a channel or left it (churn).

    Attributes:
        is_new: Whether the participant has no state from an earlier presence.
    """

    at_ms: int
    channel_id: str
    participant: str
    present: bool
    profile: Profile = _SPEC
    is_new: bool = False


class Sighting(NamedTuple):
    """A tap recorded a transmission. The tap's later records of it are replicas.

    Attributes:
        at_ms: event time of the record, according to the tap's clock.
        seq: sequence number from the tap, from 1 on. Records lost on the way to Kafka
            have numbers too.
    """

    at_ms: int
    tap: str
    seq: int
    transmission: Transmission


class Heartbeat(NamedTuple):
    """A tap reports that it is running.

    Attributes:
        at_ms: time according to the tap's clock.
        seq: sequence number of the tap's last frame; 0 if it had none.
    """

    at_ms: int
    tap: str
    seq: int


class GapCause(enum.StrEnum):
    """Why a tap did not record transmissions.

    DOWN: The tap did not run, and sent no heartbeats. DEAF: The tap ran, but received
    nothing. RECORD_LOST: A record of the tap did not reach the topic.
    """

    DOWN = "down"
    DEAF = "deaf"
    RECORD_LOST = "record lost"


class TapGap(NamedTuple):
    """A period in which a tap recorded nothing. It is logged when it begins.

    A loss on a link to the tap is not a gap, because it is as normal as a loss on a
    link to a participant.

    Attributes:
        at_ms: start of the period, according to the tap's clock.
        until_ms: exclusive end of the period, according to the tap's clock.
    """

    at_ms: int
    tap: str
    until_ms: int
    cause: GapCause


Entry = Transmission | Arrival | Happening | Presence | Sighting | Heartbeat | TapGap


def content_topic(channel_id: str) -> str:
    """Return the content topic of a simulated channel (23/WAKU2-TOPICS)."""
    return f"/sds-simulator/1/{channel_id}/proto"
