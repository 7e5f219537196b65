"""A mirror whose clock is wrong for a while; nodes and senders have the right time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest

from connectors.kafka.settings import RecordRefused
from connectors.waku_rest.connection import NodeSettings
from connectors.waku_rest.mirror import Mirror
from connectors.waku_rest.pacing import Ending
from connectors.waku_rest.settings import Listen, MirrorSettings
from connectors.waku_rest.spool import Spool, Spooled, open_spool
from connectors.waku_rest.writer import FrameWriter
from sds_core.mirror.figures import MirrorFigures
from tests.support.waku_node import ConformanceNode
from tests.support.waku_rest.rig import SHARD, Clock, message, offer, until

pytestmark = pytest.mark.slow

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE

LISTENS = [Listen.RELAY, Listen.NONE]


class Topic(FrameWriter):
    """In place of Kafka.

    Attributes:
        hashes: Waku hashes of the written frames, in order.
    """

    def __init__(self) -> None:
        self.hashes: list[bytes] = []

    def write(self, records: Sequence[Spooled]) -> Mapping[Spooled, RecordRefused]:
        """Take all records."""
        self.hashes += [
            bytes.fromhex(dict(one.headers)["waku-hash"].decode()[2:])
            for one in records
            if not one.is_heartbeat
        ]
        return {}


class ForgetfulSpool(Spool):
    """A spool that counts how often hashes were to be deleted."""

    forgets = 0

    def forget_before(self, at_ms: int) -> None:
        """Count, and delete."""
        super().forget_before(at_ms)
        self.forgets += 1


class Town:
    """A mirror with one node, and the senders.

    Attributes:
        wrong_by_ms: The mirror's clock minus the right clock.
        sent: Hashes of all messages, in the order of sending.
        written: Hashes of all frames in the topic.
    """

    def __init__(self, listen: Listen) -> None:
        self.wrong_by_ms = 0
        self.sent: list[bytes] = []
        self._listen = listen
        self._right = Clock()
        self._topic = Topic()
        self.written = self._topic.hashes

    def run(self, place: Path, *scripts: Callable[[Town], Awaitable[None]]) -> None:
        """Start a mirror for each script, and end it when the script has ended."""
        with ConformanceNode(now_ns=self._right.now_ns) as self._node:
            for script in scripts:
                with open_spool(place, None, "tap") as self._spool:
                    asyncio.run(self._run(script))

    async def _run(self, script: Callable[[Town], Awaitable[None]]) -> None:
        settings = MirrorSettings(
            (NodeSettings(self._node.url),),
            {SHARD: ()},
            listen=self._listen,
            poll_interval_s=0.01,
            store_interval_s=0.01,
        )
        self._figures = MirrorFigures()
        mirror = Mirror(
            settings, self._spool, self._topic, self._figures, self._mirror_ms
        )
        ending = Ending()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(mirror.run(ending))
            try:
                await until(lambda: self._figures.nodes)
                await self.passes(0)
                await script(self)
            finally:
                ending.set()

    def _mirror_ms(self) -> int:
        return self._right.now_ms + self.wrong_by_ms

    def send(self) -> None:
        """Send a message that only the store receives."""
        one = message(len(self.sent), self._right.now_ms)
        self.sent.append(self._node.store_late(one, pubsub_topic=SHARD))

    async def send_live(self) -> None:
        """Send a message that the mirror receives at once."""
        self.sent += offer(self._node, message(len(self.sent), self._right.now_ms))
        await until(lambda: self.sent[-1] in self.written)

    async def passes(self, step_ms: int, *, is_read: bool = True) -> None:
        """Let time pass; wait until the store is read and old hashes are deleted.

        If not `is_read`, the mirror waits for its clock, and the store is not read.
        """
        self._right.now_ms += step_ms
        settle_ms = 0 if self._listen is Listen.NONE else 5 * SECOND
        swept_ms = self._mirror_ms() - settle_ms
        (figures,) = self._figures.nodes.values()
        await until(lambda: figures.swept_ms == swept_ms or not is_read)
        assert isinstance(self._spool, ForgetfulSpool)
        forgets = self._spool.forgets
        await until(lambda: self._spool.forgets >= forgets + 2)

    async def goes_on(self) -> None:
        """Send some messages in the next hours with a right clock."""
        self.wrong_by_ms = 0
        for _ in range(6):
            await self.passes(0)
            self.send()
            await self.passes(2 * MINUTE)
            await self.passes(28 * MINUTE)


@pytest.fixture(autouse=True)
def _hashes_are_deleted_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a minute would be too rare for clocks that are set."""
    monkeypatch.setattr("connectors.waku_rest.mirror._FORGET_EVERY_S", 0.01)
    monkeypatch.setattr("connectors.waku_rest.spool.Spool", ForgetfulSpool)


@pytest.mark.parametrize("listen", LISTENS)
@pytest.mark.parametrize("fast_ms", [20 * MINUTE, 3 * HOUR])
def test_clock_that_was_fast_loses_nothing(
    fast_ms: int, listen: Listen, tmp_path: Path
) -> None:
    """What the store received meanwhile is read when the clock is right again."""

    async def script(town: Town) -> None:
        town.send()
        await town.passes(MINUTE)
        town.wrong_by_ms = fast_ms
        for _ in range(3):
            town.send()
            await town.passes(MINUTE)
        await town.goes_on()

    town = Town(listen)
    town.run(tmp_path, script)
    assert sorted(town.written) == sorted(town.sent)


def test_clock_that_was_fast_for_hours_loses_nothing_later(tmp_path: Path) -> None:
    """All hashes from before the clock was set forward are deleted by then."""

    async def fast(town: Town) -> None:
        await town.send_live()
        await town.passes(MINUTE)
        town.wrong_by_ms = 5 * HOUR
        for _ in range(8):
            await town.send_live()
            await town.passes(HOUR // 2)
        town.send()
        await town.passes(HOUR // 2)

    town = Town(Listen.RELAY)
    town.run(tmp_path, fast, Town.goes_on)
    assert sorted(town.written) == sorted(town.sent)


@pytest.mark.parametrize("listen", LISTENS)
def test_mirror_that_first_started_with_a_fast_clock_loses_nothing(
    listen: Listen, tmp_path: Path
) -> None:
    """The time of its first start lies in the future of the right clock."""

    async def script(town: Town) -> None:
        for _ in range(3):
            await town.passes(MINUTE)
            town.send()
        await town.goes_on()

    town = Town(listen)
    town.wrong_by_ms = 3 * HOUR
    town.run(tmp_path, script)
    assert sorted(town.written) == sorted(town.sent)


@pytest.mark.parametrize("slow_ms", [20 * MINUTE, 2 * HOUR, 9 * HOUR])
@pytest.mark.parametrize("is_restarted", [False, True])
def test_clock_that_was_slow_makes_no_message_two(
    is_restarted: bool, slow_ms: int, tmp_path: Path
) -> None:
    """However long ago a message was received by the slow clock."""

    async def slow(town: Town) -> None:
        for _ in range(4):
            await town.send_live()
            await town.passes(HOUR // 2)

    async def both(town: Town) -> None:
        await slow(town)
        await town.goes_on()

    town = Town(Listen.RELAY)
    town.wrong_by_ms = -slow_ms
    if is_restarted:
        town.run(tmp_path, slow, Town.goes_on)
    else:
        town.run(tmp_path, both)
    assert sorted(town.written) == sorted(town.sent)


def test_clock_that_is_set_wrong_and_right_again_loses_nothing(tmp_path: Path) -> None:
    """The hashes of the time before are deleted only in part."""

    async def script(town: Town) -> None:
        for _ in range(4):
            await town.send_live()
            await town.passes(HOUR // 2)
        town.wrong_by_ms = -3 * HOUR
        for _ in range(4):
            await town.send_live()
            town.send()
            await town.passes(HOUR // 2, is_read=False)
        await town.goes_on()

    town = Town(Listen.RELAY)
    town.run(tmp_path, script)
    assert sorted(town.written) == sorted(town.sent)
