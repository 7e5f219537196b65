"""Finds incidents and minutes of a job, in its ledger and in its history."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

import msgspec

from connectors.history.query import SPARING, hourly_rows
from connectors.history.query import channel_minutes as query_minutes
from connectors.history.query import channel_verdicts as query_verdicts
from connectors.history.query import find_incidents as query_history
from connectors.history.schema import (
    NumberedMinute,
    NumberedVerdict,
    Row,
    minute_row,
    shown_verdict,
)
from sds_core.observer.growth import Recorded
from sds_core.observer.incidents import ChannelIncident, IncidentQuery
from sds_core.observer.shown_verdicts import ShownVerdict, day_begin_ms
from sds_core.planning.hours import hour_rows
from streaming.ledger.findings import Destination
from streaming.ledger.stores import Store
from streaming.ledger.verdicts import kept_since_ms
from streaming.settings import HistorySettings


@dataclass(frozen=True, slots=True)
class Stored:
    """Finds incidents and minutes of the views, or groups, of one kind.

    Methods raise the errors in `connectors.history.errors`.
    """

    store: Store
    history: HistorySettings | None = None

    def find_incidents(self, query: IncidentQuery) -> list[ChannelIncident]:
        """Matching incidents since the checkpoint was created, the last found first."""
        findings = self.store.findings
        recent = findings.find_incidents(query)
        before_ms = findings.forgotten_before_ms
        if self.history is None or before_ms is None:
            return recent
        if len(recent) == query.limit and all(
            one.incident.found_ms >= before_ms for one in recent[-1:]
        ):
            return recent
        # The history may have older versions of the incidents in the ledger. An older
        # version may match the query although the newest version does not, so all these
        # incidents are ignored in the history.
        newest = findings.find_incidents(IncidentQuery(query.channel, query.kind))
        known = {(one.channel, one.incident.key) for one in recent + newest}
        limit = None if query.limit is None else query.limit + len(known)
        wider = msgspec.structs.replace(query, limit=limit)
        found = recent + [
            one
            for one in query_history(self.history.directory, wider, self.store.tables)
            if (one.channel, one.incident.key) not in known
        ]
        found.sort(
            key=lambda one: (-one.incident.found_ms, one.channel, one.incident.key)
        )
        return found[: query.limit]

    def find_minutes(
        self,
        channel: str,
        since_ms: int,
        until_ms: int,
        fields: Collection[str] | None = None,
    ) -> list[Row]:
        """Minutes of a channel that begin in [since_ms, until_ms), in order.

        `fields` are the figures that each row must have, in addition to its key and
        ``told``; None means all figures. Without a history, rows have only the figures
        `FigureTable.grown`.
        """
        if self.history is None:
            return self.store.recent.rows(channel, since_ms, until_ms)
        # The exporter may move a row from the outbox to the files at any time. The
        # outbox is read first, so no row is missed.
        pending = self._pending_minutes(channel, since_ms, until_ms)
        directory, tables = self.history.directory, self.store.tables
        stored = query_minutes(directory, channel, since_ms, until_ms, fields, tables)
        rows: dict[int, Row] = {}
        for row in stored + pending:
            known = rows.get(row["minute"])
            if known is None or known["told"] <= row["told"]:
                rows[row["minute"]] = row
        return [rows[minute] for minute in sorted(rows)]

    def find_hours(
        self,
        channel: str,
        since_ms: int,
        until_ms: int,
        counters: Collection[str],
        gauges: Sequence[str],
    ) -> list[Row]:
        """Hours of a channel in which a figure changed; see `query.hourly_rows`.

        Only minutes that begin in [since_ms, until_ms) count. Without a history, rows
        have only the figures `FigureTable.grown`.
        """
        if self.history is None:
            recent = self.store.recent.rows(channel, since_ms, until_ms)
            return hour_rows(recent, gauges)
        # As in `find_minutes`, the outbox is read first.
        pending = self._pending_minutes(channel, since_ms, until_ms)
        stored = hourly_rows(
            self.history.directory,
            [channel],
            since_ms,
            until_ms,
            counters,
            gauges,
            self.store.tables,
            SPARING,
        )
        rows = stored.get(channel, []) + pending
        return hour_rows(sorted(rows, key=itemgetter("minute", "told")), gauges)

    def _pending_minutes(self, channel: str, since_ms: int, until_ms: int) -> list[Row]:
        table = self.store.tables.kind.published
        return [
            minute_row(one, table)
            for one in self.store.findings.pending(
                Destination.PARQUET, NumberedMinute, channel=channel
            )
            if since_ms <= one.minute_ms < until_ms
        ]

    def find_recent(self, at_ms: int) -> Mapping[str, Recorded]:
        """Figures at a moment; see `RecentMinutes.at`."""
        return self.store.recent.at(at_ms)

    def find_steps(
        self, channels: Collection[str], since_ms: int, until_ms: int, step_ms: int
    ) -> Mapping[str, Sequence[Recorded]]:
        """Return the figures of each step; see `RecentMinutes.steps`."""
        return self.store.recent.steps(channels, since_ms, until_ms, step_ms)

    def find_verdicts(
        self, channels: Collection[str], since_ms: int, until_ms: int
    ) -> Mapping[str, Sequence[ShownVerdict]]:
        """By channel, the verdicts that were shown between two wall times, in order.

        Times are Unix ms. The result also has the earlier rows of the day of
        `since_ms`.
        """
        findings, _, verdicts, tables = self.store
        recent = verdicts.find(channels, since_ms, until_ms)
        if self.history is None or since_ms >= kept_since_ms(verdicts.observed_ms or 0):
            return recent
        begin_ms = day_begin_ms(since_ms)
        found = {}
        for channel in channels:
            pending = findings.pending(
                Destination.PARQUET, NumberedVerdict, channel=channel
            )
            rows = [
                shown_verdict(row)
                for row in query_verdicts(
                    self.history.directory, channel, begin_ms, until_ms, tables
                )
            ]
            rows += [one.shown for one in pending]
            by_minute = {
                row.minute_ms: row
                for row in rows + recent[channel]
                if begin_ms <= row.minute_ms < until_ms
            }
            found[channel] = [by_minute[minute] for minute in sorted(by_minute)]
        return found

    def verdicts_until_ms(self) -> int | None:
        """When verdicts were last observed, Unix ms; see `VerdictStore.observed_ms`."""
        return self.store.verdicts.observed_ms
