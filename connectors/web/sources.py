"""The functions from which pages and API read their data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from typing import Protocol

from connectors.history.schema import Row
from connectors.prometheus.firing import NOT_ASKED, FiringAlerts
from connectors.web import words
from sds_core.observer.growth import Recorded
from sds_core.observer.incidents import ChannelIncident, IncidentQuery
from sds_core.observer.shown_verdicts import ShownVerdict
from sds_core.observer.snapshot import Snapshot


class StoredViews(Protocol):
    """What is stored of the views of one kind; called in the server's threads."""

    def find_incidents(self, query: IncidentQuery) -> Sequence[ChannelIncident]:
        """Return incidents, found last first.

        Raises:
            connectors.history.errors.DamagedHistory: A file of the history cannot be
                read.
            connectors.history.errors.NoHistory: The history does not exist.
        """

    def find_minutes(
        self, channel: str, since_ms: int, until_ms: int, fields: Collection[str]
    ) -> Sequence[Row]:
        """Return the minutes of a view that began in [since, until), in order.

        Args:
            channel: Name of the view.
            since_ms: Unix ms of event time.
            until_ms: Unix ms of event time.
            fields: Names of fields that each row must have, beside its minute.

        Raises:
            connectors.history.errors.DamagedHistory: See `find_incidents`.
            connectors.history.errors.NoHistory: See `find_incidents`.
        """

    def find_recent(self, at_ms: int) -> Mapping[str, Recorded]:
        """Return the figures of each view at a moment of the last hour.

        They are `FigureTable.counted` at the end of the last minute that ended at the
        moment or before; of a view that is known since a later start only, those of
        then.

        Args:
            at_ms: The moment, Unix ms of event time.
        """

    def find_steps(
        self, channels: Collection[str], since_ms: int, until_ms: int, step_ms: int
    ) -> Mapping[str, Sequence[Recorded]]:
        """Return the figures at the end of the last minute in each step, in order.

        Steps without a minute are left out: nothing changed.

        Args:
            channels: Names of views.
            since_ms: A moment of the last hour, Unix ms of event time.
            until_ms: Another one.
            step_ms: Length of a step.
        """

    def find_verdicts(
        self, channels: Collection[str], since_ms: int, until_ms: int
    ) -> Mapping[str, Sequence[ShownVerdict]]:
        """Return the rows that tell which verdicts were shown, of each view in order.

        Rows of the last 24 hours are found without reading the history's files; see
        `sds_core.observer.shown_verdicts.spans_of`.

        Args:
            channels: Names of views.
            since_ms: Unix ms of wall time.
            until_ms: Unix ms of wall time.

        Raises:
            connectors.history.errors.DamagedHistory: See `find_incidents`.
            connectors.history.errors.NoHistory: See `find_incidents`.
        """

    def verdicts_until_ms(self) -> int | None:
        """Return the wall time up to which it is known what was shown, Unix ms.

        None if nothing was shown yet.
        """


@dataclass(frozen=True, slots=True)
class Sources:
    """Functions that return the data of pages and API.

    Attributes:
        current: Returns the newest snapshot; called in the server's threads. Before the
            job has started, the snapshot is not primed.
        stored: Returns what is stored of each kind of view, by prefix; empty before the
            job has started.
        runbooks: Directory of the files `<Alert>.md`.
        firing: Returns the alerts that fire; called like `current`.
    """

    current: Callable[[], Snapshot]
    stored: Callable[[], Mapping[str, StoredViews]]
    runbooks: Traversable
    firing: Callable[[], FiringAlerts] = lambda: NOT_ASKED

    def of(self, prefix: str) -> StoredViews | None:
        """Return what is stored of the kind with a prefix; None if nothing is."""
        return self.stored().get(prefix)


def shown_until_ms(stored: StoredViews | None) -> int | None:
    """Return the end of the minute up to which it is known what was shown, Unix ms."""
    known_ms = None if stored is None else stored.verdicts_until_ms()
    return None if known_ms is None else words.next_minute_ms(known_ms)
