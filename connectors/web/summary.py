"""The verdict on all channels and the job in one sentence: the head of every page."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from connectors.web import words
from connectors.web.naming import called
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.verdict import Verdict
from sds_core.observer.view_totals import ViewTotals

_NAMES_IN_SENTENCE = 3

_RANK = {verdict: rank for rank, verdict in enumerate(words.VERDICTS)}


class Level(enum.StrEnum):
    """How grave the verdict on everything is; decides its colour on the page."""

    STARTING = "starting"
    FINE = "fine"
    WARNING = "warning"
    TROUBLE = "trouble"


@dataclass(frozen=True, slots=True)
class Summary:
    """The verdict on everything, in one sentence.

    Attributes:
        level: `FINE` and `WARNING` only while `Snapshot.ok` is true.
        sentence: The verdict in words, with the names of at most three channels.
    """

    level: Level
    sentence: str


def summarise(snapshot: Snapshot) -> Summary:
    """The verdict on all channels and the job; muted channels are only counted."""
    job = snapshot.job
    if job.error:
        return Summary(Level.TROUBLE, f"Query stopped: {words.one_line(job.error)}")
    if not snapshot.primed:
        return Summary(Level.STARTING, "Starting: reading the checkpoint")
    if job.event_time_lag_seconds is None:
        if job.running and not snapshot.clock_ms:
            return Summary(Level.STARTING, "No record has been read yet")
        return Summary(Level.STARTING, "Starting: waiting for the first batch")
    if not job.running:
        return Summary(Level.TROUBLE, "Query stopped")

    muted = f"; {words.number(len(snapshot.muted))} muted" if snapshot.muted else ""
    troubles = [
        found
        for verdict in (Verdict.FAILING, Verdict.BLIND)
        if (found := _channels_with(snapshot, verdict))
    ]
    if snapshot.behind:
        lag = words.more_than(job.event_time_lag_seconds)
        troubles.append(f"behind by {lag}")
    if troubles:
        sentence = "; ".join(troubles)
        return Summary(Level.TROUBLE, sentence[0].upper() + sentence[1:] + muted)
    if degraded := _channels_with(snapshot, Verdict.DEGRADED):
        return Summary(Level.WARNING, f"Nothing is failing; {degraded}{muted}")
    return Summary(Level.FINE, f"Everything is fine{muted}")


def by_trouble(snapshot: Snapshot) -> list[tuple[str, ViewTotals]]:
    """All channels, the most troubled first, the muted last, then by id."""
    channels: Mapping[str, ViewTotals] = snapshot.channels
    return sorted(
        channels.items(),
        key=lambda item: (item[0] in snapshot.muted, _RANK[item[1].verdict], item[0]),
    )


def channels_by_tap(snapshot: Snapshot) -> Counter[str]:
    """Number of channels that each tap showed within the horizon; 0 by default."""
    return Counter(
        observer
        for totals in snapshot.channels.values()
        for observer in set(totals.observers)
    )


def _channels_with(snapshot: Snapshot, verdict: Verdict) -> str:
    """As in "2 of 5 channels failing: a, b"; empty if no channel has the verdict."""
    unmuted = {c: t for c, t in snapshot.channels.items() if c not in snapshot.muted}
    found = sorted(channel for channel, t in unmuted.items() if t.verdict is verdict)
    if not found:
        return ""
    names = [called(snapshot, channel) for channel in found[:_NAMES_IN_SENTENCE]]
    if len(found) > len(names):
        names.append(f"{words.number(len(found) - len(names))} more")
    fleet = words.counted(len(unmuted), "channel")
    adjective = words.VERDICTS[verdict].lower()
    return f"{words.number(len(found))} of {fleet} {adjective}: {', '.join(names)}"
