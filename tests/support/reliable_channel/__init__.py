"""Reliable channels for tests: one alone, and several on a simulated network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, TypeVar

from sds_core.message_channel import Cause
from sds_core.reliable_channel import (
    Advance,
    ConnectionChanged,
    Dispatched,
    Encryption,
    Event,
    Output,
    ReliableChannelCore,
    ReliableChannelOptions,
    SegmentationOptions,
    Start,
)
from sds_core.simulation.delays import Uniform
from sds_core.simulation.reliable_network import ReliableNetwork, Transmission
from sds_core.simulation.scenario import Link
from sds_core.waku import autosharded_topic
from sds_core.wire import BloomParameters
from tests.support.frames import START_MS
from tests.support.participants import LASTING

CHANNEL = "tea"
TOPIC = "/kettle/1/tea/proto"
SHARD = autosharded_topic(TOPIC, 1, 8)

PROFILE = replace(LASTING, bloom=BloomParameters(100, 0.01))
"""With a filter that is quick to make and read."""

OPTIONS = ReliableChannelOptions(profile=PROFILE)

SMALL_SEGMENTS = SegmentationOptions(segment_bytes=192, max_segment_bytes=2_048)
"""Shares of 192 bytes."""

OneEvent = TypeVar("OneEvent", bound=Event)


def channel(
    name: str = "alice",
    options: ReliableChannelOptions = OPTIONS,
    *,
    encryption: Encryption | None = None,
    now_ms: int = START_MS,
) -> ReliableChannelCore:
    """Return a new channel whose random numbers depend on its participant's name."""
    return ReliableChannelCore(
        CHANNEL,
        name,
        TOPIC,
        pubsub_topic=SHARD,
        now_ms=now_ms,
        random=Random(name),
        options=options,
        encryption=encryption,
    )


def started(
    name: str = "alice",
    options: ReliableChannelOptions = OPTIONS,
    *,
    has_store: bool = False,
    **more: Any,
) -> ReliableChannelCore:
    """Return a channel that is started and online."""
    made = channel(name, options, **more)
    made.apply(ConnectionChanged(is_online=True, has_store=has_store), START_MS)
    made.apply(Start(), START_MS)
    return made


def network(
    *names: str,
    options: ReliableChannelOptions = OPTIONS,
    loss: float = 0.0,
    seed: int = 1,
    encryption: Encryption | None = None,
) -> ReliableNetwork:
    """Return a network with started channels of these names."""
    made = ReliableNetwork(
        start_ms=START_MS,
        link=Link(loss=loss, delay=Uniform(low_ms=20, high_ms=200)),
        participants=8,
        seed=seed,
    )
    for name in names:
        made.join(name, channel(name, options, encryption=encryption))
        made.apply(name, Start())
    return made


def of_kind(events: Sequence[Event], kind: type[OneEvent]) -> list[OneEvent]:
    """Return the events of one type, in order."""
    return [event for event in events if isinstance(event, kind)]


def emitted(net: ReliableNetwork, by: str, kind: type[OneEvent]) -> list[OneEvent]:
    """Return what a participant's channel emitted of one type, in order."""
    return of_kind([one.event for one in net.events if one.by == by], kind)


def only(output: Output, kind: type[OneEvent]) -> OneEvent:
    """Return the one event of an output, which has this type."""
    (event,) = output.events
    assert isinstance(event, kind)
    return event


def causes(
    alone: ReliableChannelCore, duration_ms: int, start_ms: int = START_MS
) -> list[Cause]:
    """Run a channel to which nothing arrives; returns why it sends what it sends."""
    found = []
    end_ms = start_ms + duration_ms
    while (at_ms := alone.next_deadline_ms) <= end_ms:
        for dispatch in alone.apply(Advance(), int(at_ms)).dispatches:
            found.append(dispatch.cause)
            alone.apply(Dispatched(dispatch.number), int(at_ms))
    return found


def sent(net: ReliableNetwork, *kinds: Cause) -> list[Transmission]:
    """Return what was sent for these causes, or for any, in order."""
    return [
        one for one in net.transmissions if not kinds or one.dispatch.cause in kinds
    ]


OFFLINE = ConnectionChanged(is_online=False, has_store=False)
ONLINE = ConnectionChanged(is_online=True, has_store=False)
