"""The log of a simulation: everything that happens, as values.

The simulator yields entries in order of time. Records of taps and the truth are derived
from them. Times are Unix ms of the simulation's own clock, unless an attribute says
that a participant's or tap's clock gives them.
"""

from __future__ import annotations

from typing import NamedTuple

from sds_core.message_channel.events import Cause, Event
from sds_core.message_channel.profile import Profile
from sds_core.wire import Frame

_SPEC = Profile.spec()


class Transmission(NamedTuple):
    """One sending of one frame to everybody in its channel.

    Attributes:
        number: Identity: transmissions of the simulation are counted from 0.
        at_ms: Time of sending.
        channel_id: Channel of the frame.
        by: Participant that sent it; for a repair not the sender inside the frame.
        cause: Why it was sent, which only its sender knows.
        frame: The frame.
        value: The frame's bytes; the same object at every sending of one message.
        waku_hash: Waku message hash of this sending, `0x` and 64 hex digits.
        waku_timestamp_ns: the time by the sender's clock that the hash covers.
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
    """A participant joined a channel or left it (churn), of some profile."""

    at_ms: int
    channel_id: str
    participant: str
    present: bool
    profile: Profile = _SPEC


class Sighting(NamedTuple):
    """A tap recorded a transmission; a second record of the same one is a replica.

    Attributes:
        at_ms: event time of the record, by the tap's clock.
        tap: observer id.
        seq: number given by the tap, from 1 without holes, also if the record is
            lost on its way to Kafka.
        transmission: the recorded transmission.
    """

    at_ms: int
    tap: str
    seq: int
    transmission: Transmission


class Heartbeat(NamedTuple):
    """A tap reports that it is running.

    Attributes:
        at_ms: time by the tap's clock.
        tap: observer id.
        seq: the last number that it gave to a frame, 0 if none.
    """

    at_ms: int
    tap: str
    seq: int


Entry = Transmission | Arrival | Happening | Presence | Sighting | Heartbeat
