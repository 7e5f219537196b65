"""The functions through which pages and API read their data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from typing import NamedTuple, Protocol

from connectors.history.schema import Row
from connectors.prometheus.firing import FiringAlerts
from connectors.web import words
from connectors.web.refusals import NoTrace
from sds_core.observer.growth import Recorded
from sds_core.observer.incidents import ChannelIncident, IncidentQuery
from sds_core.observer.settings import ObserverSettings
from sds_core.observer.shown_verdicts import ShownVerdict
from sds_core.observer.snapshot import Snapshot
from sds_core.planning.plan import NO_PLAN, Plan, Plans
from sds_core.trace.trace import Trace


class StoredViews(Protocol):
    """Stored data of the views of one kind; threads of the server call the methods.

    Incidents, per-minute aggregates and verdicts may be in files of the history.
    Methods that read files of the history may raise `DamagedHistory` or `NoHistory` of
    `connectors.history.errors`.
    """

    def find_incidents(self, query: IncidentQuery) -> Sequence[ChannelIncident]:
        """Return incidents, newest first."""

    def find_minutes(
        self, channel: str, since_ms: int, until_ms: int, fields: Collection[str]
    ) -> Sequence[Row]:
        """Return a view's rows whose minutes begin in [since_ms, until_ms), in order.

        Times are Unix ms of event time. Each row has its minute and the given `fields`.
        """

    def find_recent(self, at_ms: int) -> Mapping[str, Recorded]:
        """Return the figures of each view at a time in the last hour.

        The figures have the fields in `FigureTable.counted`. They are from the end of
        the last minute before the event time `at_ms`, Unix ms. If the first known
        figures of a view are from a later minute, these figures are returned.
        """

    def find_steps(
        self, channels: Collection[str], since_ms: int, until_ms: int, step_ms: int
    ) -> Mapping[str, Sequence[Recorded]]:
        """Return the figures at the end of the last minute in each step, in order.

        A step in which nothing changed is missing. `since_ms` and `until_ms` are in the
        last hour, Unix ms of event time.
        """

    def find_verdicts(
        self, channels: Collection[str], since_ms: int, until_ms: int
    ) -> Mapping[str, Sequence[ShownVerdict]]:
        """Return each view's rows of shown verdicts in order, as input of `spans_of`.

        Times are Unix ms of wall time. Rows of the last 24 hours are found without
        reading the history's files.
        """

    def verdicts_until_ms(self) -> int | None:
        """Return the wall time, Unix ms, up to which verdicts are known, or None."""


class TraceQuestion(NamedTuple):
    """The message to trace.

    Attributes:
        prefix: Prefix of the kind of `channel`.
        channel: Name of the view that contains the message.
        message_id: Id of the message, or the Waku hash of a copy.
        since_ms: Approximate time at which the message appeared, Unix ms; None for the
            last 24 hours.
    """

    prefix: str
    channel: str
    message_id: str
    since_ms: int | None
    settings: ObserverSettings


def _no_trace(question: TraceQuestion) -> Trace:
    raise NoTrace


@dataclass(frozen=True, slots=True)
class Sources:
    """Functions that return data for pages and API; the server's threads call them.

    Attributes:
        current: Returns the newest snapshot, which is not primed before the job has
            started.
        stored: Returns the stored data by prefix of the kind; empty before the job has
            started.
        runbooks: Directory of the files `<Alert>.md`.
        firing: Returns the alerts that fire.
        plans: Returns the newest forecasts, by prefix of their kind.
        trace: Creates the trace of a message in some seconds, or raises a
            `connectors.web.refusals.Refusal`.
    """

    current: Callable[[], Snapshot]
    stored: Callable[[], Mapping[str, StoredViews]]
    runbooks: Traversable
    firing: Callable[[], FiringAlerts] = FiringAlerts
    plans: Callable[[], Plans] = dict
    trace: Callable[[TraceQuestion], Trace] = _no_trace

    def of(self, prefix: str) -> StoredViews | None:
        """Return the stored data of the kind with a prefix; None if no data exists."""
        return self.stored().get(prefix)

    def plan(self, prefix: str) -> Plan:
        """Return the newest forecasts of the kind with a prefix."""
        return self.plans().get(prefix, NO_PLAN)


def shown_until_ms(stored: StoredViews | None) -> int | None:
    """Return the end of the last minute whose shown verdicts are known, Unix ms."""
    known_ms = None if stored is None else stored.verdicts_until_ms()
    return None if known_ms is None else words.next_minute_ms(known_ms)
