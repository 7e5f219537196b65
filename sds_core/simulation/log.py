"""The log of a simulation: everything that happens, as values.

The simulator yields entries in order of time. Records of taps and the truth are derived
from the entries. Times are Unix ms by the simulation's clock, unless an attribute names
the clock of a participant or tap.
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
"""Parts of the Waku message around each frame."""


class Transmission(NamedTuple):
    """One sending of one frame to all participants of its channel.

    Attributes:
        number: Number of the transmission, counted from 0.
        by: Participant that sent the frame. For a repair, the frame names the original
            sender instead.
        cause: Why the frame was sent; outside a simulation, only the sender knows this.
        frame: The frame. If a sync frame has a cause other than `Cause.SYNC`, the
            sender's library treats the frame as a message: all its sendings have the
            same id, and the id enters causal histories.
        value: The frame's bytes, which are equal in all sendings of one message.
        waku_hash: Waku message hash of this sending, `0x` and 64 hex digits.
        waku_timestamp_ns: the time in the Waku message, by the sender's clock.
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
        """Whether the frame's library remembers and repairs the frame."""
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
    """A participant with a profile joined a channel or left it (churn).

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
    """A tap recorded a transmission; further records of a transmission are replicas.

    Attributes:
        at_ms: event time of the record, by the tap's clock.
        seq: sequence number from the tap, from 1; records that are lost on the way to
            Kafka have numbers too.
    """

    at_ms: int
    tap: str
    seq: int
    transmission: Transmission


class Heartbeat(NamedTuple):
    """A tap reports that it is running.

    Attributes:
        at_ms: time by the tap's clock.
        seq: the last sequence number of a frame; 0 if none.
    """

    at_ms: int
    tap: str
    seq: int


class GapCause(enum.StrEnum):
    """Why a tap did not record what was sent.

    DOWN: The tap did not run, and sent no heartbeats. DEAF: The tap ran, but received
    nothing. RECORD_LOST: A record of the tap did not reach the topic.
    """

    DOWN = "down"
    DEAF = "deaf"
    RECORD_LOST = "record lost"


class TapGap(NamedTuple):
    """A period in which a tap recorded nothing; logged when it begins.

    Losses on the links to the tap are no gaps, because the links to participants also
    lose messages.

    Attributes:
        at_ms: start of the period, by the tap's clock.
        until_ms: end of the period, by the tap's clock; the end is not included.
    """

    at_ms: int
    tap: str
    until_ms: int
    cause: GapCause


Entry = Transmission | Arrival | Happening | Presence | Sighting | Heartbeat | TapGap


def content_topic(channel_id: str) -> str:
    """Return the content topic of a simulated channel (23/WAKU2-TOPICS)."""
    return f"/sds-simulator/1/{channel_id}/proto"
