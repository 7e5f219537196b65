"""Passes the rows of the stateful operator to the board and the outlets of events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import msgspec
from pyspark.sql import DataFrame, Row

from connectors.kafka.dead_letter import DeadLetterWriter
from sds_core.observer import blob
from sds_core.observer.blindness import coincides_with_hole
from sds_core.observer.forgotten import Forgotten
from sds_core.observer.incidents import GroupIncident, Incident
from sds_core.observer.kinds import AnyProtocol, Outlet
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.snapshot import OTHER
from sds_core.observer.view_totals import ViewTotals
from streaming.board import Board
from streaming.details import DetailStore
from streaming.failure import hand_over
from streaming.findings import Findings
from streaming.group_minutes import GroupMinutes
from streaming.labels import LabelLedger
from streaming.recent import RecentMinutes
from streaming.stores import Store
from streaming.view_register import ForgottenView, ViewRegister

_HOLES_KNOWN_AFTER_MS = 60_000
"""After this much event time a tap's totals contain every hole that had begun. A hole
in its numbers appears at the next record, or as a silence, and counts 15 s later."""

_Leaving = dict[str, dict[Outlet, dict[str, list[Any]]]]
"""Events that leave the job in one batch, by prefix of the kind, outlet, and name of
the view or group."""


class Sink:
    """Writes each batch's output; writing it twice changes nothing.

    Args:
        board: Gets the totals.
        ledgers: Get the names of views, by the prefix of their kind; see
            `labels.open_ledgers`.
        dead_letters: Gets the undecodable records; None to only count them.
        findings: Gets every incident of a channel, and minutes if there is a history.
        with_minutes: Whether there is a history, and so minutes are recorded.
        details: Gets definite acknowledgements; None without ``--report-detail``.
        recent: Gets minutes of channels, for the page's last hour.
        register: Gets the keys of views, and what forgotten ones had counted.
        protocols: Registered protocols.
        others: Get the same of other kinds of view, by prefix.
        groups: Joins the minutes of views into those of groups; None if no kind has
            groups.
    """

    def __init__(
        self,
        board: Board,
        ledgers: Mapping[str, LabelLedger],
        dead_letters: DeadLetterWriter | None,
        findings: Findings,
        with_minutes: bool,
        details: DetailStore | None,
        recent: RecentMinutes,
        register: ViewRegister,
        protocols: Iterable[AnyProtocol] = PROTOCOLS,
        others: Mapping[str, Store] = MappingProxyType({}),
        groups: GroupMinutes | None = None,
    ) -> None:
        self._board = board
        self._groups = groups
        self._ledgers = ledgers
        self._dead_letters = dead_letters
        self._stores = {CHANNELS.prefix: Store(findings, recent), **others}
        self._with_minutes = with_minutes
        self._details = details
        self._register = register
        self._kinds = kinds_of(protocols)
        self._decoders = {
            kind.prefix: msgspec.msgpack.Decoder(kind.events_type)
            for kind in self._kinds
        }
        # Admission time T of the newest batch; 0 before the first of this process.
        self._clock_ms = 0

    @hand_over
    def __call__(self, output: DataFrame, batch_id: int) -> None:
        """Spark's ``foreachBatch`` function."""
        # One action over the whole output: Spark fails a batch half consumed.
        self.take(output.collect(), batch_id)

    def take(self, rows: Sequence[Row], batch_id: int) -> None:
        """Commit a batch.

        1. Undecodable records are copied to the dead-letter topic.
        2. Incidents are stored, and queued for the history.
        3. Minutes are stored for the page, and queued for the history.
        4. Definite acknowledgements are store.
        5. What forgotten views had counted is added to the remainder.
        6. Totals go to the board, which page, API and metrics read.
        7. Incidents that coincide with a tap hole are marked. This compares them with
           the totals of the taps on the board, so it comes last.

        Spark repeats the batch if the process ends before the last step. That does no
        harm: dead letters carry the offset of their record, a row replaces the row
        with the same key, and the remainder is that before this batch.

        Args:
            rows: All rows of the batch, see `fold.OUTPUT_SCHEMA`.
            batch_id: Number of the batch.
        """
        clock_ms = self._clock_ms
        totals: dict[str, bytes] = {}
        gone: list[str] = []
        leaving: _Leaving = {
            kind.prefix: {outlet: {} for outlet in Outlet} for kind in self._kinds
        }
        ended: list[tuple[str, Forgotten]] = []
        for row in rows:
            if row.clock_ms is not None:
                clock_ms = row.clock_ms
                continue
            if row.totals is None:
                gone.append(row.key)
            else:
                totals[row.key] = bytes(row.totals)
            self._sort(row.key, bytes(row.events), leaving, ended)
        self._write_dead_letters(leaving)  # 1
        for prefix, store in self._stores.items():
            store.findings.record_incidents(leaving[prefix][Outlet.INCIDENTS])  # 2
            minutes = self._minutes(prefix, leaving[prefix][Outlet.MINUTES], batch_id)
            store.recent.record(minutes)  # 3
            if self._with_minutes:
                store.findings.record_minutes(minutes)
        forgotten = [self._kinds.split(key) for key, _ in ended]
        for kind, name in forgotten:
            if kind.prefix in self._stores:
                self._stores[kind.prefix].recent.forget(name)
        if self._details is not None:
            self._details.forget([name for _, name in forgotten])
            for by_outlet in leaving.values():
                self._details.record(by_outlet[Outlet.DETAILS])  # 4
        self._register_views(totals, gone, ended, batch_id)  # 5
        self.publish(totals, gone)  # 6
        self._mark_incidents(clock_ms)  # 7

    def _sort(
        self,
        key: str,
        packed: bytes,
        leaving: _Leaving,
        ended: list[tuple[str, Forgotten]],
    ) -> None:
        """Add the events of one view to their outlets, its ends to `ended`.

        Minutes of groups stay under the name of the view until they are joined.
        """
        kind, name = self._kinds.split(key)
        by_outlet = leaving[kind.prefix]
        for event in self._decoders[kind.prefix].decode(packed):
            outlet = kind.outlets[type(event)]
            if outlet is Outlet.FORGOTTEN:
                ended.append((key, event))
                # Details are stored by name: those of a view that returns are new.
                by_outlet[Outlet.DETAILS].pop(name, None)
            elif kind.grouping is None or outlet is Outlet.MINUTES:
                by_outlet[outlet].setdefault(name, []).append(event)
            else:
                group = kind.grouping.name_of(event)
                one = event.incident if isinstance(event, GroupIncident) else event
                by_outlet[outlet].setdefault(group, []).append(one)

    def _minutes(
        self, prefix: str, emitted: Mapping[str, Sequence[Any]], batch_id: int
    ) -> Mapping[str, Sequence[Any]]:
        """Return the minutes of one kind by name of the view or group."""
        kind = self._kinds.of(prefix)
        if kind.grouping is None or self._groups is None:
            return emitted
        return self._groups.join(batch_id, kind, emitted)

    def _register_views(
        self,
        totals: Iterable[str],
        gone: Iterable[str],
        ended: Iterable[tuple[str, Forgotten]],
        batch_id: int,
    ) -> None:
        """Store which views are new, which are gone, and what these had counted."""
        new = [key for key in totals if self._is_new(key)]
        forgotten = []
        for key, event in ended:
            kind, name = self._kinds.split(key)
            labels = self._ledgers[kind.prefix].labels
            last = blob.unpack_totals(event.totals, kind.totals)
            in_other = name not in labels or name == OTHER
            forgotten.append(ForgottenView(kind, last, in_other))
        self._register.record_batch(batch_id, new, gone, forgotten)

    def _is_new(self, key: str) -> bool:
        """Whether a view that may be forgotten has no figures yet."""
        kind, name = self._kinds.split(key)
        return kind.remains is not None and name not in self._board.names(kind.prefix)

    def _write_dead_letters(self, leaving: _Leaving) -> None:
        letters = [
            letter
            for by_outlet in leaving.values()
            for some in by_outlet[Outlet.DEAD_LETTERS].values()
            for letter in some
        ]
        if letters and self._dead_letters is not None:
            unwritten = self._dead_letters.write(letters)
            before = self._board.snapshot.job.dead_letters_unwritten
            self._board.set_job(dead_letters_unwritten=before + unwritten)

    def publish(self, packed: dict[str, bytes], gone: Iterable[str] = ()) -> None:
        """Put packed totals, by key, on the board, and drop views that are gone."""
        fresh = self._board.read(packed)
        for kind in self._kinds:
            if kind.prefix in self._ledgers:
                self._admit(kind.prefix, fresh[kind.prefix], kind.in_channel_table)
        labels = {prefix: ledger.labels for prefix, ledger in self._ledgers.items()}
        remainders = self._register.remainders(self._kinds)
        self._board.publish(fresh, labels, remainders, gone)

    def _admit(self, prefix: str, names: Iterable[str], in_channel_table: bool) -> None:
        """Give labels to the views of one kind that are new."""
        # A view in `other` stays there while the process lives, even if the channel
        # table changes: no counter that is exported may fall.
        known = self._board.names(prefix)
        new = sorted({name for name in names if name not in known})
        ledger = self._ledgers[prefix]
        if in_channel_table:
            table = self._board.snapshot.table
            ledger.admit(new, lambda name: table.of(name).label)
        else:
            ledger.admit(new)

    def _mark_incidents(self, clock_ms: int) -> None:
        """Mark incidents that taps may have caused, by the newest totals on the board.

        Args:
            clock_ms: T of the batch, Unix ms: the taps' totals include all earlier
                records.
        """
        snapshot = self._board.snapshot
        settings = snapshot.observer

        def coincides(
            views: Mapping[str, ViewTotals], name: str, incident: Incident
        ) -> bool:
            return coincides_with_hole(
                views[name].observers if name in views else (),
                snapshot.taps,
                incident.since_ms - settings.tap_hole_ms,
                incident.found_ms,
                clock_ms,
                settings,
            )

        since_ms = self._clock_ms - _HOLES_KNOWN_AFTER_MS
        for prefix, store in self._stores.items():
            views = snapshot.views[prefix].totals
            store.findings.mark_incidents(partial(coincides, views), since_ms)
        self._clock_ms = clock_ms
