"""The findings of a job and its history, without the job."""

from __future__ import annotations

from contextlib import AbstractContextManager
from operator import attrgetter
from pathlib import Path

from connectors.history.query import channel_minutes
from connectors.history.schema import (
    CHANNEL_TABLES,
    NumberedIncident,
    NumberedMinute,
    NumberedVerdict,
)
from connectors.history.topics import HistoryTopics
from sds_core.observer.incidents import Incident, IncidentKind, IncidentQuery
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import ChannelMinute, ChannelTotals
from streaming.history import HistoryExporter, Outbox
from streaming.ledger.findings import Destination, Findings, OutboxRow
from streaming.ledger.recent import RecentMinutes
from streaming.ledger.stores import Store
from streaming.ledger.verdicts import VerdictStore
from streaming.lookup import Stored
from streaming.settings import HistorySettings
from tests.support.streaming.ledger import ledger_in

EVERYTHING = IncidentQuery()
MINUTE_MS = 60_000
DAY_MS = 86_400_000
MONDAY_MS = 1_786_320_000_000
"""2026-08-10 00:00 UTC."""
HALF_DAY_MS = DAY_MS // 2
ROWS = NumberedIncident, NumberedMinute, NumberedVerdict
"""The types of the outbox's rows."""


def lost(
    message_id: str, found_ms: int = MONDAY_MS, ended_ms: int | None = None
) -> Incident:
    """A lost message."""
    return Incident(IncidentKind.LOST, message_id, "ana", 1, found_ms, ended_ms)


def minutes(count: int, messages: int = 1) -> list[ChannelMinute]:
    """Minutes of a channel, one after the other."""
    return [
        ChannelMinute(MONDAY_MS + n * MINUTE_MS, ChannelTotals(messages=messages + n))
        for n in range(count)
    ]


def pending(findings: Findings, destination: Destination) -> list[OutboxRow]:
    """The rows of all types that a destination has not confirmed, in order."""
    rows = [row for type_ in ROWS for row in findings.pending(destination, type_)]
    return sorted(rows, key=attrgetter("sequence"))


class Checkpoint:
    """The findings of a job, its recent minutes, and its history.

    Args:
        directory: Directory of the ledger.
        history: Directory of the history.
        first_sequence: See `ledger_in`.
    """

    def __init__(self, directory: Path, history: Path, first_sequence: int = 1) -> None:
        self.directory = directory
        self.settings = HistorySettings(history, has_topics=False)
        self._first_sequence = first_sequence
        self.findings: Findings
        self.recent: RecentMinutes
        self.restart()

    def restart(self) -> None:
        """Open the file as the next process does."""
        ledger = ledger_in(self.directory, self._first_sequence)
        self.findings = Findings(ledger, CHANNELS)
        self.recent = RecentMinutes(ledger, CHANNELS)

    def exporter(
        self, clock_ms: int = MONDAY_MS, topics: HistoryTopics | None = None
    ) -> AbstractContextManager[HistoryExporter]:
        """An exporter that is not started."""
        outbox = Outbox(self.findings, topics, CHANNEL_TABLES)
        return HistoryExporter(self.settings, [outbox], lambda: clock_ms).running()

    def stored(self, with_history: bool = True) -> Stored:
        """What finds incidents, minutes and verdicts."""
        verdicts = VerdictStore(self.findings, with_history)
        store = Store(self.findings, self.recent, verdicts, CHANNEL_TABLES)
        return Stored(store, self.settings if with_history else None)

    def export(
        self, clock_ms: int = MONDAY_MS, topics: HistoryTopics | None = None
    ) -> None:
        """Start an exporter, and end it at once."""
        with self.exporter(clock_ms, topics):
            pass

    def pending(self, destination: Destination) -> int:
        """Number of rows that a destination has not confirmed."""
        return len(pending(self.findings, destination))

    def incidents(self, query: IncidentQuery = EVERYTHING) -> list[tuple[str, bool]]:
        """Message id of each incident found, and whether it stands."""
        return [
            (one.incident.message_id, one.incident.ended_ms is None)
            for one in self.stored().find_incidents(query)
        ]

    def minute_messages(self) -> list[int]:
        """The count of messages at the end of each minute in the history."""
        rows = channel_minutes(
            self.settings.directory, "town", MONDAY_MS, MONDAY_MS + 30 * DAY_MS
        )
        return [row["messages"] for row in rows]
