"""What a tap records of a simulated network of reliable channels, and the truth."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from connectors.kafka.producer import TopicRecord
from examples.chat.tap import WitnessTap
from sds_core.simulation.reliable_network import ReliableNetwork
from tests.support.frames import START_MS

_HEARTBEAT_MS = 5_000


class _Order(IntEnum):
    """Of what happens in one millisecond: a participant answers what it received."""

    RECEPTION = 0
    TRANSMISSION = 1
    HEARTBEAT = 2


def witnessed(
    net: ReliableNetwork, pubsub_topic: str
) -> tuple[list[TopicRecord], dict[str, Any]]:
    """Return the records of a tap that misses nothing, and what a monitor finds.

    Args:
        net: The network, which began at `START_MS`.
        pubsub_topic: Of all messages.
    """
    tap = WitnessTap("tap", "reliable channels")
    happened: list[tuple[int, _Order, int]] = sorted(
        [
            *(
                (one.at_ms, _Order.RECEPTION, index)
                for index, one in enumerate(net.receptions)
            ),
            *(
                (one.at_ms, _Order.TRANSMISSION, index)
                for index, one in enumerate(net.transmissions)
            ),
            *(
                (at_ms, _Order.HEARTBEAT, 0)
                for at_ms in range(START_MS, net.now_ms + 1, _HEARTBEAT_MS)
            ),
        ]
    )
    records = []
    for at_ms, order, index in happened:
        match order:
            case _Order.RECEPTION:
                received = net.receptions[index]
                tap.reached(at_ms, received.by, received.message)
            case _Order.TRANSMISSION:
                sent = net.transmissions[index]
                message = sent.dispatch.message
                records.append(tap.sent(at_ms, sent.by, message, pubsub_topic))
            case _Order.HEARTBEAT:
                records.append(tap.heartbeat(at_ms))
    return records, tap.truth()
