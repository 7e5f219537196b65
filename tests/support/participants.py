"""Participants of one channel, and functions that pass frames between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import TypeVar

from sds_core.message_channel import Event, MessageChannel, Profile, Step
from sds_core.wire import Frame, decode
from tests.support.frames import START_MS, value_of

SPEC = Profile.spec()
LASTING = replace(
    SPEC,
    requests_taken_per_message=Profile().requests_taken_per_message,
    after_request=Profile().after_request,
    repair_retention_ms=Profile().repair_retention_ms,
)
"""The same with the default's repairs, which ask again and answer for longer."""
CHANNEL = "channel"

OneEvent = TypeVar("OneEvent", bound=Event)


def participant(
    name: str = "alice",
    profile: Profile = SPEC,
    *,
    channel_id: str = CHANNEL,
    now_ms: int = START_MS,
) -> MessageChannel:
    """Return a new participant whose random numbers depend on its name."""
    return MessageChannel(
        channel_id, name, now_ms=now_ms, random=Random(name), profile=profile
    )


def hand_over(
    step: Step, *receivers: MessageChannel, now_ms: int = START_MS
) -> list[Event]:
    """Deliver a step's broadcasts to each receiver; return their events."""
    return [
        event
        for broadcast in step.broadcasts
        for receiver in receivers
        for event in receiver.receive(broadcast.value, now_ms).events
    ]


def receive(
    receiver: MessageChannel, *frames: Frame, now_ms: int = START_MS
) -> list[Event]:
    """Deliver frames built by hand, as bytes; return the receiver's events."""
    return [
        event
        for frame in frames
        for event in receiver.receive(value_of(frame), now_ms).events
    ]


def frame_of(step: Step) -> Frame:
    """Return the one frame that a step broadcasts."""
    (broadcast,) = step.broadcasts
    return decode(broadcast.value)


def of_type(events: Iterable[Event], kind: type[OneEvent]) -> list[OneEvent]:
    """Return the events of one type."""
    return [event for event in events if isinstance(event, kind)]


def typed(events: Iterable[Event]) -> list[tuple[type[Event], Event]]:
    """Return events with their types, because events are tuples and compare as such."""
    return [(type(event), event) for event in events]
