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
    """Reads stored data of the views of one kind; the server's threads call methods.

    Incidents, per-minute aggregates and verdicts may be in files of the history.
    Methods that read files of the history may raise `DamagedHistory` or `NoHistory` of
    `connectors.history.errors`.
    """

    def find_incidents(self, query: IncidentQuery) -> Sequence[ChannelIncident]:
        """Return incidents, newest first."""

    def find_minutes(
        self, channel: str, since_ms: int, until_ms: int, fields: Collection[str]
    ) -> Sequence[Row]:
        """Return a view's rows for the minutes begun in [since_ms, until_ms), in order.

        Times are Unix ms of event time. Each row has its minute and the given `fields`.
        """

    def find_hours(
        self,
        channel: str,
        since_ms: int,
        until_ms: int,
        counters: Collection[str],
        gauges: Sequence[str],
    ) -> Sequence[Row]:
        """Return a row per hour in which a view's figure changed, oldest first.

        Only minutes that began in [since_ms, until_ms) count, Unix ms of event time. In
        a row, ``minute`` is the hour's last such minute with a changed figure. Each
        counter has its last value in the hour, and each gauge its maximum.
        """

    def find_recent(self, at_ms: int) -> Mapping[str, Recorded]:
        """Return each view's figures as of `at_ms`, a time in the last hour.

        The time is event time, Unix ms. The figures have the fields in
        `FigureTable.counted`, and are from the last minute that ended by `at_ms`. If
        the first known figures of a view are later, they are returned instead.
        """

    def find_steps(
        self, channels: Collection[str], since_ms: int, until_ms: int, step_ms: int
    ) -> Mapping[str, Sequence[Recorded]]:
        """Return, for each view, the last figures of each step, oldest first.

        Steps have the length `step_ms`. A step in which no figure changed is omitted.
        `since_ms` and `until_ms` are in the last hour, Unix ms of event time.
        """

    def find_verdicts(
        self, channels: Collection[str], since_ms: int, until_ms: int
    ) -> Mapping[str, Sequence[ShownVerdict]]:
        """Return each view's rows of shown verdicts in order, as input of `spans_of`.

        Times are Unix ms of wall time. If `since_ms` is in the last 24 hours, no file
        of the history is read.
        """

    def verdicts_until_ms(self) -> int | None:
        """Return the wall time until which verdicts are known, Unix ms, or None."""


class TraceQuestion(NamedTuple):
    """The message to trace.

    Attributes:
        prefix: Prefix of the kind to which `channel` belongs.
        channel: Name of the view that contains the message.
        message_id: Id of the message, or the Waku hash of a copy.
        since_ms: Approximate time at which the message appeared, Unix ms; None to
            search the last 24 hours.
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
        current: Returns the newest snapshot, or one with a false `primed` before the
            job has started.
        stored: Returns the stored data of each kind, by the kind's prefix; empty before
            the job has started.
        runbooks: Directory of the runbooks, files `<Alert>.md`.
        firing: Returns the alerts that fire.
        plans: Returns the newest forecasts of each kind, by the kind's prefix.
        trace: Creates the trace of a message, which takes some seconds. It may raise a
            `connectors.web.refusals.Refusal`.
    """

    current: Callable[[], Snapshot]
    stored: Callable[[], Mapping[str, StoredViews]]
    runbooks: Traversable
    firing: Callable[[], FiringAlerts] = FiringAlerts
    plans: Callable[[], Plans] = dict
    trace: Callable[[TraceQuestion], Trace] = _no_trace

    def of(self, prefix: str) -> StoredViews | None:
        """Return the stored data of the kind with this prefix; None if none exists."""
        return self.stored().get(prefix)

    def plan(self, prefix: str) -> Plan:
        """Return the newest forecasts of the kind with this prefix."""
        return self.plans().get(prefix, NO_PLAN)


def shown_until_ms(stored: StoredViews | None) -> int | None:
    """Return when the last minute with known verdicts ends, Unix ms, or None."""
    known_ms = None if stored is None else stored.verdicts_until_ms()
    return None if known_ms is None else words.next_minute_ms(known_ms)
