"""Entries of a simulation's log. Each entry describes something that happened.

The simulator yields the entries in order of simulation time. The taps' records and the
truth are both derived from the entries. Times are Unix ms according to the simulation's
clock, unless an attribute names the clock of a participant or tap.
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
"""`meta` of the Waku message around each frame. `PUBSUB_TOPIC` is its pubsub topic."""


class Transmission(NamedTuple):
    """A participant sent a frame to all other participants of its channel.

    A retry or repair of a message is another transmission.

    Attributes:
        number: Number of the transmission, counted from 0.
        by: Participant that sent the frame. If the frame is a repair, the frame's
            `sender_id` is the participant that sent the message first.
        cause: Why the frame was sent. Outside of a simulation, only the sender knows
            the cause, because the frame does not contain it.
        frame: The frame. If a sync frame has a cause other than `Cause.SYNC`, the
            application removed the content from a message of its library. The library
            treats the frame as a message: retries and repairs have the same message id,
            and causal histories contain the id.
        value: The frame's bytes. All transmissions of a message have the same bytes.
        waku_hash: Waku message hash of this transmission, `0x` and 64 hex digits.
        waku_timestamp_ns: Timestamp in the Waku message around the frame, according to
            the sender's clock.
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
        """Whether the sender's library keeps the frame's message to send it again."""
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
        is_new: Whether the participant joined with an empty SDS state: for the first
            time, or after it lost its state. False if it left.
    """

    at_ms: int
    channel_id: str
    participant: str
    present: bool
    profile: Profile = _SPEC
    is_new: bool = False


class Sighting(NamedTuple):
    """A tap recorded a transmission.

    If a tap records a transmission several times, all records but the first are
    replicas.

    Attributes:
        at_ms: Event time of the record, according to the tap's clock.
        seq: Sequence number that the tap gave the record, from 1 on. A record that is
            lost on the way to Kafka uses up a number.
    """

    at_ms: int
    tap: str
    seq: int
    transmission: Transmission


class Heartbeat(NamedTuple):
    """A tap reports that it is running.

    Attributes:
        at_ms: Time of the heartbeat, according to the tap's clock.
        seq: Sequence number of the tap's latest record; 0 if the tap has recorded
            nothing yet.
    """

    at_ms: int
    tap: str
    seq: int


class GapCause(enum.StrEnum):
    """Why a tap did not record transmissions.

    DOWN: The tap did not run, and sent no heartbeats. DEAF: The tap ran, but received
    nothing. RECORD_LOST: A record of the tap did not reach the Kafka topic.
    """

    DOWN = "down"
    DEAF = "deaf"
    RECORD_LOST = "record lost"


class TapGap(NamedTuple):
    """A period from which a tap's records are missing.

    The entry is logged when the period begins.

    If a link to the tap loses a transmission, no gap is logged, because the links to
    participants lose transmissions in the same way.

    Attributes:
        at_ms: Start of the period, according to the tap's clock.
        until_ms: Exclusive end of the period, according to the tap's clock.
    """

    at_ms: int
    tap: str
    until_ms: int
    cause: GapCause


Entry = Transmission | Arrival | Happening | Presence | Sighting | Heartbeat | TapGap


def content_topic(channel_id: str) -> str:
    """Return the content topic of a simulated channel (23/WAKU2-TOPICS)."""
    return f"/sds-simulator/1/{channel_id}/proto"
