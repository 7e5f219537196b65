"""Commits the stateful operator's rows, first to the ledger, then to the board."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
from pyspark.sql import DataFrame, Row

from connectors.kafka.dead_letter import DeadLetterWriter
from sds_core.observer import blob
from sds_core.observer.blindness import coincides_with_hole
from sds_core.observer.forgotten import Forgotten
from sds_core.observer.incidents import GroupIncident, Incident
from sds_core.observer.kinds import AnyKind, AnyProtocol, Outlet
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.observer.snapshot import OTHER, Views
from sds_core.observer.tap_kind import TAPS
from sds_core.observer.view_totals import ViewTotals
from streaming.board import Board, FollowingViews
from streaming.failure import hand_over
from streaming.ledger.stores import Stores
from streaming.ledger.view_register import ForgottenView

_LATE_MS = 30_000
"""How late the records can be that reveal a capture gap, event time, ms."""


class _Output(NamedTuple):
    """The rows of a batch, divided by their use.

    Attributes:
        clock_ms: Admission time T, Unix ms.
        totals: Encoded totals of each view, by the view's key.
        gone: Keys of views that the batch forgot, and that did not return in the batch.
        leaving: Prefix of a kind -> outlet -> name of a view or group -> events.
        ended: Kind, name and last event of each view that the batch forgot, even if the
            view returned in the batch.
        past: Prefix of a kind -> name of a view that the batch forgot -> number of its
            minutes in `leaving` that belong to the forgotten view.
    """

    clock_ms: int
    totals: dict[str, bytes]
    gone: list[str]
    leaving: dict[str, dict[Outlet, dict[str, list[Any]]]]
    ended: list[tuple[AnyKind, str, Forgotten]]
    past: dict[str, dict[str, int]]


class Sink:
    """Writes the output of each batch; if Spark repeats a batch, nothing changes.

    Args:
        board: Receives the totals. At first, its snapshot must have the admission time
            T of the newest committed batch.
        dead_letters: Receives the undecodable records; None to only count them.
        position_of: Returns, for the number of a planned batch, a text with all values
            that determine the batch's rows.
        sync: Makes Spark's writes durable. The sink calls it before the ledger's
            commit. Otherwise, after a power failure, Spark could lack batches that the
            ledger contains.

    Raises:
        ValueError: `stores` has no store for a kind with findings.
    """

    def __init__(
        self,
        board: Board,
        stores: Stores,
        dead_letters: DeadLetterWriter | None,
        position_of: Callable[[int], str],
        protocols: Iterable[AnyProtocol] = PROTOCOLS,
        sync: Callable[[], None] = lambda: None,
    ) -> None:
        self._board = board
        self._sync = sync
        self._stores = stores
        self._dead_letters = dead_letters
        self._position_of = position_of
        self._kinds = kinds_of(protocols)
        for kind in self._kinds:
            if kind.has_findings and kind.prefix not in stores.by_kind:
                message = f"no store is given for the findings of kind {kind.prefix}"
                raise ValueError(message)
        self._decoders = {
            kind.prefix: msgspec.msgpack.Decoder(kind.events_type)
            for kind in self._kinds
        }
        # Admission time T of the newest batch.
        self._clock_ms = board.snapshot.clock_ms

    @hand_over
    def __call__(self, output: DataFrame, batch_id: int) -> None:
        """Spark's ``foreachBatch`` function."""
        # A single action reads the whole output, because Spark fails a batch that is
        # only partly consumed.
        rows = output.collect()
        # At this point, Spark has written the state of this batch. Spark has also
        # written its commit of the previous batch.
        self._sync()
        self.take(rows, batch_id)

    def take(self, rows: Sequence[Row], batch_id: int) -> None:
        """Commit the rows of one batch; they have the schema `fold.OUTPUT_SCHEMA`.

        - First, undecodable records are copied to the dead-letter topic.
        - Then one transaction of the ledger stores the rows of all other kinds, and
          marks incidents that coincide with a capture gap. The capture gaps are taken
          from the totals of the taps, as they are after this batch.
        - Then the board gets the totals.

        If the process ends before Spark records its own commit of the batch, Spark
        repeats the batch. A repetition does no harm. Dead letters carry the offset of
        their original record, the ledger recognises the batch, and the board gets
        absolute totals, not increments.
        """
        output = self._sorted(rows)
        position = self._position_of(batch_id)
        if not self._stores.ledger.has(batch_id, position):
            self._write_dead_letters(output)
        fresh = self._board.read(output.totals)
        with self._stores.ledger.batch(batch_id, position) as is_new:
            new = [key for key in output.totals if self._is_new(key)]
            self._stores.register.update_keys(new, output.gone)
            if is_new:
                self._store(output)
            following = self._following(fresh, output.gone)
            if is_new:
                self._mark_incidents(following.views, output.clock_ms)
        self._clock_ms = output.clock_ms
        self._board.publish(following)

    def prime(self, packed: dict[str, bytes]) -> None:
        """Publish all views of a checkpoint.

        `packed` has the encoded totals of each view, by the view's key.
        """
        self._board.publish(self._following(self._board.read(packed), ()))
        for prefix, labels in self._stores.labels.items():
            labels.vacate(self._board.names(prefix))
        self._stores.register.set_keys(
            key for key in packed if self._kinds.split(key)[0].remains
        )

    def _sorted(self, rows: Iterable[Row]) -> _Output:
        clock_ms = self._clock_ms
        output = _Output(
            clock_ms,
            {},
            [],
            {kind.prefix: {outlet: {} for outlet in Outlet} for kind in self._kinds},
            [],
            {kind.prefix: {} for kind in self._kinds},
        )
        for row in rows:
            if row.clock_ms is not None:
                clock_ms = row.clock_ms
                continue
            if row.totals is None:
                output.gone.append(row.key)
            else:
                output.totals[row.key] = bytes(row.totals)
            kind, name = self._kinds.split(row.key)
            for event in self._decoders[kind.prefix].decode(bytes(row.events)):
                _sort(event, kind, name, output)
        return output._replace(clock_ms=clock_ms)

    def _store(self, output: _Output) -> None:
        stores = self._stores
        for prefix, store in stores.by_kind.items():
            kind, leaving = self._kinds.of(prefix), output.leaving[prefix]
            store.findings.record_incidents(leaving[Outlet.INCIDENTS])
            minutes: Mapping[str, Sequence[Any]] = leaving[Outlet.MINUTES]
            if kind.grouping is not None:
                minutes = stores.groups.join(kind, minutes)
            past = output.past[prefix]
            for name in past:
                store.recent.forget(name)
            store.recent.record(
                {
                    name: present
                    for name, some in minutes.items()
                    if (present := some[past.get(name, 0) :])
                }
            )
            # `record_minutes` adds per-minute aggregates to the outbox. Without a
            # history, nothing would delete them from it.
            if stores.with_history:
                store.findings.record_minutes(minutes)
        if stores.details is not None:
            for kind, name, _ in output.ended:
                stores.details.forget(kind.prefix, name)
            for prefix, leaving in output.leaving.items():
                stores.details.record(prefix, leaving[Outlet.DETAILS])
        stores.register.add_forgotten(
            ForgottenView(
                kind,
                blob.unpack_totals(event.totals, kind.totals),
                in_other=name == OTHER or name not in stores.labels[kind.prefix].labels,
            )
            for kind, name, event in output.ended
        )

    def _is_new(self, key: str) -> bool:
        kind, name = self._kinds.split(key)
        return kind.remains is not None and name not in self._board.names(kind.prefix)

    def _write_dead_letters(self, output: _Output) -> None:
        letters = [
            letter
            for by_outlet in output.leaving.values()
            for some in by_outlet[Outlet.DEAD_LETTERS].values()
            for letter in some
        ]
        if letters and self._dead_letters is not None:
            unwritten = self._dead_letters.write(letters)
            before = self._board.snapshot.job.dead_letters_unwritten
            self._board.set_job(dead_letters_unwritten=before + unwritten)

    def _following(
        self, fresh: Mapping[str, Mapping[str, Any]], gone: Iterable[str]
    ) -> FollowingViews:
        table = self._board.snapshot.table
        for prefix, ledger in self._stores.labels.items():
            # If a view is counted in the metric series `other`, it stays in this series
            # until the process ends, even if the channel table changes. Otherwise, the
            # counters of `other` would decrease.
            known = self._board.names(prefix)
            new = sorted({name for name in fresh[prefix] if name not in known})
            if self._kinds.of(prefix).in_channel_table:
                ledger.admit(new, lambda name: table.of(name).label)
            else:
                ledger.admit(new)
        labels = {prefix: one.labels for prefix, one in self._stores.labels.items()}
        remainders = self._stores.register.remainders(self._kinds)
        return self._board.following(fresh, labels, remainders, gone)

    def _mark_incidents(self, views: Mapping[str, Views[Any]], clock_ms: int) -> None:
        settings, taps = self._board.snapshot.observer, views[TAPS.prefix].totals

        def coincides(
            totals: Mapping[str, ViewTotals], name: str, incident: Incident
        ) -> bool:
            return coincides_with_hole(
                totals[name].observers if name in totals else (),
                taps,
                incident.since_ms - settings.tap_hole_ms,
                incident.found_ms,
                clock_ms,
                settings,
            )

        # A tap may be silent for `tap_hole_ms` before a record shows that numbers are
        # missing, and the numbers count as missing after the same time again.
        since_ms = self._clock_ms - 2 * settings.tap_hole_ms - _LATE_MS
        for prefix, store in self._stores.by_kind.items():
            totals = views[prefix].totals
            store.findings.mark_incidents(partial(coincides, totals), since_ms)


def _sort(event: Any, kind: AnyKind, name: str, output: _Output) -> None:
    by_outlet = output.leaving[kind.prefix]
    outlet = kind.outlets[type(event)]
    if outlet is Outlet.FORGOTTEN:
        output.ended.append((kind, name, event))
        # Details are stored by the view's name. If a new view gets this name, it must
        # not get the details of the forgotten view.
        by_outlet[Outlet.DETAILS].pop(name, None)
        # The history needs the minutes of the forgotten view, too. The figures of the
        # last hour are those of the new view.
        past = len(by_outlet[Outlet.MINUTES].get(name, ()))
        output.past[kind.prefix][name] = past
    elif kind.grouping is None or outlet is Outlet.MINUTES:
        by_outlet[outlet].setdefault(name, []).append(event)
    else:
        group = kind.grouping.name_of(event)
        finding = event.incident if isinstance(event, GroupIncident) else event
        by_outlet[outlet].setdefault(group, []).append(finding)
