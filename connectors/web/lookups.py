"""Finds stored incidents, verdicts and per-minute aggregates.

They may be in files of the history.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import Any

from connectors.history.errors import DamagedHistory, NoHistory
from connectors.history.schema import Row
from connectors.web.refusals import (
    FiguresUnread,
    HistoryBusy,
    HistoryUnreadable,
    NoRecord,
)
from connectors.web.sources import Sources
from connectors.web.trends import Hours, Trend, recent_trend
from sds_core.observer.incidents import ChannelIncident, IncidentQuery
from sds_core.observer.shown_verdicts import Span, spans_of
from sds_core.observer.snapshot import Snapshot, Views
from sds_core.planning.measures import Measures

_CONCURRENT = 2
"""Maximum number of concurrent queries; each uses a core and tens of megabytes."""

_PATIENCE_S = 8.0
"""How long a query waits for its turn, s. The scripts of an open page wait longer for
an answer of the server, so they receive the error."""


class Lookups:
    """Queries the stored data, and limits the number of concurrent queries.

    A query waits up to `patience_s` seconds for its turn. Every method raises
    `HistoryBusy` if the query gets no turn in this time, and `HistoryUnreadable` if the
    history is missing or damaged. If nothing is stored for a kind of view, `trend`
    raises `NoRecord`, and the other methods return an empty result.
    """

    def __init__(self, sources: Sources, patience_s: float = _PATIENCE_S) -> None:
        self._sources = sources
        self._patience_s = patience_s
        self._turns = BoundedSemaphore(_CONCURRENT)

    def incidents(self, prefix: str, query: IncidentQuery) -> Sequence[ChannelIncident]:
        """Return incidents of one kind of view, newest first."""
        stored = self._sources.of(prefix)
        if stored is None:
            return ()
        with self._turn():
            return stored.find_incidents(query)

    def trend(
        self, snapshot: Snapshot, views: Views[Any], name: str, hours: Hours
    ) -> Trend:
        """Return the growth of a view's figures in the last `hours`.

        Raises:
            NoRecord: No record has been read yet, or nothing of this kind is stored.
        """
        stored = self._sources.of(views.kind.prefix)
        if not snapshot.clock_ms or stored is None:
            raise NoRecord
        with self._turn():
            return recent_trend(
                views.figures,
                stored.find_minutes,
                name,
                first_event_ms=views.totals[name].first_event_ms or 0,
                clock_ms=snapshot.clock_ms,
                hours=hours,
            )

    def verdicts(
        self, prefix: str, name: str, since_ms: int, until_ms: int
    ) -> list[Span]:
        """Return the verdicts that were shown for a view between two times.

        Times are wall time, Unix ms; `until_ms` is at most the time that
        `connectors.web.sources.shown_until_ms` returns.
        """
        stored = self._sources.of(prefix)
        if stored is None:
            return []
        with self._turn():
            rows = stored.find_verdicts([name], since_ms, until_ms)
        return spans_of(rows.get(name, ()), since_ms, until_ms)

    def hours(
        self,
        prefix: str,
        name: str,
        since_ms: int,
        until_ms: int,
        measures: Measures,
    ) -> Sequence[Row]:
        """Return the last counters and greatest gauges of each hour, oldest first.

        `measures` has the figures. For the rows and times, see
        `connectors.web.sources.StoredViews.find_hours`.
        """
        stored = self._sources.of(prefix)
        if stored is None:
            return []
        with self._turn():
            return stored.find_hours(
                name, since_ms, until_ms, measures.counters, measures.gauges
            )

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._turns.acquire(timeout=self._patience_s):
            raise HistoryBusy
        try:
            yield
        except (NoHistory, DamagedHistory) as error:
            raise HistoryUnreadable(str(error)) from error
        finally:
            self._turns.release()


def read_figures(sources: Sources) -> Snapshot:
    """Return the newest snapshot.

    Raises:
        FiguresUnread: The snapshot has no figures yet.
    """
    snapshot = sources.current()
    if not snapshot.primed:
        raise FiguresUnread
    return snapshot
