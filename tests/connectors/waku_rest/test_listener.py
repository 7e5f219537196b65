"""Listening to nodes over real HTTP: which messages are spooled, and from where."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from connectors.waku_rest.settings import Listen
from connectors.waku_rest.spool import Spooled
from sds_core.mirror.figures import Loss, Source
from sds_core.waku import RELIABLE_CHANNEL_META, WakuMessage
from tests.support.waku_node import ConformanceNode, Endpoint, Fault
from tests.support.waku_rest.listening import (
    CACHE,
    UNAVAILABLE,
    RigMaker,
    heard,
    offer_unread,
)
from tests.support.waku_rest.rig import (
    SHARD,
    TOPIC,
    Clock,
    Running,
    calls,
    message,
    offer,
    until,
)

pytestmark = pytest.mark.slow


def test_relayed_message_is_spooled_in_the_record_format(
    node: ConformanceNode, make_rig: RigMaker
) -> None:
    """Key, value, time, headers; numbers start at 1, ephemerals included."""
    rig = make_rig(node)
    first = message(1)
    bare = WakuMessage(first.payload + b"\x00", "/t", 0, meta=RELIABLE_CHANNEL_META)
    whispered = message(3, ephemeral=True)

    async def script(running: Running) -> None:
        for one in (first, bare, whispered):
            await until(heard(rig, node))
            offer(node, one)
        await until(lambda: rig.accepted == 3)

    rig.listen(script)
    frames = rig.frames
    assert rig.seqs == [1, 2, 3]
    assert [one.key for one in frames] == [b"town", None, b"town"]
    assert [one.value for one in frames] == [
        one.payload for one in (first, bare, whispered)
    ]
    times = [one.at_ms for one in frames]
    assert times == sorted(times)
    headers = [dict(one.headers) for one in frames]
    assert headers[0] == {
        "source": b"relay",
        "waku-hash": b"0x" + first.hash_on(SHARD).hex().encode(),
        "pubsub-topic": SHARD.encode(),
        "content-topic": TOPIC.encode(),
        "ephemeral": b"false",
        "waku-timestamp": str(first.timestamp_ns).encode(),
    }
    assert headers[1]["meta"] == RELIABLE_CHANNEL_META
    assert "waku-timestamp" not in headers[1]
    assert headers[2]["ephemeral"] == b"true"
    assert rig.losses == {}
    assert rig.node(node).is_up


def test_message_of_several_nodes_is_spooled_once(
    node: ConformanceNode, make_rig: RigMaker
) -> None:
    """Its hash identifies it; further copies are counted."""
    with ConformanceNode() as other:
        rig = make_rig(node, other)

        async def script(running: Running) -> None:
            await until(heard(rig, node))
            await until(heard(rig, other))
            for one in (message(1), message(2)):
                offer(node, one)
                offer(other, one)
            await until(lambda: rig.figures.duplicates[Source.RELAY] == 2)

        rig.listen(script)
    assert rig.seqs == [1, 2]
    assert rig.figures.accepted[Source.RELAY] == 2


def test_a_page_with_bad_reordered_and_repeated_messages_is_used(
    node: ConformanceNode, make_rig: RigMaker
) -> None:
    """Unreadable messages are counted, and the others are spooled."""
    rig = make_rig(node)
    fault = Fault(extra=[b'{"payload": 1}', b"7"], duplicated=True, reordered=True)

    async def script(running: Running) -> None:
        await until(heard(rig, node))
        await offer_unread(rig, node, 1, 2)
        node.inject(Endpoint.RELAY, fault)
        await until(lambda: rig.accepted == 2)

    rig.listen(script)
    assert sorted(rig.hashes) == sorted(one.hash for one in node.offers)
    assert rig.node(node).undecodable == 2
    assert rig.losses == {}


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the log says."""
    return [one.getMessage() for one in caplog.records if one.name == "sds-monitor"]


def test_log_says_when_a_node_answers_again(
    node: ConformanceNode, make_rig: RigMaker, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, with the length of the trouble; also of a second one."""
    caplog.set_level("INFO", "sds-monitor")
    clock = Clock()
    rig = make_rig(node, now_ms=clock)
    failures = rig.node(node).failures

    async def trouble(length_ms: int) -> None:
        await until(heard(rig, node))
        before = failures[Source.RELAY]
        node.spoil(Endpoint.RELAY, UNAVAILABLE)
        await until(lambda: failures[Source.RELAY] > before + 1)
        clock.now_ms += length_ms
        node.heal()
        await until(lambda: rig.node(node).is_up)

    async def script(running: Running) -> None:
        await trouble(31_000)
        await trouble(3_700_000)

    rig.listen(script)
    said = lines(caplog)
    assert [line for line in said if "again" in line] == [
        f"node {node.url}: answers again after 31 s",
        f"node {node.url}: answers again after 3,700 s",
    ]
    assert len(said) == 4


def test_full_spool_pauses_reading(
    node: ConformanceNode, make_rig: RigMaker, caplog: pytest.LogCaptureFixture
) -> None:
    """Messages that the node's cache drops meanwhile are a hole; the log says it."""
    caplog.set_level("INFO", "sds-monitor")
    rig = make_rig(node, limit_bytes=1, cache_messages=CACHE)

    async def script(running: Running) -> None:
        intake, pages = running.intake, rig.node(node).pages
        await until(heard(rig, node))
        await offer_unread(rig, node, 1, 2)
        await until(lambda: intake.is_full)
        # The turn that is under way may still read an empty page.
        await until(lambda: node.relay_backlog == 0)
        read = pages[Source.RELAY]
        offer(node, *map(message, range(10, 10 + CACHE + 5)))
        written = await intake.use(rig.spool.pending, 10)
        await asyncio.sleep(0.1)
        assert pages[Source.RELAY] <= read + 1
        assert node.relay_backlog == CACHE
        assert caplog.text.count("the spool is full") == 1
        await intake.use(rig.spool.written, written)
        assert "the spool has room again after" in caplog.text
        await until(lambda: rig.accepted == CACHE + 2)

    rig.listen(script)
    assert rig.seqs == list(range(3, CACHE + 3))
    assert rig.losses == {Loss.FULL_PAGE: 1}


def test_page_read_during_the_stop_is_spooled(
    node: ConformanceNode, make_rig: RigMaker
) -> None:
    """The node has cleared it already."""
    rig = make_rig(node)

    async def script(running: Running) -> None:
        await until(heard(rig, node))
        await offer_unread(rig, node, 1, 2)
        node.inject(Endpoint.RELAY, Fault(delay_s=0.3))
        await until(lambda: node.relay_backlog == 0)

    rig.listen(script)
    assert sorted(rig.hashes) == sorted(one.hash for one in node.offers)


def test_filter_subscription_is_renewed_and_relay_is_not(
    make_rig: RigMaker,
) -> None:
    """Filter nodes forget; renewing with relay would hide a restart."""
    clock = Clock()
    with ConformanceNode(now_ns=clock.now_ns) as node:
        for listen, asked in (
            (Listen.RELAY, Endpoint.SUBSCRIBE_RELAY),
            (Listen.FILTER, Endpoint.SUBSCRIBE_FILTER),
        ):
            topics = {SHARD: (TOPIC,)}
            rig = make_rig(node, now_ms=clock, topics=topics, listen=listen)
            pages = rig.node(node).pages
            source = Source(listen.value)

            async def script(running: Running) -> None:
                for step_ms in (60_000, 60_000, -300_000):
                    read = pages[source]  # noqa: B023 - run at once
                    await until(lambda: pages[source] > read + 2)  # noqa: B023
                    clock.now_ms += step_ms
                    read = pages[source]  # noqa: B023
                    await until(lambda: pages[source] > read + 2)  # noqa: B023

            rig.listen(script)
            expected = 1 if listen is Listen.RELAY else 4
            assert calls(node, asked) == expected


def test_filters_are_read_topic_by_topic(
    node: ConformanceNode, make_rig: RigMaker
) -> None:
    """With `source` = `filter`; a restart is detected too."""
    other = "/app/1/village/proto"
    rig = make_rig(node, topics={SHARD: (TOPIC, other)}, listen=Listen.FILTER)

    def answered() -> Callable[[], bool]:
        pages = rig.node(node).pages
        before = pages[Source.FILTER]
        return lambda: pages[Source.FILTER] > before + 4

    async def script(running: Running) -> None:
        await until(answered())
        offer(node, message(1), message(2, topic=other), message(3, topic="/app/1/x/y"))
        await until(lambda: rig.accepted == 2)
        node.spoil(Endpoint.FILTER, UNAVAILABLE)
        await asyncio.to_thread(node.restart)
        node.heal()
        await until(answered())
        offer(node, message(4))
        await until(lambda: rig.accepted == 3)

    rig.listen(script)
    assert rig.seqs == [1, 2, 4]
    assert [source(one) for one in rig.frames] == [b"filter"] * 3
    assert sum(rig.losses.values()) == 1


def test_other_content_topics_of_a_shard_are_left_out(
    node: ConformanceNode, make_rig: RigMaker
) -> None:
    """On the requested content topics every message is taken."""
    rig = make_rig(node, topics={SHARD: (TOPIC,)})
    strange = msgspec.structs.replace(message(2), payload=b"no frame")

    async def script(running: Running) -> None:
        await until(heard(rig, node))
        offer(node, message(1, topic="/app/1/other/proto"), strange)
        await until(lambda: rig.accepted == 1)
        await until(lambda: sum(rig.figures.skipped.values()) == 1)

    rig.listen(script)
    assert [(one.key, one.value) for one in rig.frames] == [(None, b"no frame")]


def source(frame: Spooled) -> bytes:
    """Header `source` of a frame."""
    return dict(frame.headers)["source"]
