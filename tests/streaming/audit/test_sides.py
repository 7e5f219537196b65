"""The sides of an audit, without the command."""

from __future__ import annotations

import asyncio

from connectors.kafka.mirrored import Mirrored
from connectors.waku_rest.connection import NodeSettings
from sds_core.waku import WakuMessage
from streaming.cli.actions.audit_sides import Differences, StoreSide
from tests.support.audit.mirrors import (
    CONTENT_TOPIC,
    PUBSUB_TOPIC,
    START_NS,
    sent_messages,
)
from tests.support.waku_node import ConformanceNode


def test_messages_that_a_mirror_skips_are_fetched_once() -> None:
    """A shard may have far more other traffic than SDS; what is missing stays so."""
    (sent,) = sent_messages(1)
    others = [
        WakuMessage(b"not SDS", CONTENT_TOPIC, START_NS + number) for number in range(3)
    ]
    lacking = sent.hash

    async def twice(url: str) -> list[Differences]:
        side = StoreSide([NodeSettings(url)], {PUBSUB_TOPIC: ()})
        found = []
        for _ in range(2):
            compared = await side.compare(Mirrored(), START_NS, START_NS + 10)
            found.append(compared)
            copied = await side.copy(compared.missing_here)
            assert [one.message.message_hash for one in copied] == [lacking]
        return found

    with ConformanceNode() as node:
        for message in (sent.message, *others):
            node.store_late(message, pubsub_topic=PUBSUB_TOPIC)
        first, second = asyncio.run(twice(node.url))
    assert (len(first.missing_here), first.there) == (4, 4)
    assert (second.missing_here, second.there) == ([lacking], 1)
