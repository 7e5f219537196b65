"""The parts of the page of a view that come from files: its charts and incidents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from markupsafe import Markup

from connectors.web import words
from connectors.web.charts import Chart, charts_of
from connectors.web.drawing import draw
from connectors.web.incident_words import IncidentWords, incident_words
from connectors.web.lacks import READ_INCIDENTS, Lacks, group_words
from connectors.web.lookups import Lookups
from connectors.web.refusals import HistoryBusy, HistoryUnreadable, NoRecord
from connectors.web.trends import Trend
from sds_core.observer.channel_table import ChannelSettings, ChannelTable
from sds_core.observer.figure_table import FigureTable
from sds_core.observer.incidents import ChannelIncident, IncidentKind, IncidentQuery
from sds_core.observer.kinds import AnyKind
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.snapshot import Snapshot

LISTED_INCIDENTS = 5
"""Single incidents of each kind, those that stand first; `/incidents` has more."""


@dataclass(frozen=True, slots=True)
class History:
    """The parts of the page that come from files instead of the snapshot.

    Attributes:
        heading: The time that the charts cover.
        intervals: Length of their intervals, and what is not known.
        charts: Charts, each with its picture, which is empty if there is nothing to
            draw; none if they cannot be drawn.
        no_charts: Why charts cannot be drawn; empty if they can.
        lacks: Who lacks what since when; None if incidents cannot be listed.
        incidents: Single incidents, those that stand first, of them the gravest.
        more_incidents: Whether the channel has further incidents.
        no_incidents: Why incidents cannot be listed; empty if they can.
    """

    heading: str
    intervals: str = ""
    charts: Sequence[tuple[Chart, Markup]] = ()
    no_charts: str = ""
    lacks: Lacks | None = None
    incidents: Sequence[IncidentWords] = ()
    more_incidents: bool = False
    no_incidents: str = ""


def history_of(
    lookups: Lookups,
    table: FigureTable[Any],
    snapshot: Snapshot,
    channel: str,
    chosen_hours: int,
    kind: AnyKind = CHANNELS,
) -> History:
    """Read charts and incidents of a view.

    Args:
        lookups: Source of both.
        table: The figures of its kind.
        snapshot: Has its totals.
        channel: Channel id, or the name of another view or group.
        chosen_hours: A key of `connectors.web.trends.HOURS`.
        kind: Its kind.
    """
    found: dict[str, Any] = {"heading": _last_hours(chosen_hours)}
    try:
        trend = lookups.trend(table, snapshot, channel, chosen_hours, kind.prefix)
    except (HistoryBusy, HistoryUnreadable, NoRecord) as error:
        found["no_charts"] = str(error)
    else:
        charts = charts_of(
            table, trend, settings_of(snapshot, channel, kind), snapshot.observer
        )
        found["charts"] = [
            (chart, Markup() if chart.is_empty else draw(chart)) for chart in charts
        ]
        found |= _span(trend, snapshot, channel, chosen_hours, kind)
    try:
        found |= _incidents(lookups, snapshot, channel, kind)
    except (HistoryBusy, HistoryUnreadable) as error:
        found["no_incidents"] = str(error)
    return History(**found)


def settings_of(snapshot: Snapshot, name: str, kind: AnyKind) -> ChannelSettings:
    """Return the operator's settings of a view; defaults if its kind has none."""
    return (snapshot.table if kind.in_channel_table else ChannelTable()).of(name)


def _last_hours(chosen_hours: int) -> str:
    return f"The last {words.counted(chosen_hours, 'hour')}"


def _span(
    trend: Trend, snapshot: Snapshot, channel: str, chosen_hours: int, kind: AnyKind
) -> dict[str, str]:
    """Return heading and length of intervals of the charts of a channel."""
    heading, known = _last_hours(chosen_hours), ""
    if len(trend.growth) * trend.step_ms < chosen_hours * 3_600_000:
        heading = f"Since {words.since(trend.begin_ms, snapshot.clock_ms)}"
        first_ms = snapshot.views[kind.prefix].totals[channel].first_event_ms or 0
        if first_ms < trend.begin_ms:
            known = "; earlier minutes are not stored"
    step = words.duration(trend.step_ms)
    return {"heading": heading, "intervals": f"intervals of {step}{known}"}


def _incidents(
    lookups: Lookups, snapshot: Snapshot, channel: str, kind: AnyKind
) -> dict[str, Any]:
    """Read the incidents of a channel; returns attributes of `History`.

    Raises:
        HistoryBusy: Too many other requests wait.
        HistoryUnreadable: The history is missing or damaged.
    """
    query = IncidentQuery(channel, standing=True, limit=READ_INCIDENTS + 1)
    standing = lookups.incidents(query, kind.prefix)
    query = IncidentQuery(channel, resolved=True, limit=LISTED_INCIDENTS + 1)
    ended = lookups.incidents(query, kind.prefix)
    listed: list[ChannelIncident] = []
    # Many incidents of one kind must not hide another.
    for problem in IncidentKind:
        of_kind = (one for one in standing if one.incident.kind is problem)
        listed += islice(of_kind, LISTED_INCIDENTS)
    listed += ended[:LISTED_INCIDENTS]
    return {
        "lacks": group_words(snapshot, standing, kind=kind),
        "incidents": [incident_words(snapshot, one, kind) for one in listed],
        "more_incidents": len(standing) + len(ended) > len(listed),
    }
