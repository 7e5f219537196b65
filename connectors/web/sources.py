"""The functions from which pages and API read their data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Protocol

from connectors.history.schema import Row
from connectors.prometheus.firing import NOT_ASKED, FiringAlerts
from sds_core.observer.growth import Recorded
from sds_core.observer.incidents import ChannelIncident, IncidentQuery
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.shown_verdicts import ShownVerdict
from sds_core.observer.snapshot import Snapshot

FindRecent = Callable[[int], Mapping[str, Recorded]]
FindSteps = Callable[[Collection[str], int, int, int], Mapping[str, Sequence[Recorded]]]

FindVerdicts = Callable[
    [Collection[str], int, int], Mapping[str, Sequence[ShownVerdict]]
]


def _no_recent(at_ms: int) -> Mapping[str, Recorded]:
    return {}


def _no_steps(
    channels: Collection[str], since_ms: int, until_ms: int, step_ms: int
) -> Mapping[str, Sequence[Recorded]]:
    return {}


def _no_verdicts(
    channels: Collection[str], since_ms: int, until_ms: int
) -> Mapping[str, Sequence[ShownVerdict]]:
    return {}


class StoredViews(Protocol):
    """What is stored of the views of one kind; methods are those of `Sources`."""

    def find_incidents(self, query: IncidentQuery) -> Sequence[ChannelIncident]:
        """See `Sources.find_incidents`."""

    def find_minutes(
        self, channel: str, since_ms: int, until_ms: int, fields: Collection[str]
    ) -> Sequence[Row]:
        """See `Sources.find_minutes`."""

    def find_recent(self, at_ms: int) -> Mapping[str, Recorded]:
        """See `Sources.find_recent`."""

    def find_steps(
        self, channels: Collection[str], since_ms: int, until_ms: int, step_ms: int
    ) -> Mapping[str, Sequence[Recorded]]:
        """See `Sources.find_steps`."""

    def find_verdicts(
        self, channels: Collection[str], since_ms: int, until_ms: int
    ) -> Mapping[str, Sequence[ShownVerdict]]:
        """See `Sources.find_verdicts`."""

    def verdicts_until_ms(self) -> int | None:
        """See `Sources.verdicts_until_ms`."""


def _no_others() -> Mapping[str, StoredViews]:
    return MappingProxyType({})


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
        find_recent: Takes a moment of the last hour, Unix ms of event time. Returns the
            figures of each channel, `FigureTable.counted`, at the end of the last
            minute that ended at the moment or before; of a channel that is known since
            a later start only, those of then. Called in the server's threads.
        find_steps: Takes channel ids, two moments of the last hour, and the length of a
            step, ms. Returns the figures of each channel at the end of the last minute
            in each step between the moments, in order. Steps without a minute are left
            out: nothing changed.
            Called in the server's threads.
        firing: Returns the alerts that fire; called like `current`.
        others: Returns what is stored of kinds of view other than channels, by prefix;
            empty before the job has started.
        find_verdicts: Takes channel ids and two moments, Unix ms of wall time. Returns
            the rows that tell which verdicts were shown between them, of each channel
            in order; see `sds_core.observer.shown_verdicts.spans_of`. Called like
            `find_incidents`; rows of the last 24 hours are found without reading the
            history's files.
        verdicts_until_ms: Returns the wall time up to which it is known what was shown,
            Unix ms; None if nothing was shown yet. Called like `current`.
    """

    current: Callable[[], Snapshot]
    find_incidents: Callable[[IncidentQuery], Sequence[ChannelIncident]]
    find_minutes: Callable[[str, int, int, Collection[str]], Sequence[Row]]
    runbooks: Traversable
    find_recent: FindRecent = _no_recent
    find_steps: FindSteps = _no_steps
    firing: Callable[[], FiringAlerts] = lambda: NOT_ASKED
    others: Callable[[], Mapping[str, StoredViews]] = _no_others
    find_verdicts: FindVerdicts = _no_verdicts
    verdicts_until_ms: Callable[[], int | None] = lambda: None

    def of(self, prefix: str) -> StoredViews | None:
        """Return what is stored of the kind with a prefix; None if nothing is."""
        return self if prefix == CHANNELS.prefix else self.others().get(prefix)
