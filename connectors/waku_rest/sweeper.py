"""Reads one node's store for messages that were not received live.

Queries select messages by the sender's time. A store may receive a message long after
this time. Each store is therefore read repeatedly: short spans often, and long spans
rarely. Each read first requests only hashes, and then the messages whose hashes are
unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from connectors.waku_rest.answers import StorePage
from connectors.waku_rest.client import NodeClient
from connectors.waku_rest.errors import NodeBusy, NodeError, NodeUnreachable
from connectors.waku_rest.intake import Intake, MirrorContext
from connectors.waku_rest.pacing import Trouble, persist
from connectors.waku_rest.settings import Listen
from connectors.waku_rest.spool import Swept
from connectors.waku_rest.store_query import (
    MAX_HASHES,
    StoreQuery,
    follow,
    in_parts,
    queries_of,
)
from sds_core.mirror.figures import Source

_NS = 1_000_000
"""Nanoseconds in a millisecond."""

_SETTLE_MS = 5_000
"""If a listener runs, the minimum age, ms, at which messages are read from a store. The
listener usually receives a message live before it has this age."""

_SLICE_MS = 600_000
"""Maximum length of the time span that one read covers, ms. A longer span is read in
parts, and the sweeper stores its progress after each part."""

LONGEST_REACH_MS = 3_600_000
"""Maximum delay of a message on its way to a store, ms. The sweeper finds no message
with a longer delay, and may miss one with more than half of this delay."""

_LONGEST_S = 30.0
"""Maximum wait before a failed read of a store is repeated, s."""

_REACHES = {20_000: 0, 300_000: 150_000, LONGEST_REACH_MS: 1_800_000}
"""How far back a read goes, ms -> time between two such reads, ms.

The sweeper thus reads the hash of each message about seven times. Stores of
logos-delivery use the same three lengths when they synchronise with each other.
"""


class Sweeper:
    """Polls the store of one node."""

    def __init__(
        self, node: NodeClient, context: MirrorContext, intake: Intake
    ) -> None:
        settings = context.settings
        self._node = node
        self._settings = settings
        self._spool = context.spool
        self._intake = intake
        self._coverage = context.coverage
        self._figures = context.figures.nodes[node.url]
        self._ending = context.ending
        self._now_ms = context.now_ms
        self._is_alone = settings.listen is Listen.NONE
        self._trouble = Trouble(context.now_ms)

    async def run(self) -> None:
        """Read until the mirror ends; begin with the period in which it did not run."""
        swept = await self._intake.use(self._spool.swept, self._node.url)
        if swept is None:
            begin_ms = self._now_ms() - round(self._settings.backfill_s * 1000)
            swept = await self._noted(Swept(begin_ms, begin_ms))
        read_ms = dict.fromkeys(_REACHES, 0)
        with suppress(NodeError):
            while not self._ending.is_set():
                now_ms = self._now_ms()
                # `abs`: a read is also due if the clock was set back by this interval.
                due = [
                    back_ms
                    for back_ms, every_ms in _REACHES.items()
                    if abs(now_ms - read_ms[back_ms]) >= every_ms
                ]
                swept = await self._read_up_to_now(swept, max(due))
                read_ms |= dict.fromkeys(due, now_ms)
                await self._ending.pause(self._settings.store_interval_s)

    async def _read_up_to_now(self, swept: Swept, back_ms: int) -> Swept:
        settle_ms = 0 if self._is_alone else _SETTLE_MS
        now_ms = self._now_ms()
        end_ms = now_ms - settle_ms
        set_back_ms = swept.up_to_ms - end_ms if swept.up_to_ms > now_ms else 0
        # If the mirror first started with a fast clock, `from_ms` is in the future too.
        swept = Swept(swept.from_ms - set_back_ms, min(swept.up_to_ms, end_ms))
        start_ms = max(
            swept.from_ms,
            swept.up_to_ms - back_ms,
            # Hashes of earlier messages may be deleted, so the mirror would store these
            # messages a second time.
            self._spool.forgotten_ms,
        )
        while start_ms < end_ms:
            slice_end_ms = min(end_ms, start_ms + _SLICE_MS)
            if not await self._read(start_ms, slice_end_ms):
                break
            if slice_end_ms > swept.up_to_ms:
                swept = await self._noted(swept._replace(up_to_ms=slice_end_ms))
            start_ms = slice_end_ms
        self._figures.swept_ms = swept.up_to_ms
        return swept

    async def _noted(self, swept: Swept) -> Swept:
        await self._intake.use(self._spool.set_swept, self._node.url, swept)
        return swept

    async def _read(self, start_ms: int, end_ms: int) -> bool:
        """Read the messages of a time span, Unix ms; return whether all were read."""
        topics, start_ns = self._settings.topics, max(1, start_ms * _NS)
        for query in queries_of(topics, start_ns, end_ms * _NS):
            # This retry starts from the first page, because the store may have deleted
            # the message to which the cursor points.
            await persist(
                partial(self._follow, query),
                NodeError,
                self._ending,
                self._failed,
                _LONGEST_S,
            )
            if self._ending.is_set():
                return False
        if self._is_alone:
            self._figures.is_up = True
            self._coverage.answered(self._node.url, self._now_ms())
        return True

    async def _follow(self, query: StoreQuery) -> None:
        async def read_page(cursor: bytes | None) -> bytes | None:
            return await persist(
                partial(self._read_page, query, cursor),
                (NodeBusy, NodeUnreachable),
                self._ending,
                self._failed,
                _LONGEST_S,
            )

        if await follow(read_page, self._node.url, self._ending.is_set):
            self._trouble.ends(f"node {self._node.url}: its store answers again")

    async def _read_page(self, query: StoreQuery, cursor: bytes | None) -> bytes | None:
        while self._intake.is_full and not self._ending.is_set():
            await self._ending.pause(1.0)
        page = self._counted(
            await self._node.store_page(query, cursor, include_data=False)
        )
        hashes = [stored.hash for stored in page.messages]
        known = await self._intake.use(self._spool.known, hashes)
        unknown = [one for one in hashes if one not in known]
        for some in in_parts(unknown, MAX_HASHES):
            await self._fetch(query.pubsub_topic, some)
        return page.cursor

    async def _fetch(self, pubsub_topic: str | None, hashes: Sequence[bytes]) -> None:
        query = StoreQuery(hashes=hashes)
        page = self._counted(await self._node.store_page(query))
        found = [
            (stored.pubsub_topic or pubsub_topic or "", stored.message)
            for stored in page.messages
            if stored.message is not None
        ]
        found.sort(key=lambda one: one[1].timestamp_ns)
        await self._intake.take(found, Source.STORE)

    def _counted(self, page: StorePage) -> StorePage:
        self._figures.pages[Source.STORE] += 1
        self._figures.undecodable += page.undecodable.count
        return page

    def _failed(self, error: BaseException) -> None:
        self._figures.failures[Source.STORE] += 1
        self._trouble.begins(error)
        # If the node has a listener, only the listener sets `is_up`.
        if self._is_alone:
            self._figures.is_up = False
