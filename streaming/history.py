"""Carries what left the job from the outbox to Kafka and Parquet, in its own thread.

No batch waits for it: while Kafka or the disk of the history is away, rows wait in the
outbox.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from types import TracebackType

import msgspec

from connectors.history.errors import DamagedHistory
from connectors.history.layout import LOCK, day_of
from connectors.history.parquet import ParquetHistory
from connectors.history.query import channel_minutes as query_minutes
from connectors.history.query import find_incidents as query_history
from connectors.history.schema import (
    CHANNEL_MINUTES,
    INCIDENTS,
    Row,
    ToldIncident,
    ToldMinute,
    incident_row,
    minute_row,
)
from connectors.history.topics import HistoryTopics
from connectors.kafka.settings import (
    InvalidTopic,
    SecurityUnusable,
)
from connectors.lock import locked
from sds_core.observer.incidents import ChannelIncident, IncidentQuery
from streaming.incidents import IncidentStore
from streaming.outbox import Destination, Outbox
from streaming.settings import HistorySettings

_AT_ONCE = 2_000
"""Rows in memory: a minute of a channel has about 2 kB."""

_LOOK_EVERY_S = 1.0

_PARQUET_EVERY_S = 60.0
"""A file each; what is found shows in the API at once all the same."""

_TIDY_EVERY_S = 600.0

_AGAIN_S = 30.0
"""What failed may need a person: there is a line in the log each time."""

KEPT_BESIDE_MS = 86_400_000
"""Incidents older than this are looked up in the history alone. None changes so late:
after the horizon of an hour nothing is looked for."""

_END_S = 10.0
"""For what is left at an end that somebody waits for; the rest is carried over at the
next start."""

_FORESEEN = (
    DamagedHistory,
    InvalidTopic,
    OSError,
    SecurityUnusable,
    sqlite3.Error,
)
"""Failures whose text says enough."""

_log = logging.getLogger("sds-monitor")


class HistoryInUse(RuntimeError):
    """Another job writes to the history.

    Attributes:
        directory: Of the history.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        super().__init__(
            f"another job writes to history {directory}: end it, or use another "
            "--history"
        )


class HistoryUnwritable(OSError):
    """The directory of the history cannot be made or written to.

    Attributes:
        directory: Of the history.
    """

    def __init__(self, directory: Path, reason: str) -> None:
        self.directory = directory
        super().__init__(
            f"history {directory} cannot be written to ({reason}): use a directory of "
            "your own as --history"
        )


class HistoryExporter:
    """Empties the outbox into its destinations while the block runs, and at its end.

    Args:
        settings: Where to.
        outbox: From where.
        incidents: Keeps the latest beside the checkpoint; the older ones are removed
            once they are in the history.
        topics: The Kafka topics; None to write none.
        clock_ms: Event time of the job, Unix ms; 0 before it is known.
    """

    def __init__(
        self,
        settings: HistorySettings,
        outbox: Outbox,
        incidents: IncidentStore,
        topics: HistoryTopics | None,
        clock_ms: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._outbox = outbox
        self._incidents = incidents
        self._topics = topics
        self._clock_ms = clock_ms
        self._ending = threading.Event()
        self._end_s = float("inf")
        self._thread = threading.Thread(target=self._run, name="history", daemon=True)
        self._held = ExitStack()

    def __enter__(self) -> HistoryExporter:
        """Begin.

        Raises:
            HistoryInUse: Another job writes to the history.
            HistoryUnwritable: Its directory cannot be written to.
        """
        directory = self._settings.directory
        with ExitStack() as held:
            try:
                held.enter_context(locked(directory / LOCK))
                self._parquet = ParquetHistory(directory)
            except BlockingIOError:
                raise HistoryInUse(directory) from None
            except OSError as error:
                reason = error.strerror or str(error)
                raise HistoryUnwritable(directory, reason) from error
            self._held = held.pop_all()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Carry over what is left, and end."""
        self._ending.set()
        self._thread.join()
        self._held.close()

    def hurry(self) -> None:
        """Carry over no more, from now on, than is soon done."""
        self._end_s = time.monotonic() + _END_S

    def _run(self) -> None:
        waits, untidy = "the history waits", "the history cannot be put in order"
        to_parquet = _Chore(self._to_parquet, _PARQUET_EVERY_S, waits)
        to_topics = _Chore(self._to_topics, _LOOK_EVERY_S, waits)
        tidy = _Chore(self._tidy, _TIDY_EVERY_S, untidy)
        chores = [to_parquet, to_topics, tidy]
        while not self._ending.wait(_LOOK_EVERY_S):
            for chore in chores:
                if chore.due_s <= time.monotonic():
                    chore.do()
        # Who waits for the end is not to wait for a cluster that was away just now.
        if to_topics.failed:
            chores.remove(to_topics)
        for chore in chores:
            chore.do()
        if self._topics is not None:
            self._topics.close()

    def _to_parquet(self) -> None:
        clock_ms = self._clock_ms()
        self._carry(Destination.PARQUET, self._write_files)
        self._incidents.forget_before(clock_ms - KEPT_BESIDE_MS)

    def _to_topics(self) -> None:
        self._carry(Destination.TOPICS, self._write_records)

    def _carry(
        self, destination: Destination, write: Callable[[list[Row], list[Row]], None]
    ) -> None:
        """Carry all there is, or as much as there is time for."""
        while told := self._outbox.pending(destination, _AT_ONCE):
            write(
                [incident_row(one) for one in told if isinstance(one, ToldIncident)],
                [minute_row(one) for one in told if isinstance(one, ToldMinute)],
            )
            self._outbox.delivered(destination, told[-1].told)
            if time.monotonic() >= self._end_s:
                return

    def _write_files(self, incidents: list[Row], minutes: list[Row]) -> None:
        self._parquet.write(INCIDENTS, incidents)
        self._parquet.write(CHANNEL_MINUTES, minutes)

    def _write_records(self, incidents: list[Row], minutes: list[Row]) -> None:
        # Where no topics are wanted, the rows are not kept for them either.
        if self._topics is not None:
            self._topics.write(incidents, minutes)

    def _tidy(self) -> None:
        self._parquet.expire(day_of(self._clock_ms()) - timedelta(self._settings.days))
        self._parquet.compact(time.time_ns() // 1_000_000)


class _Chore:
    """What is done again and again, and must not end the thread when it fails.

    Args:
        work: Does it.
        every_s: Seconds between its end and when it is due again.
        trouble: What it means if it fails.

    Attributes:
        due_s: When it is to be done next, by the monotonic clock.
        failed: Whether it failed the last time.
    """

    def __init__(self, work: Callable[[], None], every_s: float, trouble: str) -> None:
        self._work = work
        self._every_s = every_s
        self._trouble = trouble
        self.due_s = time.monotonic()
        self.failed = False

    def do(self) -> None:
        """Do it; what fails is left as it is for the next time."""
        try:
            self._work()
        except Exception as error:  # whatever it is, the rows wait and the job goes on
            unforeseen = not isinstance(error, _FORESEEN)
            _log.warning("%s: %s", self._trouble, error, exc_info=unforeseen)
            self.failed = True
        else:
            self.failed = False
        self.due_s = time.monotonic() + (_AGAIN_S if self.failed else self._every_s)


def find_incidents(
    incidents: IncidentStore, history: HistorySettings | None, query: IncidentQuery
) -> list[ChannelIncident]:
    """Incidents of a job, those that are only in its history too; found last first.

    Raises:
        connectors.history.errors.DamagedHistory: A file of it cannot be read.
        connectors.history.errors.NoHistory: Its directory is gone.
    """
    latest = incidents.find(query)
    before_ms = incidents.forgotten_before_ms
    if history is None or before_ms is None:
        return latest
    if len(latest) == query.limit and all(
        one.incident.found_ms >= before_ms for one in latest[-1:]
    ):
        return latest
    # Of those that are here the history may have older tellings, to which other
    # conditions apply.
    here = incidents.find(IncidentQuery(query.channel, query.kind))
    known = {(one.channel, one.incident.key) for one in latest + here}
    limit = None if query.limit is None else query.limit + len(known)
    asked = msgspec.structs.replace(query, limit=limit)
    found = latest + [
        one
        for one in query_history(history.directory, asked)
        if (one.channel, one.incident.key) not in known
    ]
    found.sort(key=lambda one: (-one.incident.found_ms, one.channel, one.incident.key))
    return found[: query.limit]


def find_minutes(
    outbox: Outbox,
    history: HistorySettings | None,
    channel: str,
    since_ms: int,
    until_ms: int,
    fields: Collection[str] | None = None,
) -> list[Row]:
    """A channel's minutes, those that are on their way into the history too.

    Args:
        outbox: Of the job.
        history: Its settings; None gives nothing.
        channel: Channel id.
        since_ms: When the first of them began at the earliest, Unix ms.
        until_ms: Before which the last of them began.
        fields: What each has at least, besides key and `told`; None for all.

    Raises:
        connectors.history.errors.DamagedHistory: A file of it cannot be read.
        connectors.history.errors.NoHistory: Its directory is gone.
    """
    if history is None:
        return []
    # Asked first: what leaves it meanwhile is then found in the files as well.
    waiting = [
        minute_row(one)
        for one in outbox.waiting_minutes(Destination.PARQUET, channel)
        if since_ms <= one.minute_ms < until_ms
    ]
    rows: dict[int, Row] = {}
    stored = query_minutes(history.directory, channel, since_ms, until_ms, fields)
    for row in stored + waiting:
        known = rows.get(row["minute"])
        if known is None or known["told"] <= row["told"]:
            rows[row["minute"]] = row
    return [rows[minute] for minute in sorted(rows)]
