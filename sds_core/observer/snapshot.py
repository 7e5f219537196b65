"""All figures at one moment, which the exporter, the pages and the report show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from sds_core.observer.channel_table import ChannelTable
from sds_core.observer.clock import ClockFigures, ClockLevel
from sds_core.observer.dead_letter_view import DEAD_LETTERS, DeadLetterTotals
from sds_core.observer.excused import ExcusedFindings
from sds_core.observer.figure_table import FigureTable
from sds_core.observer.forgotten import Remainder
from sds_core.observer.freshness import Arrivals, Freshness, MissingTopic
from sds_core.observer.histogram import Histogram
from sds_core.observer.kinds import Kind
from sds_core.observer.settings import DEFAULTS, ObserverSettings
from sds_core.observer.summing import sum_totals
from sds_core.observer.tap_kind import TAPS
from sds_core.observer.tap_view import TapTotals
from sds_core.observer.verdict import Verdict

UNKNOWN_CHANNEL = ""
"""Key in `MirrorAudit` for missing messages whose channel the audit does not know."""

BEHIND_SECONDS = 60
"""If the event-time lag exceeds this number of seconds, the monitor lags."""

OTHER = "other"
"""Metric label for the sum of all views of a kind that have no label of their own.

A view that has this word as its name gets no label of its own. Otherwise, its series
and those of the sum would have the same label, and Prometheus refuses duplicate series.
"""

_NOTHING: Mapping[str, Any] = MappingProxyType({})

Totals = TypeVar("Totals")


class MirrorAudit(NamedTuple):
    """Messages that the newest audit did not find in the mirror (docs/figures.md, 8).

    Attributes:
        newest_missing_ms: For each channel with missing messages, the time that the
            sender gave to the newest of them, Unix ms.
    """

    newest_missing_ms: Mapping[str, int] = MappingProxyType({})

    def missing_ms(self, channel: str) -> int | None:
        """Return the time of a channel's newest missing message, Unix ms.

        If the channel of a missing message is unknown, the message counts for every
        channel. If no missing message counts for the channel, the result is None.
        """
        known = self.newest_missing_ms
        found = [known[one] for one in (channel, UNKNOWN_CHANNEL) if one in known]
        return max(found, default=None)


NO_AUDIT = MirrorAudit()
"""The findings if no audit exists, or if the newest audit found no missing message."""


@dataclass(frozen=True, slots=True)
class Views(Generic[Totals]):
    """All views of one kind.

    Attributes:
        labels: Names of the views with a metric label of their own, in order of
            assignment. All other views are exported together as ``other``. A view that
            leaves `totals` keeps its label.
        remainder: Sums over forgotten views; None if no view was forgotten.
        muted: Names of the views that are muted now.
        excused: For each view that has findings that do not count, these findings by
            kind. Other views are omitted.
    """

    kind: Kind[Any, Any, Any]
    totals: Mapping[str, Totals] = field(default_factory=lambda: _NOTHING)
    labels: tuple[str, ...] = ()
    remainder: Remainder[Totals] | None = None
    muted: frozenset[str] = frozenset()
    excused: Mapping[str, Sequence[ExcusedFindings]] = field(
        default_factory=lambda: _NOTHING
    )

    @property
    def sum(self) -> Totals:
        """Figures of all views together, including forgotten views."""
        remainder = self.remainder
        forgotten = () if remainder is None else (remainder.totals,)
        found: Totals = self.figures.sum([*self.totals.values(), *forgotten])
        return found

    @property
    def figures(self) -> FigureTable[Any]:
        """The table of the views' figures; see `Kind.published`."""
        return self.kind.published

    @property
    def unlabelled(self) -> int:
        """Number of views without a metric label."""
        return len(self.totals.keys() - set(self.labels))

    @property
    def held_back(self) -> list[tuple[str, ExcusedFindings]]:
        """For each alert that is held back, the view's name and the excused findings.

        Alerts are in order of view names. Muted views are omitted, because they cause
        no alerts.
        """
        return [
            (name, one)
            for name, findings in sorted(self.excused.items())
            if name not in self.muted
            for one in findings
            if one.holds_back
        ]


@dataclass(frozen=True, slots=True)
class JobFigures:
    """The state of the job.

    The help texts of the metrics ``sds_monitor_*`` explain the counts that are not
    listed here.

    Attributes:
        running: Whether the streaming query runs.
        records: Number of Kafka records read since the checkpoint's first batch.
        records_withheld: Number of those `records_behind` that the query cannot read,
            because an open transaction has withheld them for a minute or longer.
        event_time_lag_seconds: Time of the topic's newest record minus the watermark;
            None before the first batch.
        error: Why the query failed, in one line; empty if the query did not fail.
        retrying: Whether a query that failed will be restarted.
        rules: How the code of the job's rules runs: `compiled` or `interpreted`.
        kafka: Time and age of Kafka's last answer.
        missing_topic: Name of the missing topic, and since when it is missing; None if
            the topic exists.
        arrivals: When the topic last received a record, and the idle time since then.
        reading_checkpoint: Whether the job is still reading from the checkpoint the
            figures of an earlier run.
    """

    running: bool = False
    records: int = 0
    records_lost: int = 0
    records_behind: int = 0
    records_withheld: int = 0
    event_time_lag_seconds: float | None = None
    batch_duration: Histogram = field(default_factory=Histogram)
    state_bytes: int = 0
    history_pending: int = 0
    history_stalled_seconds: float = 0.0
    restarts: int = 0
    stalls: int = 0
    error: str = ""
    retrying: bool = False
    version: str = ""
    rules: str = ""
    clock: ClockFigures = field(default_factory=ClockFigures)
    kafka: Freshness = field(default_factory=Freshness)
    missing_topic: MissingTopic | None = None
    arrivals: Arrivals = field(default_factory=Arrivals)
    reading_checkpoint: bool = False
    dead_letters_unwritten: int = 0

    @property
    def knows_topic(self) -> bool:
        """Whether Kafka answers and the topic exists."""
        return not self.kafka.is_stale and self.missing_topic is None

    @property
    def topic_missing_since_ms(self) -> int | None:
        """Wall time at which Kafka first reported that the topic is missing, Unix ms.

        None if the topic exists.
        """
        return None if self.missing_topic is None else self.missing_topic.since_ms


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All figures at one moment. A snapshot never changes; a new one replaces it.

    Attributes:
        primed: Whether the job has read the totals in the checkpoint. Also True after
            the job has found that the checkpoint has no totals.
        clock_ms: Watermark of the newest batch, Unix ms of event time.
        views: The views of all protocols, keyed by `Kind.prefix`, in the order in which
            the protocols are registered.
        tap_labels: The taps that have a metric label; see `Views.labels`.
        forgotten_taps: Counts of the forgotten taps that had no metric label; None if
            each forgotten tap had one.
        undecodable: Number of dead letters by reason.
        observer: Settings of the model, from the checkpoint.
        audit: Findings of the newest audit of the mirror.
    """

    primed: bool = False
    clock_ms: int = 0
    views: Mapping[str, Views[Any]] = field(default_factory=lambda: _NOTHING)
    taps: Mapping[str, TapTotals] = field(default_factory=lambda: MappingProxyType({}))
    tap_labels: tuple[str, ...] = ()
    forgotten_taps: TapTotals | None = None
    undecodable: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    job: JobFigures = field(default_factory=JobFigures)
    table: ChannelTable = field(default_factory=ChannelTable)
    observer: ObserverSettings = DEFAULTS
    audit: MirrorAudit = NO_AUDIT

    @property
    def behind(self) -> bool:
        """Whether the event-time lag is more than `BEHIND_SECONDS`."""
        lag = self.job.event_time_lag_seconds
        return lag is not None and lag > BEHIND_SECONDS

    @property
    def unwatched(self) -> str:
        """Why the verdicts are not current, in one word; empty if they are current."""
        if self.job.kafka.is_stale:
            return "no_answer"
        if self.job.missing_topic is not None:
            return "no_topic"
        if not (self.primed and self.job.running):
            return "stopped"
        return "behind" if self.behind else ""

    @property
    def nothing_read(self) -> bool:
        """Whether this job has not yet finished a batch with records."""
        return self.job.event_time_lag_seconds is None

    @property
    def warming_up(self) -> bool:
        """Whether every view still has the verdict `warming_up`, or no view exists yet.

        Muted views are ignored. If all views are muted or have ended, no verdict is
        expected, so the result is False.
        """
        verdicts = self._verdicts()
        if not verdicts:
            is_muted = any(views.muted for views in self.views.values())
            return not (is_muted or self.all_ended)
        return verdicts == {Verdict.WARMING_UP}

    @property
    def all_ended(self) -> bool:
        """Whether views existed, but all were forgotten."""
        views = self.views.values()
        return any(one.remainder is not None for one in views) and not any(
            one.totals for one in views
        )

    @property
    def ok(self) -> bool:
        """Whether the job has fresh figures and no view is failing or blind.

        Figures are fresh if Kafka answers, the topic exists, and the job runs, does not
        lag, and can read new records. At least one view must have a verdict other than
        `warming_up`, unless all views are muted or have ended. This machine's clock
        must not be wrong, because a wrong clock turns records into dead letters. Muted
        views are ignored.
        """
        return (
            self.primed
            and self.job.running
            and self.job.knows_topic
            and not self.nothing_read
            and not self.behind
            and not self.job.records_withheld
            and self.job.clock.level() is not ClockLevel.WRONG
            and not self.warming_up
            and self._verdicts().isdisjoint({Verdict.FAILING, Verdict.BLIND})
        )

    def _verdicts(self) -> set[Verdict]:
        return {
            totals.verdict
            for views in self.views.values()
            for name, totals in views.totals.items()
            if name not in views.muted
        }

    def as_of(self, monotonic_s: float) -> Snapshot:
        """Return the snapshot as it looks at a later time of the monotonic clock.

        While Kafka does not answer, the topic may have newer records. Therefore, the
        event-time lag increases by the time since Kafka's last answer.

        Args:
            monotonic_s: The later time, seconds.
        """
        kafka = self.job.kafka.as_of(monotonic_s)
        lag_s = self.job.event_time_lag_seconds
        if kafka.is_stale and lag_s is not None:
            lag_s += kafka.silent_s
        job = replace(
            self.job,
            kafka=kafka,
            arrivals=self.job.arrivals.as_of(monotonic_s),
            event_time_lag_seconds=lag_s,
        )
        return replace(self, job=job)

    def with_views(self, views: Mapping[str, Views[Any]]) -> Snapshot:
        """Return a copy with the job's views, which are keyed by `Kind.prefix`."""
        taps, shared = views[TAPS.prefix], {TAPS.prefix, DEAD_LETTERS.prefix}
        others = {prefix: one for prefix, one in views.items() if prefix not in shared}
        dead = views[DEAD_LETTERS.prefix].totals.values()
        remainder = taps.remainder
        return replace(
            self,
            views=MappingProxyType(others),
            taps=taps.totals,
            tap_labels=taps.labels,
            forgotten_taps=None if remainder is None else remainder.other,
            undecodable=sum_totals(DeadLetterTotals, dead).by_reason,
        )

    def with_table(self, table: ChannelTable, wall_ms: int) -> Snapshot:
        """Return a copy with a channel table.

        Views that the table mutes at the wall time `wall_ms`, Unix ms, are muted.
        """
        mutes = table.mutes_at(wall_ms)
        views = {
            prefix: replace(
                one,
                muted=frozenset(
                    name
                    for name in (one.totals if one.kind.in_channel_table else ())
                    if mutes and table.of(name).is_muted(wall_ms)
                ),
            )
            for prefix, one in self.views.items()
        }
        return replace(self, table=table, views=MappingProxyType(views))
