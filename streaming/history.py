"""Exports rows of the outbox to the history's Parquet files and Kafka topics.

A separate thread exports, so that no batch waits for an export. While Kafka or the disk
of the history fails, rows wait in the outbox.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from connectors.history.errors import DamagedHistory
from connectors.history.layout import LOCK, day_of
from connectors.history.parquet import ParquetHistory
from connectors.history.schema import (
    KindTables,
    NumberedIncident,
    NumberedMinute,
    Row,
    incident_row,
    minute_row,
    verdict_row,
)
from connectors.history.topics import HistoryTopics
from connectors.kafka.settings import InvalidTopic, KafkaSettings
from connectors.storage.disk import with_remedy
from sds_core.observer.kinds import AnyKind
from sds_core.observer.settings import DEFAULTS, ObserverSettings
from streaming.board import Board
from streaming.damage import DamagedCheckpoint
from streaming.directories import DirectoryUnwritable, locked_directory
from streaming.ledger.findings import Destination, Findings, OutboxRow
from streaming.ledger.stores import Stores
from streaming.settings import HistorySettings

_CHUNK_ROWS = 2_000
"""Maximum number of rows that are in memory at once.

A row with the figures of one channel for one minute takes about 2 kB.
"""

_POLL_S = 1.0

_PARQUET_EVERY_S = 60.0
"""Time between two exports to Parquet files, seconds.

An export writes one file for each table and day.
"""

_MAINTENANCE_EVERY_S = 600.0

_RETRY_S = 30.0
"""Time until a failed task is retried, seconds.

Each failure writes a line to the log, so frequent retries would fill the log.
"""

_DAY_MS = 86_400_000

RECENT_MS = _DAY_MS
"""Minimum time that an incident stays in the ledger after it is found, in event time.

Views forget their incidents sooner.
"""

_KAFKA_TIMEOUT_S = 10.0
"""Maximum time that one write to the history's topics waits for Kafka, seconds."""

_REMAINING_TIME_S = 10.0
"""Maximum time for exporting the remaining rows if a user waits for the job's end.

Seconds from the call of `limit_remaining_time`.
"""

_FORESEEN = (
    DamagedCheckpoint,
    DamagedHistory,
    InvalidTopic,
    OSError,
    sqlite3.Error,
)
"""Errors whose text suffices for the log; other errors are logged with a traceback."""

_NOT_EXPORTED = "the history waits"

_log = logging.getLogger("sds-monitor")


def locked_history(directory: Path) -> AbstractContextManager[None]:
    """Lock a history while the block runs; see `locked_directory`."""
    return locked_directory("history", directory, LOCK)


class Outbox(NamedTuple):
    """The findings of one kind of view, and the destinations of their export.

    `topics` is None if the history has no topics.
    """

    findings: Findings
    topics: HistoryTopics | None
    tables: KindTables

    def rows(
        self, pending: Sequence[OutboxRow], observer: ObserverSettings
    ) -> tuple[list[Row], list[Row], list[Row]]:
        """Return pending rows as rows of tables: incidents, minutes and verdicts."""
        kind = self.tables.kind
        incidents, minutes, verdicts = [], [], []
        for one in pending:
            if isinstance(one, NumberedIncident):
                incidents.append(incident_row(one, observer, kind))
            elif isinstance(one, NumberedMinute):
                minutes.append(minute_row(one, kind.published))
            else:
                verdicts.append(verdict_row(one, kind.published))
        return incidents, minutes, verdicts


class HistoryExporter:
    """Exports outboxes to the history's files and topics in a block with `running`.

    `clock_ms` returns the event time of the job, Unix ms; 0 before the first batch.
    """

    def __init__(
        self,
        settings: HistorySettings,
        outboxes: Iterable[Outbox],
        clock_ms: Callable[[], int],
        observer: ObserverSettings = DEFAULTS,
    ) -> None:
        self._settings = settings
        self._observer = observer
        self._outboxes = list(outboxes)
        self._clock_ms = clock_ms
        self._ending = threading.Event()
        self._deadline_s = float("inf")
        self._thread = threading.Thread(target=self._run, name="history", daemon=True)

    @contextmanager
    def running(self) -> Iterator[HistoryExporter]:
        """Lock the history, and export; after the block, export the remaining rows.

        Raises:
            Exception: The errors of `locked_directory`.
        """
        directory = self._settings.directory
        tables = [table for one in self._outboxes for table in one.tables[1:]]
        with locked_history(directory):
            try:
                self._parquet = ParquetHistory(directory, tables=tables)
            except OSError as error:
                reason = error.strerror or str(error)
                raise DirectoryUnwritable("history", directory, reason) from error
            self._thread.start()
            try:
                yield self
            finally:
                self._ending.set()
                self._thread.join()

    def limit_remaining_time(self) -> None:
        """Let exports continue for at most about ten more seconds."""
        self._deadline_s = time.monotonic() + _REMAINING_TIME_S

    def _run(self) -> None:
        to_parquet = _Task(self._export_to_parquet, _PARQUET_EVERY_S, _NOT_EXPORTED)
        to_topics = _Task(self._export_to_topics, _POLL_S, _NOT_EXPORTED)
        trouble = "the history cannot be put in order"
        maintenance = _Task(self._maintain, _MAINTENANCE_EVERY_S, trouble)
        tasks = [to_parquet, to_topics, maintenance]
        while not self._ending.wait(_POLL_S):
            for task in tasks:
                if task.due_s <= time.monotonic():
                    task.attempt()
        # If the last export to Kafka failed, another attempt would probably also fail,
        # and would delay the end of the job.
        if to_topics.failed:
            tasks.remove(to_topics)
        for task in tasks:
            task.attempt()
        for outbox in self._outboxes:
            if outbox.topics is not None:
                outbox.topics.close()

    def _export_to_parquet(self) -> None:
        clock_ms = self._clock_ms()
        for outbox in self._outboxes:
            self._export(outbox, Destination.PARQUET)
            outbox.findings.forget_before(clock_ms - RECENT_MS)

    def _export_to_topics(self) -> None:
        for outbox in self._outboxes:
            self._export(outbox, Destination.TOPICS)

    def _export(self, outbox: Outbox, destination: Destination) -> None:
        while pending := outbox.findings.pending(destination, _CHUNK_ROWS):
            rows = outbox.rows(pending, self._observer)
            if destination is Destination.PARQUET:
                for table, some in zip(outbox.tables[1:], rows, strict=True):
                    self._parquet.write(table, some)
            # If no topics are configured, the rows are confirmed without an export,
            # because the outbox deletes only rows that each destination has confirmed.
            elif outbox.topics is not None:
                outbox.topics.write(*rows)
            outbox.findings.confirm_delivered(destination, pending[-1].sequence)
            if time.monotonic() >= self._deadline_s:
                return

    def _maintain(self) -> None:
        clock_ms = self._clock_ms()
        # If exports fail for a long time, the ledger may have incidents older than all
        # days that the history keeps. Such incidents expire, although the files do not
        # have them.
        first_day = clock_ms // _DAY_MS - self._settings.days
        for outbox in self._outboxes:
            outbox.findings.expire_before(first_day * _DAY_MS)
        self._parquet.expire(day_of(clock_ms) - timedelta(self._settings.days))
        self._parquet.compact(time.time_ns() // 1_000_000)


@dataclass
class _Task:
    """A repeated task whose failure does not end the thread.

    The log line for a failure starts with `trouble`. `due_s` is the time of the next
    attempt, monotonic seconds.
    """

    work: Callable[[], None]
    every_s: float
    trouble: str
    due_s: float = field(default_factory=time.monotonic)
    failed: bool = False

    def attempt(self) -> None:
        """Do the work once; a failure is logged."""
        try:
            self.work()
        except Exception as error:  # The job survives any error.
            unforeseen = not isinstance(error, _FORESEEN)
            cause = with_remedy(str(error))
            _log.warning("%s: %s", self.trouble, cause, exc_info=unforeseen)
            self.failed = True
        else:
            self.failed = False
        self.due_s = time.monotonic() + (_RETRY_S if self.failed else self.every_s)


def topic_names(history: HistorySettings, kind: AnyKind) -> list[str]:
    """Return the topics for incidents, minutes and verdicts of a kind.

    The list is empty if the history has no topics.
    """
    if not history.has_topics:
        return []
    # Topics of all kinds but `ROOT_KIND` end with the name of the kind.
    end = "" if kind.at_root else f".{kind.published.names.many}"
    bases = history.incidents_topic, history.minutes_topic, history.verdicts_topic
    return [f"{base}{end}" for base in bases]


def exporting(
    history: HistorySettings | None, kafka: KafkaSettings, stores: Stores, board: Board
) -> AbstractContextManager[HistoryExporter | None]:
    """Return a context manager that exports findings if a history is configured."""
    if history is None:
        return nullcontext()
    brief = replace(kafka, timeout_s=min(kafka.timeout_s, _KAFKA_TIMEOUT_S))

    def topics(tables: KindTables) -> HistoryTopics | None:
        names = topic_names(history, tables.kind)
        retention_ms = history.days * _DAY_MS
        return HistoryTopics(brief, names, retention_ms, tables) if names else None

    return HistoryExporter(
        history,
        [
            Outbox(store.findings, topics(store.tables), store.tables)
            for store in stores.by_kind.values()
        ],
        lambda: board.snapshot.clock_ms,
        board.snapshot.observer,
    ).running()
