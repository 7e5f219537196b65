"""The parts of a mirror between real nodes and the spool, without Kafka."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from connectors.waku_rest.client import NodeClient
from connectors.waku_rest.connection import NodeSettings, open_client
from connectors.waku_rest.intake import Intake, MirrorContext
from connectors.waku_rest.listener import Listener
from connectors.waku_rest.pacing import Ending
from connectors.waku_rest.settings import MirrorSettings
from connectors.waku_rest.spool import Spool, Spooled
from connectors.waku_rest.sweeper import Sweeper
from sds_core.mirror.coverage import Coverage
from sds_core.mirror.figures import MirrorFigures, NodeFigures
from sds_core.waku import WakuMessage
from sds_core.wire import encode
from tests.support.frames import FrameFactory
from tests.support.waku_node import ConformanceNode, Endpoint

SHARD = "/waku/2/rs/1/0"
TOPIC = "/app/1/town/proto"
DEADLINE_S = 60.0
"""For what comes about at once on an idle machine."""

_TOWN = FrameFactory("town")
_PATIENCE_MS = 60_000
"""Of the coverage: a slow machine decides no test."""


def wall_ms() -> int:
    """Return the current time, Unix ms."""
    return time.time_ns() // 1_000_000


class Clock:
    """A wall clock that stands still until it is set; begins now.

    Attributes:
        now_ms: Its time, Unix ms.
    """

    def __init__(self) -> None:
        self.now_ms = wall_ms()

    def __call__(self) -> int:
        """Its time, Unix ms."""
        return self.now_ms

    def now_ns(self) -> int:
        """The same time in ns, for a node."""
        return self.now_ms * 1_000_000


def message(
    number: int, at_ms: int | None = None, topic: str = TOPIC, ephemeral: bool = False
) -> WakuMessage:
    """Return a Waku message around a new SDS message, sent now or at a time."""
    payload = encode(_TOWN.content(f"m-{number}", "alice", number))
    at_ns = (wall_ms() if at_ms is None else at_ms) * 1_000_000 + number
    return WakuMessage(payload, topic, at_ns, ephemeral=ephemeral)


def offer(node: ConformanceNode, *messages: WakuMessage) -> list[bytes]:
    """Bring messages to a node; return their hashes."""
    return [node.offer(one, pubsub_topic=SHARD) for one in messages]


def calls(node: ConformanceNode, endpoint: Endpoint) -> int:
    """Return how often an endpoint was called."""
    return sum(call.endpoint is endpoint for call in node.calls)


async def until(condition: Callable[[], object]) -> None:
    """Wait until a condition is true."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():
            await asyncio.sleep(0.005)


class Rig:
    """One mirror's spool and the parts that fill it.

    Args:
        directory: Of the spool.
        nodes: What it is fed from.
        now_ms: Wall clock, Unix ms.
        topics: Content topics by pubsub topic.
        limit_bytes: Of the spool.
        timeout_s: For the nodes.
        settings: Of the mirror; intervals are short.

    Attributes:
        spool, figures: Those.
    """

    def __init__(
        self,
        directory: Path,
        *nodes: ConformanceNode,
        now_ms: Callable[[], int] = wall_ms,
        topics: dict[str, tuple[str, ...]] | None = None,
        limit_bytes: int = 1_000_000_000,
        timeout_s: float = 10.0,
        **settings: object,
    ) -> None:
        short = {"poll_interval_s": 0.01, "store_interval_s": 0.01}
        self.settings = MirrorSettings(
            tuple(NodeSettings(node.url, timeout_s) for node in nodes),
            topics or {SHARD: ()},
            **short | settings,
        )
        self.now_ms = now_ms
        self.limit_bytes = limit_bytes
        self.figures = MirrorFigures(nodes={node.url: NodeFigures() for node in nodes})
        self.spool = Spool(directory, None, "tap")

    def close(self) -> None:
        """Close the spool in order."""
        self.spool.close()

    @property
    def frames(self) -> list[Spooled]:
        """Return the spooled frames in order; not while the rig runs."""
        return self.spool.pending(100_000)

    @property
    def seqs(self) -> list[int]:
        """Return the numbers of the spooled frames."""
        return [one.seq for one in self.frames]

    @property
    def hashes(self) -> list[bytes]:
        """Return the Waku hashes of the spooled frames."""
        return [bytes.fromhex(dict(f.headers)["waku-hash"].decode()[2:]) for f in
                self.frames]  # fmt: skip

    @property
    def accepted(self) -> int:
        """Messages taken for the first time."""
        return sum(self.figures.accepted.values())

    @property
    def losses(self) -> dict[str, int]:
        """Times of probable loss, by cause."""
        return +Counter({str(cause): n for cause, n in self.figures.losses.items()})

    def node(self, node: ConformanceNode) -> NodeFigures:
        """Return the figures of a node."""
        return self.figures.nodes[node.url]

    def listen(self, script: Callable[[Running], Awaitable[None]]) -> None:
        """Listen to the nodes until the script has ended."""
        asyncio.run(self._run(script, listens=True, sweeps=False))

    def sweep(self, script: Callable[[Running], Awaitable[None]]) -> None:
        """Read the nodes' stores until the script has ended."""
        asyncio.run(self._run(script, listens=False, sweeps=True))

    def take(self, script: Callable[[Running], Awaitable[None]]) -> None:
        """Run the script only."""
        asyncio.run(self._run(script, listens=False, sweeps=False))

    async def _run(
        self,
        script: Callable[[Running], Awaitable[None]],
        *,
        listens: bool,
        sweeps: bool,
    ) -> None:
        ending = Ending()
        coverage = Coverage(
            self.figures.nodes, _PATIENCE_MS, goes_on=self.spool.last_seq > 0
        )
        context = MirrorContext(
            replace(self.settings, spool_bytes=self.limit_bytes),
            self.spool,
            self.figures,
            coverage,
            ending,
            self.now_ms,
        )
        intake = Intake(context)
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
            for node in self.settings.nodes:
                http = await stack.enter_async_context(open_client(node))
                client = NodeClient(node.url, http)
                if listens:
                    tasks.create_task(Listener(client, context, intake).run())
                if sweeps:
                    tasks.create_task(Sweeper(client, context, intake).run())
            try:
                await script(Running(intake, coverage, ending))
            finally:
                ending.set()


class Running:
    """What a script can use while a rig runs.

    Attributes:
        intake, coverage, ending: Of the rig.
    """

    def __init__(self, intake: Intake, coverage: Coverage, ending: Ending) -> None:
        self.intake = intake
        self.coverage = coverage
        self.ending = ending
