"""Carries what left the job from the outbox to Kafka and Parquet, in its own thread.

No batch waits for it: while Kafka or the disk of the history is away, rows wait in the
outbox.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import TracebackType

from connectors.history.errors import DamagedHistory
from connectors.history.layout import day_of
from connectors.history.parquet import ParquetHistory
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
from connectors.history.topics import INCIDENTS_TOPIC, MINUTES_TOPIC, HistoryTopics
from connectors.kafka.settings import KafkaUnreachable
from connectors.kafka.topics import InvalidTopic
from sds_core.observer.incidents import ChannelIncident, IncidentQuery
from streaming.incidents import IncidentStore
from streaming.outbox import Destination, Outbox, Told

_AT_ONCE = 2_000
"""Rows in memory: a minute of a channel has about 2 kB."""

_LOOK_EVERY_S = 1.0

_PARQUET_EVERY_S = 60.0
"""A file each; what is found shows in the API at once all the same."""

_TIDY_EVERY_S = 600.0

KEPT_BESIDE_MS = 86_400_000
"""Incidents older than this are looked up in the history alone."""

_log = logging.getLogger("sds-monitor")


@dataclass(frozen=True, slots=True)
class HistorySettings:
    """Where the history goes.

    Attributes:
        directory: Of the Parquet files.
        days: How long it is kept, by event time.
        has_topics: Whether it goes to Kafka as well.
        incidents_topic, minutes_topic: The topics there.
    """

    directory: Path
    days: int = 30
    has_topics: bool = True
    incidents_topic: str = INCIDENTS_TOPIC
    minutes_topic: str = MINUTES_TOPIC


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
        self._parquet = ParquetHistory(settings.directory)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="history", daemon=True)

    def __enter__(self) -> HistoryExporter:
        """Begin."""
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

    def _run(self) -> None:
        written_s = tidied_s = time.monotonic()
        while not self._ending.wait(_LOOK_EVERY_S):
            self._carry(Destination.TOPICS)
            now_s = time.monotonic()
            if now_s - written_s >= _PARQUET_EVERY_S:
                written_s = now_s
                self._carry(Destination.PARQUET)
            if now_s - tidied_s >= _TIDY_EVERY_S:
                tidied_s = now_s
                self._tidy()
        self._carry(Destination.TOPICS)
        self._carry(Destination.PARQUET)
        if self._topics is not None:
            self._topics.close()

    def _carry(self, destination: Destination) -> None:
        """Carry all there is; what fails waits for the next time."""
        write = {
            Destination.TOPICS: self._to_topics,
            Destination.PARQUET: self._to_parquet,
        }[destination]
        try:
            while rows := self._outbox.pending(destination, _AT_ONCE):
                write(rows)
                self._outbox.delivered(destination, rows[-1].told)
        except (KafkaUnreachable, InvalidTopic, OSError) as error:
            _log.warning("the history waits: %s", error)

    def _to_topics(self, told: Sequence[Told]) -> None:
        if self._topics is not None:
            self._topics.write(*_rows(told))

    def _to_parquet(self, told: Sequence[Told]) -> None:
        incidents, minutes = _rows(told)
        if incidents:
            self._parquet.write(INCIDENTS, incidents)
        if minutes:
            self._parquet.write(CHANNEL_MINUTES, minutes)

    def _tidy(self) -> None:
        clock_ms = self._clock_ms()
        try:
            self._parquet.compact(time.time_ns() // 1_000_000)
            self._parquet.expire(day_of(clock_ms) - timedelta(self._settings.days))
            if not self._outbox.pending(Destination.PARQUET, 1):
                self._incidents.forget_before(clock_ms - KEPT_BESIDE_MS)
        except (DamagedHistory, OSError) as error:
            _log.warning("the history cannot be put in order: %s", error)


def find_incidents(
    incidents: IncidentStore, history: HistorySettings | None, query: IncidentQuery
) -> list[ChannelIncident]:
    """Incidents of a job, those that are only in its history too; found last first.

    Raises:
        connectors.history.errors.DamagedHistory: A file of it cannot be read.
    """
    latest = incidents.find(query)
    if history is None or not incidents.has_forgotten:
        return latest
    known = {(one.channel, one.incident.key) for one in latest}
    found = latest + [
        one
        for one in query_history(history.directory, query)
        if (one.channel, one.incident.key) not in known
    ]
    found.sort(key=lambda one: (-one.incident.found_ms, one.channel, one.incident.key))
    return found[: query.limit]


def _rows(told: Sequence[Told]) -> tuple[list[Row], list[Row]]:
    """Incidents and minutes."""
    incidents = [incident_row(one) for one in told if isinstance(one, ToldIncident)]
    minutes = [minute_row(one) for one in told if isinstance(one, ToldMinute)]
    return incidents, minutes
