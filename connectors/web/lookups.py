"""What is not in the snapshot: incidents and minutes, of which some are in files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import Any

from connectors.history.errors import DamagedHistory, NoHistory
from connectors.web.refusals import (
    FiguresUnread,
    HistoryBusy,
    HistoryUnreadable,
    NoRecord,
)
from connectors.web.sources import Sources
from connectors.web.trends import Trend, recent_trend
from sds_core.observer.figure_table import FigureTable
from sds_core.observer.incidents import ChannelIncident, IncidentQuery
from sds_core.observer.snapshot import Snapshot

_AT_ONCE = 2
"""A question to the files takes a processor and some ten megabytes while it lasts."""

_PATIENCE_S = 8.0
"""Less than what an open page waits for its answer."""


class Lookups:
    """Asks the sources for what may be in files, for few requests at a time.

    Args:
        sources: Who is asked.
        patience_s: How long a request waits for its turn, in seconds.
    """

    def __init__(self, sources: Sources, patience_s: float = _PATIENCE_S) -> None:
        self._sources = sources
        self._patience_s = patience_s
        self._turns = BoundedSemaphore(_AT_ONCE)

    def incidents(self, query: IncidentQuery) -> Sequence[ChannelIncident]:
        """Incidents, found last first.

        Raises:
            HistoryBusy: Too many ask.
            HistoryUnreadable: There is no history, or it is damaged.
        """
        with self._turn():
            return self._sources.find_incidents(query)

    def trend(
        self, table: FigureTable[Any], snapshot: Snapshot, channel: str, hours: int
    ) -> Trend:
        """Growth of a channel's figures in the last hours.

        Args:
            table: The figures of channels.
            snapshot: Knows the channel.
            channel: Its id.
            hours: A key of `connectors.web.trends.HOURS`.

        Raises:
            HistoryBusy: Too many ask.
            HistoryUnreadable: There is no history, or it is damaged.
            NoRecord: There is no time yet to look back from.
        """
        if not snapshot.clock_ms:
            raise NoRecord
        with self._turn():
            return recent_trend(
                table,
                self._sources.find_minutes,
                channel,
                first_event_ms=snapshot.channels[channel].first_event_ms or 0,
                clock_ms=snapshot.clock_ms,
                hours=hours,
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
    """The newest snapshot.

    Raises:
        FiguresUnread: It has no figures yet.
    """
    snapshot = sources.current()
    if not snapshot.primed:
        raise FiguresUnread
    return snapshot
