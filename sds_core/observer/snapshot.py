"""All figures at one moment, for the exporter, the page and the report."""

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
"""Replaces the channel's name if the audit cannot identify a message's channel."""

BEHIND_SECONDS = 60
"""If the event-time lag is greater than this, the monitor counts as lagging."""

OTHER = "other"
"""Metric label for the sum of all views of a kind that have no label of their own. A
view with this name gets no label, because Prometheus refuses duplicate series.
"""

_NOTHING: Mapping[str, Any] = MappingProxyType({})

Totals = TypeVar("Totals")


class MirrorAudit(NamedTuple):
    """Messages that the newest audit did not find in the mirror (docs/figures.md, 8).

    Attributes:
        newest_missing_ms: For each channel, the sender's time of the newest message
            that the mirror lacks, Unix ms.
    """

    newest_missing_ms: Mapping[str, int] = MappingProxyType({})

    def missing_ms(self, channel: str) -> int | None:
        """Return the time of a channel's newest missing message, Unix ms.

        A missing message of an unknown channel counts for every channel. None if no
        message is missing.
        """
        known = self.newest_missing_ms
        found = [known[one] for one in (channel, UNKNOWN_CHANNEL) if one in known]
        return max(found, default=None)


NO_AUDIT = MirrorAudit()
"""No audit exists, or the audit found nothing missing."""


@dataclass(frozen=True, slots=True)
class Views(Generic[Totals]):
    """All views of one kind.

    Attributes:
        labels: Names of the views with a metric label of their own, in order of
            assignment. Other views are exported as ``other``. A view that leaves
            `totals` keeps its label.
        remainder: Sums over forgotten views; None if none was forgotten.
        muted: Names of the views that are muted now.
        excused: Findings that do not count, by view; only views with such findings.
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
        """View and findings for each suppressed alert, in order of view names.

        Muted views have no alerts.
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
    """The state of the job. The help texts of ``sds_monitor_*`` explain the counts.

    Attributes:
        running: Whether the streaming query runs.
        records: Kafka records read since the checkpoint's first batch.
        records_withheld: How many of the `records_behind` cannot be read, because they
            follow a long-open transaction.
        event_time_lag_seconds: Newest record time minus the watermark; None before the
            first batch.
        error: Why the query failed, in one line; empty if the query did not fail.
        retrying: Whether a query that failed will be restarted.
        rules: How the code of the job's rules runs: `compiled` or `interpreted`.
        kafka: Time and age of Kafka's last answer.
        missing_topic: Name of the topic if it no longer exists; otherwise None.
        arrivals: When the topic last received a record.
        reading_checkpoint: Whether the job is still reading the figures of an earlier
            run.
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
        """Whether the topic exists and its known state is fresh."""
        return not self.kafka.is_stale and self.missing_topic is None

    @property
    def topic_missing_since_ms(self) -> int | None:
        """Wall time at which Kafka first reported a missing topic, Unix ms, or None."""
        return None if self.missing_topic is None else self.missing_topic.since_ms


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All figures at one moment. A snapshot never changes; a new one replaces it.

    Attributes:
        primed: Whether the totals in the checkpoint have been read. True if the
            checkpoint has no totals.
        clock_ms: Watermark of the newest batch, Unix ms of event time.
        views: The views of all protocols, keyed by prefix, in order of registration.
        tap_labels: The taps that have a metric label; see `Views.labels`.
        undecodable: Dead letters by reason.
        observer: Settings of the model, from the checkpoint.
        audit: Findings of the newest audit of the mirror.
    """

    primed: bool = False
    clock_ms: int = 0
    views: Mapping[str, Views[Any]] = field(default_factory=lambda: _NOTHING)
    taps: Mapping[str, TapTotals] = field(default_factory=lambda: MappingProxyType({}))
    tap_labels: tuple[str, ...] = ()
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
        """Whether no view has a verdict yet, so nothing can be concluded.

        Muted views are ignored. If all views are muted or have ended, no verdict is
        expected.
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

        Figures are fresh if Kafka answers, and the job runs, does not lag, and can read
        new records. At least one view must have a verdict, unless all have ended. The
        clock must not be wrong, because a wrong clock turns records into dead letters.
        Muted views are ignored.
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
        """Return the snapshot at a later time of the monotonic clock, in seconds.

        While Kafka does not answer, the topic is assumed to grow, so the lag grows too.
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
        """Return the snapshot with the job's views, keyed by the kinds' prefixes."""
        taps, shared = views[TAPS.prefix], {TAPS.prefix, DEAD_LETTERS.prefix}
        others = {prefix: one for prefix, one in views.items() if prefix not in shared}
        dead = views[DEAD_LETTERS.prefix].totals.values()
        return replace(
            self,
            views=MappingProxyType(others),
            taps=taps.totals,
            tap_labels=taps.labels,
            undecodable=sum_totals(DeadLetterTotals, dead).by_reason,
        )

    def with_table(self, table: ChannelTable, wall_ms: int) -> Snapshot:
        """Return the snapshot with a channel table and its mutes at `wall_ms`."""
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
