"""The document's API on a Waku node, over HTTP."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.reliable_channel import ReliableChannel, create_reliable_channel
from connectors.storage.reliable_channel import SqliteChannelStorage
from connectors.waku_rest.channel_node import RestNode
from connectors.waku_rest.client import NodeClient
from connectors.waku_rest.connection import NodeSettings, open_client
from sds_core.reliable_channel import (
    ChaChaEncryption,
    EventName,
    NotStarted,
    ReliableChannelOptions,
    SendError,
)
from sds_core.waku import WakuMessage
from tests.support.reliable_channel import CHANNEL, OPTIONS, PROFILE, SHARD, TOPIC
from tests.support.waku_node import ConformanceNode, Endpoint, Fault

QUICK = replace(
    OPTIONS,
    sync_min_interval_ms=400,
    retry_interval_ms=500,
    retrieve_frequency_ms=200,
    process_task_min_elapse_ms=10,
)
PATIENCE_S = 20


@pytest.fixture(scope="module")
def server() -> Iterator[ConformanceNode]:
    """A node that relays and stores."""
    with ConformanceNode() as made:
        yield made


@pytest.fixture
def waku(server: ConformanceNode) -> ConformanceNode:
    """The node as new."""
    server.forget()
    return server


Heard = list[tuple[str, Any]]


def hear(channel: ReliableChannel) -> Heard:
    """Record all events with their names, as they come."""
    heard: Heard = []
    for name in EventName:
        channel.on(name, lambda event: heard.append((str(event.name), event)))
    return heard


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():
            await asyncio.sleep(0.02)


@asynccontextmanager
async def rest_node(waku: ConformanceNode) -> AsyncIterator[RestNode]:
    """Connect to the node."""
    async with open_client(NodeSettings(waku.url)) as http:
        client = NodeClient(waku.url, http)
        node = RestNode(client, client, poll_s=0.05)
        try:
            yield node
        finally:
            await node.close()


@asynccontextmanager
async def participant(
    node: RestNode,
    name: str,
    options: ReliableChannelOptions = QUICK,
    **more: Any,
) -> AsyncIterator[tuple[ReliableChannel, Heard]]:
    """Open a channel, started after its events are heard."""
    channel = await create_reliable_channel(
        node, CHANNEL, name, TOPIC, replace(options, auto_start=False), **more
    )
    heard = hear(channel)
    await channel.start()
    try:
        yield channel, heard
    finally:
        await channel.stop()


def names(heard: Heard, message_id: str) -> list[str]:
    """Return the names of a message's events, in order."""
    return [
        name
        for name, event in heard
        if getattr(event, "message_id", None) == message_id
    ]


def payloads(heard: Heard) -> list[bytes]:
    """Return the received payloads."""
    return [event.payload for name, event in heard if name == "message-received"]


@pytest.mark.rule(
    "rc-create",
    "rc-subscribe",
    "rc-arch-subscribe",
    "rc-arch-emitter",
    "rc-listen",
    "rc-listen-decode",
    "rc-listen-emit",
    "rc-create-topic",
    "rc-create-node",
    "rc-create-content-topic",
    "rc-create-options",
    "rc-type-channel",
    "rc-content-topic",
    "rc-arch-hints",
)
def test_two_channels_talk_through_the_node(waku: ConformanceNode) -> None:
    """Encrypted, segmented, and acknowledged; the events come in order."""
    key = bytes(32)
    large = os.urandom(250_000)

    async def talk() -> None:
        cipher = ChaChaEncryption(key, CHANNEL, os.urandom)
        async with (
            rest_node(waku) as node,
            participant(node, "alice", encryption=cipher) as (alice, of_alice),
            participant(node, "bob", encryption=cipher) as (_, of_bob),
        ):
            await until(lambda: len(waku.calls) > 4)
            message_id = alice.send(large)
            await until(lambda: payloads(of_bob) == [large])
            await until(
                lambda: names(of_alice, message_id).count("message-acknowledged") == 3
            )
            first = names(of_alice, message_id)
            assert first[:2] == ["sending-message"] * 2
            last = [event for _, event in of_alice][-1]
            assert last.chunk_info.chunks == (0, 1, 2)

    asyncio.run(talk())


@pytest.mark.rule("rc-auto-start", "rc-is-started", "rc-stop")
def test_channel_starts_by_itself_unless_told_otherwise(waku: ConformanceNode) -> None:
    """After the stop it sends no more."""

    async def live() -> None:
        async with rest_node(waku) as node:
            channel = await create_reliable_channel(node, CHANNEL, "alice", TOPIC)
            assert channel.is_started()
            await channel.stop()
            assert not channel.is_started()
            with pytest.raises(NotStarted):
                channel.send(b"tea")
            silent = await create_reliable_channel(
                node, CHANNEL, "bob", TOPIC, replace(QUICK, auto_start=False)
            )
            assert not silent.is_started()

    asyncio.run(live())


def test_channel_stops_after_its_node_is_closed(
    waku: ConformanceNode, caplog: pytest.LogCaptureFixture
) -> None:
    """An application may end them in either order."""

    async def live() -> None:
        async with rest_node(waku) as node:
            channel = await create_reliable_channel(node, CHANNEL, "alice", TOPIC)
        await channel.stop()
        assert not channel.is_started()

    asyncio.run(live())
    assert "unsubscribing from the node failed" not in caplog.text


@pytest.mark.rule("rc-connect", "rc-retrieve-hash")
def test_late_participant_gets_the_past_from_the_store(waku: ConformanceNode) -> None:
    """By query on connect, and by hash what the history names."""

    async def live() -> None:
        async with (
            rest_node(waku) as node,
            participant(node, "alice") as (alice, of_alice),
        ):
            ids = [alice.send(b"message %d" % number) for number in range(30)]
            await until(lambda: all("message-sent" in names(of_alice, i) for i in ids))
            await until(lambda: len(waku.stored) >= 30)
            async with participant(node, "bob") as (_, of_bob):
                await until(lambda: len(payloads(of_bob)) == 30)
                assert payloads(of_bob) == [b"message %d" % n for n in range(30)]

    asyncio.run(live())


@pytest.mark.rule("rc-retry-offline")
def test_message_waits_while_the_node_is_down(waku: ConformanceNode) -> None:
    """It goes out when the node is back, after a new subscription."""

    async def live() -> None:
        async with (
            rest_node(waku) as node,
            participant(node, "alice") as (alice, heard),
        ):
            await until(lambda: len(waku.calls) > 2)
            await asyncio.to_thread(waku.stop)
            await asyncio.sleep(0.3)
            message_id = alice.send(b"tea")
            await asyncio.sleep(0.3)
            assert "message-sent" not in names(heard, message_id)
            await asyncio.to_thread(waku.start)
            await until(lambda: "message-sent" in names(heard, message_id))

    asyncio.run(live())


@pytest.mark.rule("rc-error-rln", "rc-error-size", "rc-error-no-retry", "rc-type-error")
@pytest.mark.parametrize(
    ("fault", "payload_bytes", "error"),
    [
        (Fault(status=413), 100, SendError.SIZE_TOO_LARGE),
        (None, 160_000, SendError.SIZE_TOO_LARGE),
    ],
)
def test_refusal_for_good_is_an_irrecoverable_error(
    waku: ConformanceNode,
    fault: Fault | None,
    payload_bytes: int,
    error: SendError,
) -> None:
    """Nothing is sent again."""
    whole = replace(QUICK, segmentation=None, max_message_bytes=240_000)

    async def live() -> None:
        async with (
            rest_node(waku) as node,
            participant(node, "alice", whole) as (alice, heard),
        ):
            await until(lambda: len(waku.calls) > 2)
            if fault is not None:
                waku.inject(Endpoint.PUBLISH, fault)
            message_id = alice.send(os.urandom(payload_bytes))
            await until(
                lambda: (
                    names(heard, message_id)
                    == ["sending-message", "sending-message-irrecoverable-error"]
                )
            )
            assert heard[-1][1].error is error
            await asyncio.sleep(0.7)
            assert len(names(heard, message_id)) == 2

    asyncio.run(live())


def test_passing_refusal_is_followed_by_a_retry(waku: ConformanceNode) -> None:
    """As of a node that is busy, or whose RLN budget is spent."""

    async def live() -> None:
        async with (
            rest_node(waku) as node,
            participant(node, "alice") as (alice, heard),
        ):
            await until(lambda: len(waku.calls) > 2)
            waku.inject(Endpoint.PUBLISH, Fault(status=400))
            message_id = alice.send(b"tea")
            await until(lambda: "message-sent" in names(heard, message_id))
            assert names(heard, message_id)[:3] == [
                "sending-message",
                "sending-message",
                "message-sent",
            ]

    asyncio.run(live())


def test_failing_handler_does_not_stop_the_channel(
    waku: ConformanceNode, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged, and the others are called."""

    async def live() -> None:
        async with (
            rest_node(waku) as node,
            participant(node, "alice") as (alice, heard),
        ):
            alice.on("sending-message-irrecoverable-error", lambda _: 1 / 0)
            message_id = alice.send(b"")
            assert len(names(heard, message_id)) == 1
            with pytest.raises(ValueError, match="no-such-event"):
                alice.on("no-such-event", print)

    asyncio.run(live())
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.rule("rc-sender-id-kept", "rc-create-sender-id")
def test_stored_channel_continues(waku: ConformanceNode, tmp_path: Path) -> None:
    """What was not sent before the end of one process is sent by the next."""

    async def live() -> None:
        path = tmp_path / "alice.sqlite"
        with SqliteChannelStorage(path) as storage:
            async with (
                rest_node(waku) as node,
                participant(node, "alice", storage=storage) as (alice, heard),
            ):
                waku.spoil(Endpoint.PUBLISH, Fault(status=503))
                message_id = alice.send(b"before")
                await asyncio.sleep(0.3)
                assert "message-sent" not in names(heard, message_id)
        waku.heal()
        with SqliteChannelStorage(path) as storage:
            async with (
                rest_node(waku) as node,
                participant(node, "alice", storage=storage) as (_, of_alice),
                participant(node, "bob") as (_, of_bob),
            ):
                await until(lambda: payloads(of_bob) == [b"before"])
                await until(
                    lambda: "message-acknowledged" in names(of_alice, message_id)
                )

    asyncio.run(live())


def test_names_of_the_published_api_stand_for_the_same_events(
    waku: ConformanceNode,
) -> None:
    """An application that was written for LIP-173 hears them, with its options."""
    lip = replace(
        ReliableChannelOptions.lip_173(), profile=PROFILE, sync_min_interval_ms=400
    )

    async def live() -> None:
        async with (
            rest_node(waku) as node,
            participant(node, "alice", lip) as (alice, _),
            participant(node, "bob", lip) as (bob, _),
        ):
            found: list[str] = []
            alice.on("sent", lambda _: found.append("sent"))
            alice.on("delivered", lambda _: found.append("delivered"))
            alice.on("send-error", lambda _: found.append("send-error"))
            bob.on("received", lambda event: found.append(event.payload.decode()))
            await until(lambda: len(waku.calls) > 4)
            alice.send(b"")
            alice.send(b"tea")
            await until(lambda: len(found) == 4)
            assert found[0] == "send-error"
            assert set(found) == {"send-error", "sent", "tea", "delivered"}

    asyncio.run(live())


def test_foreign_messages_on_the_shard_are_ignored(waku: ConformanceNode) -> None:
    """Another content topic has another application."""

    async def live() -> None:
        async with (
            rest_node(waku) as node,
            participant(node, "bob") as (_, heard),
        ):
            await until(lambda: len(waku.calls) > 2)
            message = WakuMessage(b"\xff", "/other/1/x/proto", 1)
            waku.offer(message, pubsub_topic=SHARD)
            await asyncio.sleep(0.3)
            assert heard == []

    asyncio.run(live())


def test_channel_whose_storage_fails_stops_and_says_so(
    waku: ConformanceNode, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """To go on would promise what a restart does not remember."""

    async def live() -> None:
        with SqliteChannelStorage(tmp_path / "alice.sqlite") as storage:
            async with (
                rest_node(waku) as node,
                participant(node, "alice", storage=storage) as (alice, _),
            ):
                await until(lambda: len(waku.calls) > 2)
                storage.close()
                await until(lambda: not alice.is_started())
                with pytest.raises(RuntimeError, match="stopped after an error"):
                    alice.send(b"tea")

    asyncio.run(live())
    assert "channel 'tea' stops" in caplog.text
