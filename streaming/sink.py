"""Commits the rows of the stateful operator: to the ledger, then to the board."""

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

_HOLES_KNOWN_AFTER_MS = 60_000
"""Event time from the start of a capture gap until the tap's totals contain the gap."""


class _Output(NamedTuple):
    """The rows of a batch, sorted.

    Attributes:
        clock_ms: Admission time T, Unix ms.
        totals: Encoded totals by key of a view.
        gone: Keys of views that are forgotten and have not returned.
        leaving: Prefix of a kind -> outlet -> name of a view or group -> events.
        ended: Views that were forgotten, whether or not they have returned.
    """

    clock_ms: int
    totals: dict[str, bytes]
    gone: list[str]
    leaving: dict[str, dict[Outlet, dict[str, list[Any]]]]
    ended: list[tuple[AnyKind, str, Forgotten]]


class Sink:
    """Writes each batch's output; writing it twice changes nothing.

    Args:
        board: Receives the totals. The board has the T of the newest committed batch.
        dead_letters: Receives the undecodable records; None to only count them.
        position_of: Returns all values that determine the rows of a planned batch.
        sync: Makes Spark's writes durable before the ledger's commit; otherwise a power
            failure could lose batches that the ledger has.

    Raises:
        ValueError: A kind has no store.
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
        # Spark has written the state of this batch, and the commit of the previous
        # batch.
        self._sync()
        self.take(rows, batch_id)

    def take(self, rows: Sequence[Row], batch_id: int) -> None:
        """Commit a batch of rows of `fold.OUTPUT_SCHEMA`.

        - First, undecodable records are copied to the dead-letter topic.
        - Then one transaction of the ledger stores the rows of all other kinds, and
          marks incidents that coincide with a capture gap. The taps' totals after this
          batch show the gaps.
        - Then the board gets the totals.

        If the process ends before Spark records its commit, Spark repeats the batch.
        A repetition does no harm: dead letters carry the offset of their record, the
        ledger knows the batch, and the board has absolute totals.
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
        """Publish the encoded totals of all views of a checkpoint, by key."""
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
            store.recent.record(minutes)
            # Without a history, nothing would delete per-minute aggregates from the
            # outbox.
            if stores.with_history:
                store.findings.record_minutes(minutes)
        for kind, name, _ in output.ended:
            if kind.prefix in stores.by_kind:
                stores.by_kind[kind.prefix].recent.forget(name)
            if stores.details is not None:
                stores.details.forget(kind.prefix, name)
        if stores.details is not None:
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
            # A view in `other` stays there while the process lives, even if the channel
            # table changes, because no exported counter may fall.
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

        since_ms = self._clock_ms - _HOLES_KNOWN_AFTER_MS
        for prefix, store in self._stores.by_kind.items():
            totals = views[prefix].totals
            store.findings.mark_incidents(partial(coincides, totals), since_ms)


def _sort(event: Any, kind: AnyKind, name: str, output: _Output) -> None:
    by_outlet = output.leaving[kind.prefix]
    outlet = kind.outlets[type(event)]
    if outlet is Outlet.FORGOTTEN:
        output.ended.append((kind, name, event))
        # Details are stored by name, so a returned view must not keep its old details.
        by_outlet[Outlet.DETAILS].pop(name, None)
    elif kind.grouping is None or outlet is Outlet.MINUTES:
        by_outlet[outlet].setdefault(name, []).append(event)
    else:
        group = kind.grouping.name_of(event)
        finding = event.incident if isinstance(event, GroupIncident) else event
        by_outlet[outlet].setdefault(group, []).append(finding)
