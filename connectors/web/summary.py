"""Computes the overall verdict on all views and the job, for the head of each page."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from connectors.web import words
from connectors.web.naming import called, path_of, runbook_href, view_href
from sds_core.observer.clock import ClockLevel
from sds_core.observer.snapshot import JobFigures, Snapshot, Views
from sds_core.observer.verdict import Verdict

_NAMES_IN_SENTENCE = 3

_RANK = {verdict: rank for rank, verdict in enumerate(words.VERDICTS)}


class Level(enum.StrEnum):
    """Severity of the overall verdict. The status page gives each severity a colour."""

    STARTING = "starting"
    FINE = "fine"
    WARNING = "warning"
    TROUBLE = "trouble"


Trouble = tuple[bool, int, str]
"""Sort key of a view: whether the view is muted, the rank of its verdict (0 is worst),
and its name (not its display name)."""


class Piece(NamedTuple):
    """A part of the summary's sentence; links to `href` unless `href` is empty."""

    text: str
    href: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """The overall verdict in one sentence.

    Attributes:
        level: Severity. `FINE` and `WARNING` occur only while `Snapshot.ok` is true.
        pieces: Parts of the sentence. For each kind and verdict, the sentence names at
            most three views. A problem links to its view or to a runbook.
    """

    level: Level
    pieces: Sequence[Piece]

    @property
    def sentence(self) -> str:
        """The sentence without links."""
        return "".join(piece.text for piece in self.pieces)


def summarise(snapshot: Snapshot) -> Summary:
    """Return the overall verdict on all views and the job.

    Muted views do not affect the verdict; the sentence only has their number.
    """
    job = snapshot.job
    if job.kafka.is_stale:
        return _trouble(words.no_answer(job.kafka), "SdsMonitorKafkaAway")
    if job.missing_topic is not None:
        return _trouble(words.topic_missing(job.missing_topic))
    if job.error:
        return _trouble(f"{stopped(job)}: {words.one_line(job.error)}")
    if not snapshot.primed:
        if job.kafka.is_awaited:
            return _plain(Level.STARTING, "Starting: waiting for Kafka")
        if job.reading_checkpoint:
            return _plain(Level.STARTING, "Starting: reading the checkpoint")
        return _plain(Level.STARTING, "Starting Spark, about 10 s")
    clock_is_wrong = job.clock.level() is ClockLevel.WRONG
    # A wrong clock can make all records dead letters. Then no verdict will ever follow,
    # so "Too early to say" would be wrong.
    if snapshot.nothing_read and not clock_is_wrong:
        if job.running and not snapshot.clock_ms:
            return _too_early("no record has been read yet")
        return _too_early("waiting for the first batch")
    if not job.running:
        return _trouble("The query has stopped")

    muted_count = sum(len(views.muted) for views in snapshot.views.values())
    muted = f"; {words.number(muted_count)} muted" if muted_count else ""
    troubles = [
        pieces
        for verdict in (Verdict.FAILING, Verdict.BLIND)
        for pieces in _views_with(snapshot, verdict)
    ]
    if snapshot.behind and job.event_time_lag_seconds is not None:
        lag = words.more_than(job.event_time_lag_seconds)
        troubles.append([Piece(f"behind by {lag}", runbook_href("SdsMonitorBehind"))])
    if job.records_withheld:
        count = words.number(job.records_withheld)
        text = f"{count} records wait until a transaction ends"
        troubles.append([Piece(text, runbook_href("SdsMonitorBehind"))])
    if clock_is_wrong:
        off = words.more_than(abs(job.clock.difference_ms) / 1000)
        text = f"the monitor's clock differs from other clocks by {off}"
        troubles.append([Piece(text, runbook_href("SdsMonitorClockWrong"))])
    if troubles:
        (text, href), *rest = _joined(troubles)
        first = Piece(text[0].upper() + text[1:], href)
        return Summary(Level.TROUBLE, [first, *rest, Piece(muted)])
    if snapshot.warming_up:
        some = [views for views in snapshot.views.values() if views.totals]
        if some:
            names = " and ".join(views.figures.names.one for views in some)
            return _too_early(f"every {names} is warming up")
        return _too_early("no channel has been seen yet")
    if snapshot.all_ended:
        return _plain(Level.FINE, "Nothing to watch: all channels have ended")
    if degraded := _views_with(snapshot, Verdict.DEGRADED):
        head = Piece("Nothing is failing; ")
        return Summary(Level.WARNING, [head, *_joined(degraded), Piece(muted)])
    return _plain(Level.FINE, f"Everything is fine{muted}")


def stopped(job: JobFigures) -> str:
    """Return the text that the query has stopped and, if it will, that it restarts."""
    return "The query has stopped" + (" and restarts" if job.retrying else "")


def _plain(level: Level, text: str, href: str = "") -> Summary:
    return Summary(level, [Piece(text, href)])


def _trouble(text: str, alert: str = "SdsMonitorStopped") -> Summary:
    return _plain(Level.TROUBLE, text, runbook_href(alert))


def _too_early(reason: str) -> Summary:
    return _plain(Level.STARTING, f"Too early to say: {reason}")


def names_by_trouble(views: Views[Any]) -> list[str]:
    """Return the names of views, sorted by verdict (worst first) and then by name.

    All muted views follow the unmuted views. Groups that only collect the traffic of
    unknown groups are last, muted or not.
    """
    grouping = views.kind.grouping
    leftovers = frozenset() if grouping is None else grouping.leftovers
    # Sort the names of each verdict separately. A single sort by `Trouble` would take
    # several times as long, and its tuples would make the garbage collector visit all
    # figures.
    names: dict[tuple[bool, Verdict], list[str]] = {
        (is_muted, verdict): [] for is_muted in (False, True) for verdict in _RANK
    }
    for name, totals in views.totals.items():
        if name not in leftovers:
            names[name in views.muted, totals.verdict].append(name)
    found = [name for some in names.values() for name in sorted(some)]
    return found + sorted(leftovers & views.totals.keys())


def trouble_of(views: Views[Any]) -> Callable[[str], Trouble]:
    """Return a function that returns the sort key of the view with a given name."""
    return lambda name: (name in views.muted, _RANK[views.totals[name].verdict], name)


def views_by_tap(views: Views[Any]) -> Counter[str]:
    """Return for each tap how many views it mirrored in the retention window."""
    return Counter(
        observer
        for totals in views.totals.values()
        for observer in set(totals.observers)
    )


def _views_with(snapshot: Snapshot, verdict: Verdict) -> list[list[Piece]]:
    parts = [_part(snapshot, views, verdict) for views in snapshot.views.values()]
    return [part for part in parts if part]


def _part(snapshot: Snapshot, views: Views[Any], verdict: Verdict) -> list[Piece]:
    # Return a text such as "2 of 5 channels failing: a, b"; empty for 0 channels.
    kind, muted = views.kind, views.muted
    found = sorted(
        name
        for name, totals in views.totals.items()
        if totals.verdict is verdict and name not in muted
    )
    if not found:
        return []
    names = [
        Piece(called(snapshot, name, kind), view_href(kind, name))
        for name in found[:_NAMES_IN_SENTENCE]
    ]
    if len(found) > len(names):
        more = f"{words.number(len(found) - len(names))} more"
        names.append(Piece(more, path_of(kind) or "./"))
    unmuted = len(views.totals) - sum(name in views.totals for name in muted)
    fleet = words.counted(unmuted, kind.names.one)
    adjective = words.VERDICTS[verdict].lower()
    head = Piece(f"{words.number(len(found))} of {fleet} {adjective}: ")
    return [head, *_joined([[name] for name in names], ", ")]


def _joined(parts: Sequence[Sequence[Piece]], between: str = "; ") -> list[Piece]:
    first, *rest = parts
    return [*first, *(one for part in rest for one in (Piece(between), *part))]
