"""What tests of the listener do with a rig and a node."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from sds_core.mirror.figures import Source
from tests.support.waku_node import ConformanceNode, Endpoint, Fault
from tests.support.waku_rest.rig import Rig, Running, message, offer, until

RigMaker = Callable[..., Rig]
Script = Callable[[Running], Awaitable[None]]

CACHE = 10
UNAVAILABLE = Fault(status=503)


def heard(rig: Rig, node: ConformanceNode) -> Callable[[], bool]:
    """Whether a node has answered since this was asked for, twice at least."""
    before = rig.node(node).pages[Source.RELAY]
    return lambda: rig.node(node).pages[Source.RELAY] >= before + 2


async def offer_unread(rig: Rig, node: ConformanceNode, *numbers: int) -> None:
    """Bring messages to a node while its cache is not read."""
    node.spoil(Endpoint.RELAY, UNAVAILABLE)
    failures = rig.node(node).failures[Source.RELAY]
    await until(lambda: rig.node(node).failures[Source.RELAY] > failures)
    offer(node, *map(message, numbers))
    node.heal()
