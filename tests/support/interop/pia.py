"""A network with one of our reliable channels, for the peers of another library."""

from __future__ import annotations

from random import Random

from sds_core.reliable_channel import (
    ReliableChannelCore,
    ReliableChannelOptions,
    Start,
)
from sds_core.simulation.delays import Uniform
from sds_core.simulation.reliable_network import ReliableNetwork
from sds_core.simulation.scenario import Link
from tests.support.frames import START_MS
from tests.support.reliable_channel import CHANNEL, SHARD, TOPIC


def network_of_pia(
    options: ReliableChannelOptions,
    *,
    participants: int,
    loss: float,
    sender_id: str = "pia",
) -> ReliableNetwork:
    """Return a network with our channel "pia", which is started.

    Args:
        options: Options of the channel.
        participants: Most participants, with pia.
        loss: Share of what is lost on each link.
        sender_id: Id of pia.
    """
    net = ReliableNetwork(
        start_ms=START_MS,
        link=Link(loss=loss, delay=Uniform(low_ms=30, high_ms=300)),
        participants=participants,
        seed=3,
    )
    ours = ReliableChannelCore(
        CHANNEL,
        sender_id,
        TOPIC,
        pubsub_topic=SHARD,
        now_ms=START_MS,
        random=Random(3),
        options=options,
    )
    net.join("pia", ours)
    net.apply("pia", Start())
    return net
