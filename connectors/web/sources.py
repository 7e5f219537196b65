"""The functions from which pages and API read their data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable

from connectors.history.schema import Row
from connectors.prometheus.firing import NOT_ASKED, FiringAlerts
from sds_core.observer.incidents import ChannelIncident, IncidentQuery
from sds_core.observer.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Sources:
    """Functions that return the data of pages and API.

    Attributes:
        current: Returns the newest snapshot; called in the server's threads. Before the
            job has started, the snapshot is not primed.
        find_incidents: Returns incidents, found last first; called in the server's
            threads. Raises `NoHistory` and `DamagedHistory`.
        find_minutes: Takes a channel id, a begin and an end, Unix ms of event time, and
            names of fields. Returns the rows of
            `connectors.history.schema.CHANNEL_MINUTES` that began in [begin, end), in
            order, with at least these fields and their minute. Called and raises like
            `find_incidents`.
        runbooks: Directory of the files `<Alert>.md`.
        firing: Returns the alerts that fire; called like `current`.
    """

    current: Callable[[], Snapshot]
    find_incidents: Callable[[IncidentQuery], Sequence[ChannelIncident]]
    find_minutes: Callable[[str, int, int, Collection[str]], Sequence[Row]]
    runbooks: Traversable
    firing: Callable[[], FiringAlerts] = lambda: NOT_ASKED
