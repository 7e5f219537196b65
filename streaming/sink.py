"""Where the rows of the stateful operator go: the board, and the outlets of events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from pyspark.sql import DataFrame, Row

from connectors.kafka.dead_letter import DeadLetterWriter
from sds_core.observer.blindness import coincides_with_hole
from sds_core.observer.incidents import Incident
from sds_core.observer.kinds import AnyProtocol, Outlet
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.observer.settings import DEFAULTS
from streaming.board import Board
from streaming.details import DetailStore
from streaming.incidents import IncidentStore
from streaming.labels import LabelLedger
from streaming.outbox import Outbox

_HOLES_SHOWN_MS = 60_000
"""After so much event time a tap's totals show every hole that had begun: one in its
numbers shows at the next record, or a silence does, and counts 15 s later."""

_Leaving = dict[Outlet, dict[str, list[Any]]]
"""Events that leave the job in one batch, by outlet and name of the view."""


class Sink:
    """Writes each batch's output; writing it twice changes nothing.

    Args:
        board: Gets the totals.
        ledgers: Get the names of views, by the prefix of their kind; see
            `labels.open_ledgers`.
        dead_letters: Gets the undecodable records; None to only count them.
        incidents: Gets every incident.
        outbox: Gets every minute of every channel; None without a history.
        details: Gets definite acknowledgements; None without ``--report-detail``.
        protocols: Registered protocols.
    """

    def __init__(
        self,
        board: Board,
        ledgers: Mapping[str, LabelLedger],
        dead_letters: DeadLetterWriter | None,
        incidents: IncidentStore,
        outbox: Outbox | None,
        details: DetailStore | None,
        protocols: Iterable[AnyProtocol] = PROTOCOLS,
    ) -> None:
        self._board = board
        self._ledgers = ledgers
        self._dead_letters = dead_letters
        self._incidents = incidents
        self._outbox = outbox
        self._details = details
        self._kinds = kinds_of(protocols)
        self._decoders = {
            kind.prefix: msgspec.msgpack.Decoder(kind.events_type)
            for kind in self._kinds
        }
        # Admission time T of the newest batch; 0 before the first of this process.
        self._clock_ms = 0

    def __call__(self, output: DataFrame, batch_id: int) -> None:
        """Spark's ``foreachBatch`` function."""
        # One action over the whole output: Spark fails a batch half consumed.
        self.take(output.collect())

    def take(self, rows: Sequence[Row]) -> None:
        """Write the events, then publish the totals.

        Args:
            rows: All rows of a batch, see `fold.OUTPUT_SCHEMA`.
        """
        clock_ms = self._clock_ms
        totals: dict[str, bytes] = {}
        leaving: _Leaving = {outlet: {} for outlet in Outlet}
        for row in rows:
            if row.clock_ms is not None:
                clock_ms = row.clock_ms
                continue
            totals[row.key] = bytes(row.totals)
            self._sort(row.key, bytes(row.events), leaving)
        self._write(leaving)
        self.show(totals)
        self._mark_incidents(clock_ms)

    def _sort(self, key: str, packed: bytes, leaving: _Leaving) -> None:
        """Add the events of one view to their outlets."""
        kind, name = self._kinds.split(key)
        for event in self._decoders[kind.prefix].decode(packed):
            outlet = kind.outlets[type(event)]
            leaving[outlet].setdefault(name, []).append(event)

    def _write(self, leaving: _Leaving) -> None:
        letters = [
            letter for some in leaving[Outlet.DEAD_LETTERS].values() for letter in some
        ]
        if letters and self._dead_letters is not None:
            self._dead_letters.write(letters)
        self._incidents.put(leaving[Outlet.INCIDENTS])
        if self._outbox is not None:
            self._outbox.put_minutes(leaving[Outlet.MINUTES])
        if self._details is not None:
            self._details.put(leaving[Outlet.DETAILS])

    def show(self, packed: dict[str, bytes]) -> None:
        """Put packed totals, by key, on the board."""
        names: dict[str, list[str]] = {prefix: [] for prefix in self._ledgers}
        for key in packed:
            kind, name = self._kinds.split(key)
            if kind.prefix in names:
                names[kind.prefix].append(name)
        for kind in self._kinds:
            if kind.prefix in names:
                self._admit(kind.prefix, names[kind.prefix], kind.in_channel_table)
        labels = {prefix: ledger.labels for prefix, ledger in self._ledgers.items()}
        self._board.set_totals(packed, labels)

    def _admit(self, prefix: str, names: Iterable[str], in_channel_table: bool) -> None:
        """Give labels to the views of one kind that are new."""
        # A view in `other` stays there while the process lives, even if the channel
        # table changes: no counter that is exported may fall.
        new = sorted(set(names) - self._board.names(prefix))
        ledger = self._ledgers[prefix]
        if in_channel_table:
            table = self._board.snapshot.table
            ledger.admit(new, lambda name: table.of(name).label)
        else:
            ledger.admit(new)

    def _mark_incidents(self, clock_ms: int) -> None:
        """Mark incidents that the taps may have caused, by the board's newest totals.

        Args:
            clock_ms: T: up to there the taps' totals know of every record.
        """
        snapshot = self._board.snapshot
        views = [
            one.totals
            for one in snapshot.views.values()
            if Outlet.INCIDENTS in one.kind.outlets.values()
        ]

        def coincides(name: str, incident: Incident) -> bool:
            observers = [o for one in views if name in one for o in one[name].observers]
            return coincides_with_hole(
                observers,
                snapshot.taps,
                incident.since_ms - DEFAULTS.tap_hole_ms,
                incident.found_ms,
                clock_ms,
            )

        self._incidents.mark(coincides, self._clock_ms - _HOLES_SHOWN_MS)
        self._clock_ms = clock_ms
