"""One mirror: the tasks that copy messages of Waku nodes into Kafka.

    node cache ──listener──┐
                           ├─▶ intake ─▶ spool (disk) ─▶ writer ─▶ Kafka
    node store ──sweeper───┘

A node deletes each page that it sends, so the mirror stores the page on disk before it
reads the next page. The writer sends records from the spool to Kafka in order.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial

from connectors.kafka.heartbeat import INTERVAL_S
from connectors.kafka.settings import KafkaUnreachable, RecordRefused
from connectors.waku_rest.client import NodeClient
from connectors.waku_rest.connection import open_client
from connectors.waku_rest.intake import Intake, MirrorContext
from connectors.waku_rest.listener import Listener
from connectors.waku_rest.pacing import Ending, Trouble, persist
from connectors.waku_rest.settings import Listen, MirrorSettings
from connectors.waku_rest.spool import Spool, Spooled
from connectors.waku_rest.sweeper import LONGEST_REACH_MS, Sweeper
from connectors.waku_rest.writer import FrameWriter
from sds_core.mirror.coverage import Coverage
from sds_core.mirror.figures import Loss, MirrorFigures, NodeFigures
from sds_core.text import counted

_WRITTEN_AT_ONCE = 500
"""Maximum number of records in one write.

A message is at most 150 kB (64/WAKU2-NETWORK), so one write has at most 75 MB.
"""

_FORGET_EVERY_S = 60.0
_SPARE_MS = 600_000
"""How long a message's hash stays stored after reads of stores can no longer return the
message, ms."""

_log = logging.getLogger("sds-monitor")


class Mirror:
    """Copies messages of Waku nodes into Kafka, and updates `MirrorFigures`."""

    def __init__(
        self,
        settings: MirrorSettings,
        spool: Spool,
        writer: FrameWriter,
        figures: MirrorFigures,
        now_ms: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._spool = spool
        self._writer = writer
        self._figures = figures
        self._now_ms = now_ms
        self._kafka = Trouble(now_ms)
        self._sent_late = 0
        interval_s = settings.poll_interval_s
        if settings.listen is Listen.NONE:
            interval_s = settings.store_interval_s
        self._interval_ms = round(interval_s * 1000)

    async def run(self, ending: Ending) -> None:
        """Mirror until `ending` is set; then write the spooled records to Kafka.

        If Kafka is unreachable then, the records stay in the spool.

        Raises:
            connectors.kafka.settings.InvalidTopic: Kafka does not allow the topic's
                name.
            connectors.waku_rest.connection.BadSettings: The certificates that a
                node's settings name cannot be read.
            connectors.waku_rest.spool.StateUnusable: A stored value is damaged.
            sqlite3.Error: The disk fails.
        """
        try:
            await self._run(ending)
        except ExceptionGroup as group:
            # The first error has cancelled all other tasks, so raise that error.
            error: Exception = group
            while isinstance(error, ExceptionGroup):
                error = error.exceptions[0]
            raise error from None

    async def _run(self, ending: Ending) -> None:
        async with AsyncExitStack() as stack:
            nodes = [
                NodeClient(node.url, await stack.enter_async_context(open_client(node)))
                for node in self._settings.nodes
            ]
            self._figures.nodes |= {node.url: NodeFigures() for node in nodes}
            # Nodes are read at different times, so a node's last answer counts as
            # current for two intervals.
            coverage = Coverage(
                self._figures.nodes, 2 * self._interval_ms, self._spool.last_seq > 0
            )
            context = MirrorContext(
                self._settings,
                self._spool,
                self._figures,
                coverage,
                ending,
                self._now_ms,
            )
            intake = Intake(context)
            was_killed = await intake.use(self._spool.begin)
            # If only stores are read, a killed mirror loses no messages, because a
            # store can be read again.
            if was_killed and self._settings.listen is not Listen.NONE:
                await intake.use(self._spool.skip_number, Loss.UNCLEAN_START)
                _log.warning("the mirror was killed: messages were probably lost")
            all_read = Ending()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._write(intake, all_read))
                tasks.create_task(self._forget(intake, ending))
                async with asyncio.TaskGroup() as reading:
                    reading.create_task(self._beat(intake, coverage, ending))
                    for node in nodes:
                        if self._settings.listen is not Listen.NONE:
                            listener = Listener(node, context, intake)
                            reading.create_task(listener.run())
                        if self._settings.store:
                            sweeper = Sweeper(node, context, intake)
                            reading.create_task(sweeper.run())
                all_read.set()
                intake.has_pending.set()
            await intake.use(self._spool.end)

    async def _beat(self, intake: Intake, coverage: Coverage, ending: Ending) -> None:
        lately_ms = round(INTERVAL_S * 1000) + 2 * self._interval_ms
        while not ending.is_set():
            if coverage.has_answer_since(self._now_ms() - lately_ms):
                await intake.beat()
            await ending.pause(INTERVAL_S)

    async def _forget(self, intake: Intake, ending: Ending) -> None:
        while not ending.is_set():
            edges_ms = [self._now_ms()]
            if self._settings.store:
                for node in self._figures.nodes:
                    swept = await intake.use(self._spool.swept, node)
                    # A node whose store was never read does not delay the deletion of
                    # hashes.
                    if swept is not None and swept.up_to_ms > swept.from_ms:
                        edges_ms.append(swept.up_to_ms)
            edge_ms = min(edges_ms) - LONGEST_REACH_MS - _SPARE_MS
            await intake.use(self._spool.forget_before, edge_ms)
            await ending.pause(_FORGET_EVERY_S)

    async def _write(self, intake: Intake, all_read: Ending) -> None:
        figures = self._figures
        while True:
            intake.has_pending.clear()
            records = await intake.use(self._spool.pending, _WRITTEN_AT_ONCE)
            figures.oldest_spooled_ms = records[0].at_ms if records else None
            if records:
                try:
                    refused = await persist(
                        partial(asyncio.to_thread, self._writer.write, records),
                        KafkaUnreachable,
                        all_read,
                        self._not_written,
                    )
                except KafkaUnreachable:
                    _log.warning(
                        "%d records stay in the spool until the next start",
                        figures.spooled,
                    )
                    return
                await intake.use(self._spool.written, records)
                self._count(records, refused)
                self._report_end(len(records), len(refused))
            elif all_read.is_set():
                return
            else:
                await intake.has_pending.wait()

    def _count(
        self, records: Sequence[Spooled], refused: Mapping[Spooled, RecordRefused]
    ) -> None:
        """Count written and refused records, and log each refused record.

        The sequence number of a refused record is missing from the topic.
        """
        figures = self._figures
        figures.refused += len(refused)
        figures.written += sum(
            not (record.is_heartbeat or record in refused) for record in records
        )
        for record, why in refused.items():
            _log.warning(
                "Kafka refuses the record with sequence number %d: %s", record.seq, why
            )

    def _report_end(self, written: int, refused: int) -> None:
        """Log that Kafka answers again, if it had failed.

        The line is logged when the records that waited for Kafka are written.
        """
        if not self._kafka.is_on:
            return
        was_passing = self._kafka.is_passing
        self._kafka.passes()
        self._sent_late += written - refused
        # The first successful write repeats the failed write, so it may be small
        # although many records wait. A later small write shows that no others wait.
        if not self._figures.spooled or (was_passing and written < _WRITTEN_AT_ONCE):
            sent = counted(self._sent_late, "record")
            self._kafka.ends("Kafka answers again", f", {sent} sent")
            self._sent_late = 0

    def _not_written(self, error: BaseException) -> None:
        self._figures.kafka_failures += 1
        self._kafka.begins()
        _log.warning("%s; records wait in the spool", error)
