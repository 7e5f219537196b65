"""Exports rows of the outbox to the history's Parquet files and Kafka topics.

A separate thread exports, so that no batch waits for an export. While a topic or a
directory of the history fails, its rows wait in the outbox.
"""

from __future__ import annotations

import logging
import math
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from connectors.history.errors import DamagedHistory
from connectors.history.layout import LOCK, day_of
from connectors.history.parquet import ParquetHistory
from connectors.history.schema import (
    HistoryTable,
    KindTables,
    NumberedIncident,
    NumberedMinute,
    NumberedVerdict,
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
from streaming.directories import locked_directory, told_unwritable
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


_Write = Callable[[HistoryTable, Sequence[Row]], None]
"""Writes rows of a table to a destination."""


def _drop(table: HistoryTable, rows: Sequence[Row]) -> None:
    """Write rows nowhere."""


@dataclass
class _Export:
    """Exports the rows of one table to one destination, when it is called.

    Attributes:
        row: Type of the table's rows in the outbox.
        as_row: Converts a row of the outbox to a row of the table.
        limit: Maximum number of rows that the next call writes first.
        progress_s: When the destination last accepted rows or had all of them,
            monotonic seconds.
    """

    findings: Findings
    row: type[OutboxRow]
    table: HistoryTable
    as_row: Callable[[Any], Row]
    destination: Destination
    write: _Write
    is_late: Callable[[], bool]
    limit: int = _CHUNK_ROWS
    progress_s: float = field(default_factory=time.monotonic)

    def __call__(self) -> None:
        while pending := self.findings.pending(self.destination, self.row, self.limit):
            # If a write fails, the destination may have accepted a part of the rows,
            # and gets this part again. So that a row that is refused repeats few other
            # rows, the number of rows begins at 1 after a failure, and is then doubled.
            rows, self.limit = self.limit, 1
            self.write(self.table, [self.as_row(one) for one in pending])
            self.findings.confirm_delivered(
                self.destination, self.row, pending[-1].sequence
            )
            self.limit = min(2 * rows, _CHUNK_ROWS)
            self.progress_s = time.monotonic()
            if self.is_late():
                return
        self.progress_s = time.monotonic()


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
        self._exports: list[_Export] = []
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
            with told_unwritable("history", directory):
                self._parquet = ParquetHistory(directory, tables=tables)
            self._exports = list(self._all_exports(self._parquet.write))
            self._thread.start()
            try:
                yield self
            finally:
                self._ending.set()
                self._thread.join()

    def limit_remaining_time(self) -> None:
        """Let exports continue for at most about ten more seconds."""
        self._deadline_s = time.monotonic() + _REMAINING_TIME_S

    def stalled_s(self) -> float:
        """Maximum time for which rows have waited while a destination accepted none, s.

        If nothing fails, rows wait for at most about a minute.
        """
        since_s = min((one.progress_s for one in self._exports), default=math.inf)
        return max(0.0, time.monotonic() - since_s)

    def _all_exports(self, write_files: _Write) -> Iterator[_Export]:
        for findings, topics, tables in self._outboxes:
            kind = tables.kind
            types: list[tuple[type[OutboxRow], HistoryTable, Callable[..., Row]]] = [
                (
                    NumberedIncident,
                    tables.incidents,
                    partial(incident_row, settings=self._observer, kind=kind),
                ),
                (
                    NumberedMinute,
                    tables.minutes,
                    partial(minute_row, table=kind.published),
                ),
                (
                    NumberedVerdict,
                    tables.verdicts,
                    partial(verdict_row, table=kind.published),
                ),
            ]
            # If no topics are configured, the rows are confirmed without an export,
            # because the outbox deletes only rows that each destination has confirmed.
            to = {
                Destination.PARQUET: write_files,
                Destination.TOPICS: _drop if topics is None else topics.write,
            }
            for (row, table, as_row), (destination, write) in product(
                types, to.items()
            ):
                yield _Export(
                    findings, row, table, as_row, destination, write, self._is_late
                )

    def _is_late(self) -> bool:
        return time.monotonic() >= self._deadline_s

    def _run(self) -> None:
        warnings = _Warnings()

        def tasks(destination: Destination, every_s: float) -> list[_Task]:
            return [
                _Task(one, every_s, "the history waits", warnings)
                for one in self._exports
                if one.destination is destination
            ]

        to_files = tasks(Destination.PARQUET, _PARQUET_EVERY_S)
        to_topics = tasks(Destination.TOPICS, _POLL_S)
        trouble = "the history cannot be put in order"
        maintenance = _Task(self._maintain, _MAINTENANCE_EVERY_S, trouble, warnings)
        while not self._ending.wait(_POLL_S):
            for task in (*to_files, *to_topics, maintenance):
                if task.due_s <= time.monotonic() and not self._ending.is_set():
                    task.attempt()
        for task in to_files:
            task.attempt()
        # If an export to Kafka has failed, another attempt would probably also fail,
        # and would delay the end of the job.
        for task in to_topics:
            if not task.failed and not task.attempt():
                break
        maintenance.attempt()
        for outbox in self._outboxes:
            if outbox.topics is not None:
                outbox.topics.close()

    def _maintain(self) -> None:
        clock_ms = self._clock_ms()
        # If exports fail for a long time, the ledger may have incidents older than all
        # days that the history keeps. Such incidents expire, although the files do not
        # have them.
        first_day = clock_ms // _DAY_MS - self._settings.days
        for outbox in self._outboxes:
            outbox.findings.forget_before(clock_ms - RECENT_MS)
            outbox.findings.expire_before(first_day * _DAY_MS)
        self._parquet.expire(day_of(clock_ms) - timedelta(self._settings.days))
        self._parquet.compact(time.time_ns() // 1_000_000)


class _Warnings:
    """Logs warnings, but omits a warning that was logged recently."""

    def __init__(self) -> None:
        self._until_s: dict[str, float] = {}

    def log(self, text: str, *, with_traceback: bool) -> None:
        now_s = time.monotonic()
        self._until_s = {one: s for one, s in self._until_s.items() if s > now_s}
        if text not in self._until_s:
            self._until_s[text] = now_s + _RETRY_S
            _log.warning("%s", text, exc_info=with_traceback)


@dataclass
class _Task:
    """A repeated task whose failure does not end the thread.

    The log line for a failure starts with `trouble`. `due_s` is the time of the next
    attempt, monotonic seconds.
    """

    work: Callable[[], None]
    every_s: float
    trouble: str
    warnings: _Warnings
    due_s: float = field(default_factory=time.monotonic)
    failed: bool = False

    def attempt(self) -> bool:
        """Do the work once, and return whether it succeeded; a failure is logged."""
        try:
            self.work()
        except Exception as error:  # The job survives any error.
            unforeseen = not isinstance(error, _FORESEEN)
            cause = with_remedy(str(error))
            self.warnings.log(f"{self.trouble}: {cause}", with_traceback=unforeseen)
            self.failed = True
        else:
            self.failed = False
        self.due_s = time.monotonic() + (_RETRY_S if self.failed else self.every_s)
        return not self.failed


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
