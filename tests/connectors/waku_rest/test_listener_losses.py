"""Listening to nodes over real HTTP: which failures skip a sequence number."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from connectors.waku_rest.client import NodeClient
from connectors.waku_rest.connection import NodeSettings, open_client
from sds_core.mirror.figures import Loss, Source
from tests.support.waku_node import ConformanceNode, Endpoint, Fault
from tests.support.waku_rest.listening import (
    CACHE,
    UNAVAILABLE,
    RigMaker,
    Script,
    heard,
    offer_unread,
)
from tests.support.waku_rest.rig import (
    SHARD,
    Rig,
    Running,
    calls,
    message,
    offer,
    until,
)

pytestmark = pytest.mark.slow


def restart(rig: Rig, node: ConformanceNode) -> Script:
    """The node is started anew, and hears a message before and after."""

    async def script(running: Running) -> None:
        await until(heard(rig, node))
        offer(node, message(1))
        await until(lambda: rig.accepted == 1)
        # Not read in the moment in which it has forgotten all and still answers.
        node.spoil(Endpoint.RELAY, UNAVAILABLE)
        await asyncio.to_thread(node.restart)
        node.heal()
        await until(heard(rig, node))
        offer(node, message(2))
        await until(lambda: rig.accepted == 2)

    return script


def test_a_restart_of_the_node_skips_one_number(
    node: ConformanceNode, make_rig: RigMaker
) -> None:
    """Its cache is lost, and the mirror has to subscribe again."""
    rig = make_rig(node)
    rig.listen(restart(rig, node))
    assert rig.seqs == [1, 3]
    assert sum(rig.losses.values()) == 1
    assert calls(node, Endpoint.SUBSCRIBE_RELAY) == 2


def test_restart_skips_no_number_if_another_node_listened(
    node: ConformanceNode, make_rig: RigMaker
) -> None:
    """The other node was available all the time."""
    with ConformanceNode() as other:
        rig = make_rig(node, other)

        async def script(running: Running) -> None:
            await until(heard(rig, other))
            await restart(rig, node)(running)

        rig.listen(script)
    assert rig.seqs == [1, 2]
    assert rig.losses == {}


def test_unreachable_node_skips_one_number_however_it_returns(
    node: ConformanceNode, make_rig: RigMaker
) -> None:
    """A node with configured shards subscribes itself after a restart."""
    rig = make_rig(node)

    async def subscribe_itself() -> None:
        async with open_client(NodeSettings(node.url)) as http:
            await NodeClient(node.url, http).subscribe_relay([SHARD])

    async def script(running: Running) -> None:
        await until(heard(rig, node))
        await asyncio.to_thread(node.stop)
        await until(lambda: rig.figures.last_seq == 1)
        assert not rig.node(node).is_up
        node.start()
        await subscribe_itself()
        await until(heard(rig, node))
        offer(node, message(1))
        await until(lambda: rig.accepted == 1)

    rig.listen(script)
    assert rig.seqs == [2]
    assert sum(rig.losses.values()) == 1


def test_a_full_page_skips_one_number(
    node: ConformanceNode, make_rig: RigMaker
) -> None:
    """Each full page does: the cache drops messages without a notice."""
    rig, numbers = make_rig(node, cache_messages=CACHE), count()

    async def fill(messages: int) -> None:
        expected = rig.accepted + min(messages, CACHE)
        await offer_unread(rig, node, *(next(numbers) for _ in range(messages)))
        await until(lambda: rig.accepted == expected)

    async def script(running: Running) -> None:
        await until(heard(rig, node))
        await fill(CACHE - 1)
        await fill(CACHE + 5)
        await until(heard(rig, node))
        await fill(CACHE)
        await until(lambda: rig.node(node).full_pages == 2)
        await until(heard(rig, node))

    rig.listen(script)
    first_end, second_end = 2 * CACHE - 1, 3 * CACHE
    assert rig.seqs == [
        *range(1, first_end + 1),
        *range(first_end + 2, second_end + 1),
    ]
    assert rig.figures.last_seq == second_end + 1
    assert rig.losses == {Loss.FULL_PAGE: 2}


def test_pages_of_all_topics_fill_one_cache(make_rig: RigMaker) -> None:
    """No single page is full."""
    other_shard = "/waku/2/rs/1/1"
    with ConformanceNode(relay_capacity=CACHE) as node:
        topics = {SHARD: (), other_shard: ()}
        rig = make_rig(node, topics=topics, cache_messages=CACHE)

        async def script(running: Running) -> None:
            await until(heard(rig, node))
            await offer_unread(rig, node, *range(CACHE // 2))
            for number in range(CACHE, 2 * CACHE):
                node.offer(message(number), pubsub_topic=other_shard)
            await until(lambda: rig.figures.losses[Loss.FULL_PAGE])

        rig.listen(script)
    assert rig.accepted >= CACHE


@pytest.mark.parametrize("goes_on", [False, True])
def test_full_first_page_is_a_loss_for_a_restarted_mirror(
    goes_on: bool, node: ConformanceNode, make_rig: RigMaker
) -> None:
    """The cache overflowed before the start; a new mirror lost nothing."""
    rig = make_rig(node, cache_messages=CACHE)

    async def hear_one(running: Running) -> None:
        await until(heard(rig, node))
        if goes_on:
            offer(node, message(100))
            await until(lambda: rig.accepted == 1)

    async def hear_all(running: Running) -> None:
        await until(lambda: rig.accepted == CACHE)
        await until(heard(rig, node))

    rig.listen(hear_one)
    offer(node, *map(message, range(CACHE + 3)))
    rig = make_rig(node, cache_messages=CACHE)
    rig.listen(hear_all)
    assert rig.node(node).full_pages == 1
    assert rig.losses == ({Loss.FULL_PAGE: 1} if goes_on else {})


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (Fault(cut=True), 2),
        (Fault(body=b"nonsense"), 0),
        (Fault(delay_s=0.8), 0),
    ],
    ids=["cut", "nonsense", "late"],
)
def test_a_page_that_does_not_arrive_skips_one_number(
    fault: Fault, found: int, node: ConformanceNode, make_rig: RigMaker
) -> None:
    """Once for all retries; the part that arrived is spooled."""
    rig = make_rig(node, timeout_s=0.3, store=False)

    async def script(running: Running) -> None:
        await until(heard(rig, node))
        await offer_unread(rig, node, 1, 2, 3, 4)
        asked = calls(node, Endpoint.RELAY)
        node.spoil(Endpoint.RELAY, fault)
        await until(lambda: sum(rig.losses.values()))
        await until(lambda: calls(node, Endpoint.RELAY) > asked)
        node.heal()
        await until(heard(rig, node))
        await offer_unread(rig, node, 5)
        await until(lambda: rig.accepted == found + 1)

    rig.listen(script)
    assert rig.losses[Loss.PAGE_CUT_OFF] >= 1
    numbers = rig.seqs
    # An empty page that is cut holds nothing, but nobody can know.
    assert numbers[-1] == found + 1 + sum(rig.losses.values())
    assert numbers[:found] == list(range(1, found + 1))


def test_a_node_that_keeps_failing_is_one_loss(
    node: ConformanceNode, make_rig: RigMaker
) -> None:
    """Until it answers again it is the same hole."""
    rig = make_rig(node)

    async def script(running: Running) -> None:
        await until(heard(rig, node))
        node.spoil(Endpoint.RELAY, Fault(body=b"nonsense"))
        failures = rig.node(node).failures[Source.RELAY]
        await until(lambda: rig.node(node).failures[Source.RELAY] >= failures + 3)
        assert not rig.node(node).is_up
        node.heal()
        await until(heard(rig, node))

    rig.listen(script)
    assert rig.losses == {Loss.PAGE_CUT_OFF: 1}
    assert rig.figures.last_seq == 1


def test_a_refusal_loses_nothing(node: ConformanceNode, make_rig: RigMaker) -> None:
    """The cache is unchanged and read when the node allows it."""
    rig = make_rig(node)

    async def script(running: Running) -> None:
        await until(heard(rig, node))
        node.inject(Endpoint.RELAY, Fault(status=429, retry_after="1"))
        node.inject(Endpoint.RELAY, Fault(status=503))
        await until(lambda: rig.node(node).failures[Source.RELAY] == 2)
        offer(node, message(1))
        await until(lambda: rig.accepted == 1)

    rig.listen(script)
    assert (rig.seqs, rig.losses) == ([1], {})
    asked = [call for call in node.calls if call.endpoint is Endpoint.RELAY]
    (refused,) = [n for n, call in enumerate(asked) if call.status == 429]
    assert asked[refused + 1].at_ns - asked[refused].at_ns >= 1_000_000_000


@pytest.mark.parametrize("status", [500, 502, 504])
def test_an_answer_that_a_proxy_lost_is_a_loss(
    status: int, node: ConformanceNode, make_rig: RigMaker
) -> None:
    """The node behind the proxy may have cleared the page."""
    rig = make_rig(node)

    async def script(running: Running) -> None:
        await until(heard(rig, node))
        node.inject(Endpoint.RELAY, Fault(status=status))
        await until(lambda: rig.node(node).failures[Source.RELAY] == 1)
        await until(heard(rig, node))

    rig.listen(script)
    assert rig.losses == {Loss.PAGE_CUT_OFF: 1}
    assert rig.figures.last_seq == 1


def test_node_that_never_answered_is_reported_once(
    node: ConformanceNode, make_rig: RigMaker, caplog: pytest.LogCaptureFixture
) -> None:
    """Its address may be mistyped; nothing is lost."""
    rig = make_rig(node)
    node.stop()

    async def script(running: Running) -> None:
        await until(lambda: rig.node(node).failures[Source.RELAY] >= 3)

    rig.listen(script)
    (said,) = [one.message for one in caplog.records if one.name == "sds-monitor"]
    assert said.startswith(f"node {node.url}: POST /relay/v1/subscriptions got no")
    assert rig.losses == {}
