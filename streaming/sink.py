"""Where the rows of the stateful operator go: the board, and what leaves but once."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from pyspark.sql import DataFrame, Row

from connectors.kafka.dead_letter import DeadLetterWriter
from sds_core.observer.blindness import coincides_with_hole
from sds_core.observer.dead_letter_view import DeadLetter
from sds_core.observer.incidents import Incident
from sds_core.observer.minutes import ChannelMinute
from sds_core.observer.sds.acknowledgements import DefiniteAcknowledgement
from sds_core.observer.sds.channel_view import ChannelEvent
from sds_core.observer.settings import DEFAULTS
from streaming.board import Board
from streaming.details import DetailStore
from streaming.failure import hand_over
from streaming.findings import Findings
from streaming.keys import KeyKind, split_key
from streaming.labels import LabelLedger

_HOLES_SHOWN_MS = 60_000
"""After so much event time a tap's totals show every hole that had begun: one in its
numbers shows at the next record, or a silence does, and counts 15 s later."""


class Sink:
    """Takes each batch's output; doing so twice changes nothing.

    Args:
        board: Gets the totals.
        labels: Gets the channels.
        tap_labels: Gets the taps.
        dead_letters: Gets the undecodable records; None where they only count.
        findings: Gets every incident, and minutes if there is a history.
        with_minutes: Whether there is a history, and so minutes are recorded.
        details: Gets definite acknowledgements; None without ``--report-detail``.
    """

    def __init__(
        self,
        board: Board,
        labels: LabelLedger,
        tap_labels: LabelLedger,
        dead_letters: DeadLetterWriter | None,
        findings: Findings,
        with_minutes: bool,
        details: DetailStore | None,
    ) -> None:
        self._board = board
        self._labels = labels
        self._tap_labels = tap_labels
        self._dead_letters = dead_letters
        self._findings = findings
        self._with_minutes = with_minutes
        self._details = details
        # Admission time T of the newest batch; 0 before the first of this process.
        self._clock_ms = 0

    @hand_over
    def __call__(self, output: DataFrame, batch_id: int) -> None:
        """Spark's ``foreachBatch`` function."""
        # One action over the whole output: Spark fails a batch half consumed.
        self.take(output.collect())

    def take(self, rows: Sequence[Row]) -> None:
        """Commit a batch.

        1. Copies of undecodable records go to the dead-letter topic.
        2. Incidents are stored, and queued for the history.
        3. Minutes are queued for the history.
        4. Definite acknowledgements are stored.
        5. Totals go to the board, which page, API and metrics read.
        6. Incidents that coincide with a tap hole are marked. This compares with the
           totals of the taps on the board, so it comes last.

        Spark repeats the batch if the process ends before the last step. That does no
        harm: dead letters carry the offset of their record, and a row replaces the row
        with the same key.
        """
        clock_ms = self._clock_ms
        totals: dict[str, bytes] = {}
        letters: list[DeadLetter] = []
        incidents: dict[str, list[Incident]] = {}
        minutes: dict[str, list[ChannelMinute]] = {}
        acknowledgements: dict[str, list[DefiniteAcknowledgement]] = {}
        for row in rows:
            kind, name = split_key(row.key)
            if kind is KeyKind.CLOCK:
                clock_ms = msgspec.msgpack.decode(row.events, type=int)
                continue
            totals[row.key] = bytes(row.totals)
            if kind is KeyKind.DEAD_LETTERS:
                letters += msgspec.msgpack.decode(row.events, type=list[DeadLetter])
            elif kind is KeyKind.CHANNEL:
                events = msgspec.msgpack.decode(row.events, type=list[ChannelEvent])
                incidents[name] = [e for e in events if isinstance(e, Incident)]
                minutes[name] = [e for e in events if isinstance(e, ChannelMinute)]
                acknowledgements[name] = [
                    e for e in events if isinstance(e, DefiniteAcknowledgement)
                ]
        if letters and self._dead_letters is not None:
            self._dead_letters.write(letters)  # 1
        self._findings.record_incidents(incidents)  # 2
        if self._with_minutes:
            self._findings.record_minutes(minutes)  # 3
        if self._details is not None:
            self._details.record(acknowledgements)  # 4
        self.show(totals)  # 5
        self._mark_incidents(clock_ms)  # 6

    def show(self, packed: dict[str, bytes]) -> None:
        """Put packed totals, by key, on the board."""
        known, table = self._board.snapshot.channels, self._board.snapshot.table
        names: dict[KeyKind, list[str]] = {kind: [] for kind in KeyKind}
        for kind, name in map(split_key, packed):
            names[kind].append(name)
        # One that is in `other` stays there while the process lives, whatever becomes
        # of the table: no counter that is exported may fall.
        new = sorted(set(names[KeyKind.CHANNEL]) - known.keys())
        self._labels.admit(new, lambda channel: table.of(channel).label)
        self._tap_labels.admit(sorted(names[KeyKind.TAP]))
        self._board.set_totals(packed, self._labels.labels, self._tap_labels.labels)

    def _mark_incidents(self, clock_ms: int) -> None:
        """Mark those that may be of the taps' making, by what is on the board now.

        Args:
            clock_ms: T: up to there the taps' totals know of every record.
        """
        snapshot = self._board.snapshot

        def coincides(channel: str, incident: Incident) -> bool:
            totals = snapshot.channels.get(channel)
            return totals is not None and coincides_with_hole(
                totals.observers,
                snapshot.taps,
                incident.since_ms - DEFAULTS.tap_hole_ms,
                incident.found_ms,
                clock_ms,
            )

        self._findings.mark_incidents(coincides, self._clock_ms - _HOLES_SHOWN_MS)
        self._clock_ms = clock_ms
