"""A node that raises, hangs or answers late leaves no frame, query or timer behind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from connectors.reliable_channel import (
    Listener,
    MemoryNode,
    QueryFailed,
    ReliableChannel,
    SendFailed,
    StoredPage,
    create_reliable_channel,
)
from connectors.reliable_channel.node import Unsubscribe
from sds_core.reliable_channel import RetrievalStrategy, StoreRequest
from sds_core.waku import WakuMessage
from tests.support.reliable_channel import CHANNEL, OPTIONS, TOPIC

QUICK = replace(
    OPTIONS,
    sync_min_interval_ms=20,
    retry_interval_ms=20,
    max_retry_attempts=1_000,
    retrieve_frequency_ms=20,
    process_task_min_elapse_ms=10,
)
ONLY_BY_HASH = replace(QUICK, query_on_connect=False, retrieval=RetrievalStrategy.STORE)
ONCE = replace(QUICK, retry_interval_ms=10_000_000)
PATIENCE_S = 20
AT_ONCE_S = 0.0
"""For `stop`: to wait for nothing."""

Fault = Callable[[], Awaitable[object]]


class FaultyNode(MemoryNode):
    """A node in memory that awaits something before it does what it is asked.

    Args:
        faults: What the next calls await, by name, the first one first.

    Attributes:
        calls: Names of all calls, in order.
        listeners: Those that are subscribed now.
    """

    def __init__(self, **faults: list[Fault]) -> None:
        super().__init__()
        self._faults = faults
        self.calls: list[str] = []
        self.listeners: list[Listener] = []

    async def _called(self, name: str) -> None:
        self.calls.append(name)
        if self._faults.get(name):
            await self._faults[name].pop(0)()

    async def subscribe(self, content_topic: str, listener: Listener) -> Unsubscribe:
        """Subscribe, unless there is a fault."""
        await self._called("subscribe")
        end = await super().subscribe(content_topic, listener)
        self.listeners.append(listener)
        await self._called("subscribed")

        def unsubscribe() -> None:
            self.listeners.remove(listener)
            end()
            self.calls.append("unsubscribe")

        return unsubscribe

    async def send(self, message: WakuMessage) -> None:
        """Send, unless there is a fault."""
        await self._called("send")
        await super().send(message)

    async def query(self, content_topic: str, request: StoreRequest) -> StoredPage:
        """Answer, unless there is a fault."""
        await self._called("query_hashes" if request.hashes else "query_time")
        return await super().query(content_topic, request)


def raises(error: Exception) -> Fault:
    """Make a call fail with an error."""

    async def fail() -> None:
        raise error

    return fail


async def hang() -> None:
    """Never return."""
    await asyncio.Event().wait()


async def cancelled() -> None:
    """Await what the node itself has cancelled."""
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


MISTAKE = raises(KeyError("a mistake of the node"))
FAULTS = [
    pytest.param(raises(ConnectionResetError("reset")), id="connection"),
    pytest.param(MISTAKE, id="mistake"),
    pytest.param(cancelled, id="cancelled"),
]


async def until(is_so: Callable[[], object]) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():
            await asyncio.sleep(0.005)


async def open_on(
    node: FaultyNode, name: str = "alice", **more: Any
) -> ReliableChannel:
    """Create a channel."""
    options = more.pop("options", QUICK)
    return await create_reliable_channel(node, CHANNEL, name, TOPIC, options, **more)


async def idle_on(node: FaultyNode) -> ReliableChannel:
    """Create a channel that is not started."""
    return await open_on(node, options=replace(QUICK, auto_start=False))


def heard(channel: ReliableChannel, name: str) -> list[Any]:
    """Record the events of a name."""
    events: list[Any] = []
    channel.on(name, events.append)
    return events


def run(live: Callable[[], Awaitable[None]]) -> None:
    """Run a program, and check that it leaves no task."""

    async def main() -> None:
        async with asyncio.timeout(2 * PATIENCE_S):
            await live()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


class TestSend:
    @pytest.mark.rule("rc-retry-interval")
    @pytest.mark.parametrize(
        "fault", [*FAULTS, pytest.param(raises(SendFailed("busy")), id="documented")]
    )
    def test_message_is_sent_again_after_any_error(self, fault: Fault) -> None:
        """Those that the interface does not name are passing ones."""

        async def live() -> None:
            alice = await open_on(FaultyNode(send=[fault]))
            sent = heard(alice, "message-sent")
            message_id = alice.send(b"tea")
            await until(lambda: message_id in [one.message_id for one in sent])
            await alice.stop()

        run(live)

    def test_mistake_of_the_node_is_logged(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """With its traceback; a failure that the interface names is none."""

        async def live() -> None:
            node = FaultyNode(send=[raises(SendFailed("busy")), MISTAKE])
            alice = await open_on(node)
            alice.send(b"tea")
            await until(lambda: node.calls.count("send") > 2)
            await alice.stop()

        with caplog.at_level(logging.DEBUG, "sds-monitor"):
            run(live)
        (record,) = caplog.records
        assert record.exc_info is not None
        assert record.exc_info[0] is KeyError

    @pytest.mark.parametrize("fault", FAULTS)
    def test_ephemeral_message_has_an_error_event(self, fault: Fault) -> None:
        """It is not sent again."""

        async def live() -> None:
            alice = await open_on(
                FaultyNode(send=[fault]), options=replace(QUICK, sync_min_interval_ms=0)
            )
            errors = heard(alice, "sending-message-irrecoverable-error")
            message_id = alice.send_ephemeral(b"tea")
            await until(lambda: errors)
            assert [one.message_id for one in errors] == [message_id]
            await alice.stop()

        run(live)

    def test_message_is_sent_again_if_the_node_does_not_return(self) -> None:
        """After the time that the channel gives the node."""

        async def live() -> None:
            alice = await open_on(FaultyNode(send=[hang]), node_timeout_s=0.01)
            sent = heard(alice, "message-sent")
            message_id = alice.send(b"tea")
            await until(lambda: message_id in [one.message_id for one in sent])
            await alice.stop()

        run(live)

    @pytest.mark.rule("rc-stop")
    def test_stop_does_not_wait_for_ever(self) -> None:
        """What was under way is sent after the next start."""

        async def live() -> None:
            node = FaultyNode(send=[hang])
            alice = await open_on(node, options=replace(QUICK, sync_min_interval_ms=0))
            sent = heard(alice, "message-sent")
            message_id = alice.send(b"tea")
            await until(lambda: node.calls.count("send") == 1)
            await alice.stop(wait_s=AT_ONCE_S)
            assert not alice.is_started()
            assert sent == []
            await alice.start()
            await until(lambda: message_id in [one.message_id for one in sent])
            await alice.stop()

        run(live)

    def test_stop_waits_for_what_is_under_way(self) -> None:
        """Its events come before `stop` returns."""

        async def live() -> None:
            go_on = asyncio.Event()
            node = FaultyNode(send=[go_on.wait])
            alice = await open_on(node, options=replace(QUICK, sync_min_interval_ms=0))
            sent = heard(alice, "message-sent")
            message_id = alice.send(b"tea")
            await until(lambda: node.calls.count("send") == 1)
            stopping = asyncio.create_task(alice.stop(wait_s=PATIENCE_S))
            await asyncio.sleep(0)
            assert not stopping.done()
            go_on.set()
            await stopping
            assert [one.message_id for one in sent] == [message_id]

        run(live)


class TestQuery:
    FAULTS = (
        *FAULTS,
        pytest.param(raises(QueryFailed("busy")), id="documented"),
        pytest.param(hang, id="hang"),
    )

    @pytest.mark.rule("rc-connect")
    @pytest.mark.parametrize("fault", FAULTS)
    def test_query_on_connect_is_made_again(self, fault: Fault) -> None:
        """After any error."""

        async def live() -> None:
            node = FaultyNode(query_time=[fault])
            alice = await open_on(node, node_timeout_s=0.05)
            await until(lambda: node.calls.count("query_time") == 2)
            await alice.stop()

        run(live)

    @pytest.mark.rule("rc-retrieve-query")
    @pytest.mark.parametrize("fault", FAULTS)
    def test_query_for_missing_messages_is_made_again(self, fault: Fault) -> None:
        """After any error; the store has what they ask for."""

        async def live() -> None:
            node = FaultyNode(query_hashes=[fault])
            alice = await open_on(node, options=ONCE)
            sent = heard(alice, "message-sent")
            alice.send(b"before")
            await until(lambda: sent)
            bob = await open_on(node, "bob", options=ONLY_BY_HASH, node_timeout_s=0.05)
            received = heard(bob, "message-received")
            alice.send(b"after")
            await until(lambda: len(received) == 2)
            assert [one.payload for one in received] == [b"before", b"after"]
            await alice.stop()
            await bob.stop()

        run(live)


class TestSubscribe:
    @pytest.mark.rule("rc-create-result", "rc-auto-start")
    @pytest.mark.parametrize("when", ["subscribe", "subscribed"])
    @pytest.mark.parametrize("fault", [*FAULTS, pytest.param(hang, id="hang")])
    def test_failed_creation_raises_and_leaves_nothing(
        self, when: str, fault: Fault
    ) -> None:
        """Neither a timer nor a subscription that the channel hears."""

        async def live() -> None:
            node = FaultyNode(**{when: [fault]})
            with pytest.raises(Exception, match=r"reset|mistake|cancelled|0\.05 s"):
                await open_on(node, node_timeout_s=0.05)
            # A node that says that it is online and then fails.
            for listener in node.listeners:
                listener.connection_changed(is_online=True, has_store=True)
            calls = list(node.calls)
            await asyncio.sleep(0.2)
            assert node.calls == calls

        run(live)

    @pytest.mark.rule("rc-is-started", "rc-start")
    def test_start_that_failed_can_be_repeated(self) -> None:
        """The channel is not started between."""

        async def live() -> None:
            node = FaultyNode(subscribe=[raises(ConnectionResetError("reset"))])
            alice = await idle_on(node)
            with pytest.raises(ConnectionResetError):
                await alice.start()
            assert not alice.is_started()
            await alice.start()
            assert alice.is_started()
            alice.send(b"tea")
            await until(lambda: "send" in node.calls)
            await alice.stop()

        run(live)

    @pytest.mark.rule("rc-stop", "rc-is-started")
    @pytest.mark.parametrize("when", ["subscribe", "subscribed"])
    def test_stop_ends_a_subscription_that_is_pending(self, when: str) -> None:
        """It is ended when the node returns it."""

        async def live() -> None:
            go_on = asyncio.Event()
            faults: dict[str, list[Fault]] = {when: [go_on.wait]}
            node = FaultyNode(**faults)
            alice = await idle_on(node)
            starting = asyncio.create_task(alice.start())
            await until(lambda: when in node.calls)
            stopping = asyncio.create_task(alice.stop(wait_s=PATIENCE_S))
            await asyncio.sleep(0)
            go_on.set()
            await asyncio.gather(starting, stopping)
            assert not alice.is_started()
            assert node.calls[-1] == "unsubscribe"
            assert node.listeners == []

        run(live)

    def test_stop_ends_a_start_that_hangs(self) -> None:
        """Both return."""

        async def live() -> None:
            node = FaultyNode(subscribe=[hang])
            alice = await idle_on(node)
            starting = asyncio.create_task(alice.start())
            await until(lambda: node.calls)
            await alice.stop(wait_s=AT_ONCE_S)
            await starting
            assert not alice.is_started()

        run(live)

    def test_start_after_a_stop_does_not_wait_for_the_old_subscription(self) -> None:
        """One subscription remains, and each message is heard once."""

        async def live() -> None:
            go_on = asyncio.Event()
            node = FaultyNode(subscribed=[go_on.wait])
            alice = await idle_on(node)
            first = asyncio.create_task(alice.start())
            await until(lambda: node.listeners)
            stopping = asyncio.create_task(alice.stop(wait_s=PATIENCE_S))
            await asyncio.sleep(0)
            await alice.start()
            assert len(node.listeners) == 2
            go_on.set()
            await asyncio.gather(first, stopping)
            assert len(node.listeners) == 1
            assert alice.is_started()
            alice.send(b"tea")
            await until(lambda: "send" in node.calls)
            await alice.stop()
            assert node.listeners == []

        run(live)

    def test_second_start_waits_for_the_first(self) -> None:
        """Both have its error."""

        async def live() -> None:
            node = FaultyNode(subscribe=[MISTAKE])
            alice = await idle_on(node)
            results = await asyncio.gather(
                alice.start(), alice.start(), return_exceptions=True
            )
            assert [type(one) for one in results] == [KeyError, KeyError]
            assert node.calls == ["subscribe"]

        run(live)

    def test_cancelled_start_leaves_nothing(self) -> None:
        """As with a limit of time of the application."""

        async def live() -> None:
            node = FaultyNode(subscribed=[hang])
            alice = await idle_on(node)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    await alice.start()
            assert not alice.is_started()
            calls = list(node.calls)
            await asyncio.sleep(0.1)
            assert node.calls == calls

        run(live)

    def test_stop_survives_an_unsubscribe_that_fails(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """It is logged, and the channel is stopped."""

        async def live() -> None:
            node = FaultyNode()
            alice = await open_on(node)
            node.listeners.clear()
            await alice.stop()
            assert not alice.is_started()
            count = len(node.calls)
            await asyncio.sleep(0.1)
            assert len(node.calls) == count

        run(live)
        assert "ValueError" in caplog.text


@pytest.mark.rule("rc-create-result")
@pytest.mark.parametrize(
    ("channel_id", "sender_id", "content_topic"),
    [("", "alice", TOPIC), ("tea", "", TOPIC), ("tea", "alice", "no topic")],
)
def test_creation_with_a_wrong_argument_raises(
    channel_id: str, sender_id: str, content_topic: str
) -> None:
    """Before the node is asked for anything."""

    async def live() -> None:
        node = FaultyNode()
        with pytest.raises(ValueError, match=r"id|topic"):
            await create_reliable_channel(node, channel_id, sender_id, content_topic)
        assert node.calls == []

    run(live)


@pytest.mark.rule("rc-create-result")
def test_creation_returns_a_channel_that_is_started() -> None:
    """If nothing failed."""

    async def live() -> None:
        alice = await open_on(FaultyNode())
        assert isinstance(alice, ReliableChannel)
        assert alice.is_started()
        await alice.stop()

    run(live)


def test_start_that_is_cancelled_stops_no_channel_that_runs() -> None:
    """It had nothing to start."""

    async def main() -> None:
        channel = await create_reliable_channel(
            MemoryNode(), CHANNEL, "alice", TOPIC, QUICK
        )
        again = asyncio.create_task(channel.start())
        await asyncio.sleep(0)
        again.cancel()
        with pytest.raises(asyncio.CancelledError):
            await again
        assert channel.is_started()
        await channel.stop()

    asyncio.run(main())
