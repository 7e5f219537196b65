"""Adds Waku messages to the spool if they are selected and new, and counts them."""

from __future__ import annotations

import asyncio
import itertools
import logging
import sqlite3
from collections.abc import Callable, Sequence
from typing import NamedTuple, ParamSpec, TypeVar

from connectors.kafka.producer import waku_headers
from connectors.waku_rest.pacing import Ending, Trouble, persist
from connectors.waku_rest.settings import MirrorSettings
from connectors.waku_rest.spool import Incoming, Spool
from sds_core.mirror.coverage import Coverage
from sds_core.mirror.figures import Loss, MirrorFigures, Source
from sds_core.mirror.selection import Selection, Skip, channel_of
from sds_core.waku import WakuMessage

_NS_PER_MS = 1_000_000

_log = logging.getLogger("sds-monitor")

_P = ParamSpec("_P")
_Result = TypeVar("_Result")


class MirrorContext(NamedTuple):
    """Objects that the tasks of a mirror share.

    `coverage` records since when each node has returned all messages. If `ending` is
    set while a page is being read, the page is still stored. `now_ms` returns Unix ms.
    """

    settings: MirrorSettings
    spool: Spool
    figures: MirrorFigures
    coverage: Coverage
    ending: Ending
    now_ms: Callable[[], int]


class Intake:
    """Accepts each message only once, although several nodes and endpoints deliver it.

    Tasks call methods of the spool only through `use`, which runs one call at a time,
    in a thread. A slow disk therefore does not block connections. If the disk is full,
    the page that was read stays in memory until a retry stores it.
    """

    def __init__(self, context: MirrorContext) -> None:
        self._spool = context.spool
        self._figures = context.figures
        self._coverage = context.coverage
        self._ending = context.ending
        self._now_ms = context.now_ms
        self._limit_bytes = context.settings.spool_bytes
        topics = context.settings.topics.values()
        self._selection = Selection(frozenset(itertools.chain.from_iterable(topics)))
        self._disk = Trouble(context.now_ms)
        self._full = Trouble(context.now_ms)
        self._alone = asyncio.Lock()
        self.has_pending = asyncio.Event()
        self.has_pending.set()

    @property
    def is_full(self) -> bool:
        """Whether reading from nodes must pause: the spool or its disk is full."""
        return self._figures.is_paused

    async def take(
        self, messages: Sequence[tuple[str, WakuMessage]], source: Source
    ) -> None:
        """Store new messages durably, if the settings select them.

        `messages` has pairs of a pubsub topic and a message.
        """
        if messages:
            await self.use(self._take, messages, source)
            self.has_pending.set()

    async def probably_lost(self, node: str, cause: Loss) -> None:
        """Record that messages were probably lost at a node.

        Nothing is recorded if another node has returned all messages since the last
        answer of this node.
        """
        if self._coverage.interrupted(node, self._now_ms()):
            await self.use(self._spool.skip_number, cause)
            _log.warning("%s: messages were probably lost (%s)", node, cause.value)

    async def beat(self) -> None:
        """Spool a heartbeat."""
        await self.use(lambda: self._spool.beat(self._now_ms()))
        self.has_pending.set()

    async def use(
        self,
        function: Callable[_P, _Result],
        *arguments: _P.args,
        **options: _P.kwargs,
    ) -> _Result:
        """Call a function that uses the spool; retry while the disk fails.

        Raises:
            sqlite3.Error: The disk still fails when the mirror must end, or the error
                is not an `sqlite3.OperationalError` and so is not retried.
        """
        figures = self._figures

        async def attempt() -> _Result:
            async with self._alone:
                result = await asyncio.to_thread(function, *arguments, **options)
                figures.spooled = self._spool.count
                figures.spooled_bytes = self._spool.size_bytes
                figures.last_seq = self._spool.last_seq
                figures.losses |= self._spool.losses
                figures.is_paused = figures.spooled_bytes > self._limit_bytes
            self._disk.ends("the spool can be written again")
            if figures.is_paused:
                self._full.begins(
                    f"the spool is full ({figures.spooled_bytes:,} bytes, "
                    f"--spool-bytes {self._limit_bytes:,}): no node is read before "
                    "Kafka has taken some records"
                )
            elif figures.spooled_bytes <= self._limit_bytes // 2:
                # The log reports room only at half of the limit or less. If it reported
                # room right below the limit, it would alternate between "full" and "has
                # room".
                self._full.ends("the spool has room again")
            return result

        return await persist(
            attempt, sqlite3.OperationalError, self._ending, self._not_stored
        )

    def _not_stored(self, error: BaseException) -> None:
        self._disk.begins()
        self._figures.is_paused = True
        _log.error(
            "the mirror cannot write to the spool: %s", self._spool.failure(error)
        )

    def _take(
        self, messages: Sequence[tuple[str, WakuMessage]], source: Source
    ) -> None:
        incoming, skipped, unwanted = [], [], {}
        for pubsub_topic, message in messages:
            channel = channel_of(message.payload)
            skip = self._selection.skipped(message, channel)
            if skip is None:
                incoming.append(incoming_of(pubsub_topic, message, channel, source))
                continue
            skipped.append(skip)
            # If the hash of a message is stored, the message is not requested from a
            # store. Messages on other topics are never requested, so their hashes need
            # not be stored.
            if skip is not Skip.OTHER_TOPIC:
                unwanted[message.hash_on(pubsub_topic)] = _sent_ms(message)
        # The record time is the time at which a message is stored. If it were the time
        # at which the message was read, a record could have an earlier time
        # than the record before it.
        accepted = self._spool.accept(incoming, self._now_ms(), unwanted)
        for skip in skipped:
            self._figures.skipped[skip] += 1
        self._figures.accepted[source] += accepted
        self._figures.duplicates[source] += len(incoming) - accepted


def incoming_of(
    pubsub_topic: str, message: WakuMessage, channel: str | None, source: str
) -> Incoming:
    """Return the record to write for a message (docs/records.md).

    If `channel` is None, the payload is not a frame, and the record has no key.
    """
    message_hash = message.hash_on(pubsub_topic)
    headers = waku_headers(message, source, pubsub_topic, f"0x{message_hash.hex()}")
    key = None if channel is None else channel.encode()
    return Incoming(message_hash, key, message.payload, headers, _sent_ms(message))


def _sent_ms(message: WakuMessage) -> int:
    return message.timestamp_ns // _NS_PER_MS
